"""Assistants: graphs with configurations of their own."""
