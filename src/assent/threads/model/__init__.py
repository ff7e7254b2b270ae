"""Pure rules of threads, runs and assistants: no I/O, no await, no clock."""
