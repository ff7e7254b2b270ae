"""The rules of the streaming protocol, without I/O."""
