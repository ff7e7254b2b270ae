"""The contents of `assent demo`: small agents that need no model and no key, and example items."""
