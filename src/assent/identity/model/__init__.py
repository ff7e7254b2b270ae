"""Pure rules of identity: no I/O, no await, no clock."""
