"""Threads, runs, checkpoints and assistants as rows."""
