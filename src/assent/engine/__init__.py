"""Runs graphs: loading them, executing their runs, keeping their checkpoints."""
