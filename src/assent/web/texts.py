"""Agents' text, shown exactly: what the eye would not see, or would see in the wrong order, becomes a visible chip."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from markupsafe import Markup, escape

_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks by their category, and yet nothing is drawn for them."""

_SEEN = frozenset(" \n\t")
_PLAIN = re.compile(r"[ -~\n\t]*")
_ENDS = re.compile(r"^[ \t]+|[ \t]+$", re.MULTILINE)


def shown(text: str) -> Markup:
    """The text as markup in which every character can be seen."""
    if _PLAIN.fullmatch(text):
        return escape(text)
    return Markup("").join(_chip(char) if is_unseen(char) else escape(char) for char in text)


def shown_exactly(text: str) -> Markup:
    """The same, and blanks at the end of a line can be counted."""
    parts, done = [], 0
    for found in _ENDS.finditer(text):
        parts += [shown(text[done : found.start()]), _blanks(found[0])]
        done = found.end()
    return Markup("").join([*parts, shown(text[done:])])


def spelled(text: str) -> str:
    """For attributes and plain text, where no chip can stand."""
    return "".join(f"⟨{_code(char)}⟩" if is_unseen(char) else char for char in text)


def unseen(text: str) -> Markup:
    """The characters of a text that would not be seen, each once: for inputs, in which no chip can stand."""
    found = dict.fromkeys(char for char in text if is_unseen(char)) if not _PLAIN.fullmatch(text) else ()
    return Markup(" ").join(map(_chip, found))


@lru_cache(maxsize=4096)
def is_unseen(char: str) -> bool:
    if char in _SEEN:
        return False
    return unicodedata.category(char) in _UNSEEN_CATEGORIES or char in _BLANK_LETTERS or _selects(ord(char))


def _selects(code: int) -> bool:
    """Variation selectors change, or hide beside, the character before them."""
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F


def _chip(char: str) -> Markup:
    name = unicodedata.name(char, "control character")
    return Markup('<span class="chip" title="{}">⟨{}⟩</span>').format(name.lower(), _code(char))


def _blanks(run: str) -> Markup:
    return Markup("").join(Markup('<span class="chip" title="{}">{}</span>').format(*_BLANKS[char]) for char in run)


_BLANKS = {" ": ("space", "·"), "\t": ("tab", "→")}


def _code(char: str) -> str:
    return f"U+{ord(char):04X}"
