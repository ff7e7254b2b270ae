"""The words of a text, for the full-text index and for searches in it. Both databases index exactly these words.

A word is a run of letters and digits, without case and accents. Chinese, Japanese, Thai and related scripts write no
spaces between words, so each pair of neighbouring characters is a word, and so is the last character: then a search for
any part of such a text finds it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from assent.kernel.canonical import Json

MOST_WORDS = 4000
"""Of one item. The beginning of a longer text is indexed."""

_LONGEST_TEXT = 40_000
_LONGEST_WORD = 100
"""A longer run of letters is encoded data, which nobody searches for."""

_SIGN = "§"
"""Begins words that no text contains: types and actors."""

_UNSPACED = (
    r"\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u312f\u31a0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUNS = re.compile(rf"([{_UNSPACED}]+)|(?:[^\W_{_UNSPACED}])+")


def words_of(text: str) -> list[str]:
    """The words of a text, in order."""
    return list(_words(text, whole=True))


def phrase_of(text: str) -> list[str]:
    """The words to search for: they follow each other, and the last is the beginning of a word."""
    return list(_words(text, whole=False))


def of_type(type: str) -> str:
    """The word of all items of a type."""
    return f"{_SIGN}t{_squeezed(type)}"


def of_actor(actor: str) -> str:
    """The word of all items that a person or an agent took part in. Names are not indexed, so that they can be
    erased."""
    return f"{_SIGN}a{_squeezed(actor)}"


def texts_in(value: Json) -> Iterator[str]:
    """Every name, text and number in a value."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield str(name)
            yield from texts_in(part)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from texts_in(entry)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def indexed(signs: Iterable[str], texts: Iterable[str]) -> list[str]:
    """The words of an item: its signs, then its texts, up to the limit."""
    words = list(dict.fromkeys(signs))
    for text in texts:
        words += words_of(text)
        if len(words) >= MOST_WORDS:
            break
    return words[:MOST_WORDS]


def _words(text: str, *, whole: bool) -> Iterator[str]:
    for run in _RUNS.finditer(_folded(text[:_LONGEST_TEXT])):
        word = run[0]
        if run[1] is None:
            if len(word) <= _LONGEST_WORD:
                yield word
            continue
        yield from (word[at : at + 2] for at in range(len(word) - 1))
        if whole or len(word) == 1:
            yield word[-1]


def _folded(text: str) -> str:
    """Without case, accents and width: `Café` and `ＣＡＦＥ` are the same word."""
    if text.isascii():
        return text.lower()
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", plain).casefold()


def _squeezed(name: str) -> str:
    return re.sub(r"[\W_]", "", _folded(name))[:_LONGEST_WORD]
