"""Threads as use cases: create, search, copy, delete, states, and who may go on reading."""
