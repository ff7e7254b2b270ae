"""Calendars: the interface that the tools use (`port`), and the built-in one, which is a file (`file`)."""
