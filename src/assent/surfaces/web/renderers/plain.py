"""Converts renderers' values to plain strings of limited length."""

from __future__ import annotations

from assent.kernel import canonical

LONGEST = 20_000
LONGEST_VALUE = 2_000
MOST_LINES = 400
MOST_ROWS = 100
"""Longer texts are truncated with a count; the page also shows the exact arguments in full."""


def plain(value: object) -> str:
    """Strings unchanged, other JSON as canonical text, anything else by `str`."""
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool | int | float | list | tuple | dict):
        return canonical.text(value)
    return str.__str__(str(value))


def cut(text: str, longest: int = LONGEST) -> tuple[str, int]:
    """The start of a text, and the number of omitted characters."""
    lines = text[:longest].split("\n", MOST_LINES)
    start = "\n".join(lines[:MOST_LINES])
    return start, len(text) - len(start)
