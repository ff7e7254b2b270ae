"""Characters that are invisible, or that change how the text around them is displayed."""

from __future__ import annotations

import re

# Printable by Unicode's classes but invisible: fillers, joiners, blank braille, variation selectors.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def is_hidden(character: str) -> bool:
    return not character.isprintable() or _BLANK.match(character) is not None
