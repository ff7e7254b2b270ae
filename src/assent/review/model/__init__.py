"""Pure rules of reviews: no I/O, no await, no clock."""
