"""Work on stored runs and threads by command: import, conversion of old checkpoints, missing items."""
