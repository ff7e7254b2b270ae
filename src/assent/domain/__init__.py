"""Pure rules: no I/O, no await, no clock, no framework."""
