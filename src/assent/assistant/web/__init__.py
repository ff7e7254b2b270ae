"""The assistant's pages of the web inbox: ask, see the proposal, decide, see the result."""
