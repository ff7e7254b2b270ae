"""Parts of policies: limits of arguments, and the difference between two policies."""
