"""Commands that serve requests and execute runs."""
