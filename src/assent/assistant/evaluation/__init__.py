"""Measures how well a model works as the assistant: a file of requests, and what should come of each."""
