"""Formatting of labels, times, diffs and agents' texts."""
