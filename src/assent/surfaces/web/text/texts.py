"""Shows agents' text exactly: invisible and reordering characters become visible chips."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache

from markupsafe import Markup, escape

_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks by category, but rendered as nothing."""

_SEEN = frozenset(" \n\t")
_PLAIN = re.compile(r"[ -~\n\t]*")
_ENDS = re.compile(r"^[ \t]++|(?<![ \t])[ \t]++$", re.MULTILINE)
"""The lookbehind keeps it linear: without it, the search would retry at every blank of a long run."""


def shown(text: str) -> Markup:
    """Returns markup in which every character is visible."""
    unseen_chars = _unseen_in(text)
    if not unseen_chars:
        return escape(text)
    chips = {char: _chip(char) for char in unseen_chars}
    return Markup(_any_of(unseen_chars).sub(lambda match: chips[match[0]], str(escape(text))))  # noqa: S704 - our own chips


def shown_exactly(text: str) -> Markup:
    """Like `shown`, with visible blanks at the start and end of lines."""
    parts, done = [], 0
    for match in _ENDS.finditer(text):
        parts += [shown(text[done : match.start()]), _blanks(match[0])]
        done = match.end()
    return Markup("").join([*parts, shown(text[done:])])


def spelled(text: str) -> str:
    """Spells invisible characters out, for attributes and plain text."""
    unseen_chars = _unseen_in(text)
    return _any_of(unseen_chars).sub(lambda match: f"⟨{_code(match[0])}⟩", text) if unseen_chars else text


def key(text: str) -> Markup:
    """The name of an argument: a long one breaks after an underscore, not inside a word."""
    return shown(text).replace("_", Markup("_<wbr>"))


def pretty(value: object) -> str:
    """JSON with line breaks; numbers keep every digit."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def size(text: str) -> str:
    """The size of a text in UTF-8, such as 12.3 KB."""
    count = len(text.encode("utf-8", "surrogatepass"))
    return (
        f"{count} B" if count < 1024 else f"{count / 1024:.1f} KB" if count < 1024**2 else f"{count / 1024**2:.1f} MB"
    )


def unseen(text: str) -> Markup:
    """The invisible characters of a text, each once; shown beside inputs, which cannot contain chips."""
    return Markup(" ").join(map(_chip, sorted(_unseen_in(text), key=text.index)))


def _unseen_in(text: str) -> set[str]:
    """Checks each distinct character once: a text can have millions of characters."""
    return set() if _PLAIN.fullmatch(text) else {char for char in set(text) if is_unseen(char)}


def _any_of(characters: set[str]) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(''.join(sorted(characters)))}]")


@lru_cache(maxsize=4096)
def is_unseen(char: str) -> bool:
    if char in _SEEN:
        return False
    return unicodedata.category(char) in _UNSEEN_CATEGORIES or char in _BLANK_LETTERS or _selects(ord(char))


def _selects(code: int) -> bool:
    """Whether the character is a variation selector, which changes the character before it."""
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F


def _chip(char: str) -> Markup:
    name = unicodedata.name(char, "control character")
    return Markup('<span class="chip" title="{}">⟨{}⟩</span>').format(name.lower(), _code(char))


def _blanks(run: str) -> Markup:
    return Markup("").join(_BLANKS[char] for char in run)


_BLANKS = {
    " ": Markup('<span class="chip" title="space">·</span>'),
    "\t": Markup('<span class="chip" title="tab">→</span>'),
}


def _code(char: str) -> str:
    return f"U+{ord(char):04X}"
