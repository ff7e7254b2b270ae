"""What `assent demo` serves: small agents that need no model and no key, and something of theirs to decide."""
