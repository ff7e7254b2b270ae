"""The effect of a tool call, read from its name and arguments: its kind, its cautions, one line of text."""
