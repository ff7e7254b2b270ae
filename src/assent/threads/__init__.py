"""Threads, runs and assistants as records: models, rows and visibility."""
