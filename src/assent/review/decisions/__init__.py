"""Decisions: the right to decide, the decision itself, its consequences, and undo."""
