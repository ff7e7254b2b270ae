"""The states of threads as rows: checkpoints, their parts, and values."""
