"""What a tool call does, read from its name and arguments: its kind, its cautions, one line of text."""
