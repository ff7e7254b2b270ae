"""Whatever a renderer hands over as text that can be drawn: a plain string, not longer than a page can bear."""

from __future__ import annotations

from assent.domain import canonical

LONGEST = 20_000
LONGEST_VALUE = 2_000
MOST_LINES = 400
MOST_ROWS = 100
"""What is longer is cut, and says by how much: the exact arguments stand on the same page in full."""


def plain(value: object) -> str:
    """A text as it is, other JSON as its canonical text, anything else in its own words."""
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or isinstance(value, bool | int | float | list | tuple | dict):
        return canonical.text(value)
    return str.__str__(str(value))


def cut(text: str, longest: int = LONGEST) -> tuple[str, int]:
    """What is drawn of a text, and how many characters are not."""
    lines = text[:longest].split("\n", MOST_LINES)
    kept = "\n".join(lines[:MOST_LINES])
    return kept, len(text) - len(kept)
