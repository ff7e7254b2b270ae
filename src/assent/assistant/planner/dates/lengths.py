"""Lengths of time in words: "45 minutes", "an hour and a half", "1h30", "half an hour"."""

from __future__ import annotations

import re

_WORDS = {
    "a quarter of an": 0.25, "three quarters of an": 0.75, "half an": 0.5, "half a": 0.5, "a couple of": 2,
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "twenty five": 25, "thirty": 30, "forty": 40,
    "forty five": 45, "fifty": 50, "sixty": 60, "ninety": 90,
}  # fmt: skip
_UNITS = {"m": 1, "h": 60, "d": 1440, "w": 10080, "f": 20160}
_COUNTS = "|".join(sorted((word.replace(" ", r"[\s-]+") for word in _WORDS), key=len, reverse=True))

NUMBER = rf"(?:[0-9]{{1,4}}(?:[.,][0-9]{{1,2}})?|\b(?:{_COUNTS})\b)"
UNIT = r"(?:hours?|hrs?|h|minutes?|mins?|days?|weeks?|fortnights?)\b"
LENGTH = (
    rf"(?:[0-9]{{1,2}}h[0-9]{{2}}\b|{NUMBER}(?:\s+and\s+a\s+half)?[\s-]*{UNIT}"
    rf"(?:\s+and\s+a\s+half\b|\s*(?:and\s+)?{NUMBER}\s*(?:minutes?|mins?)\b)?)"
)
_SHORT = re.compile(r"([0-9]{1,2})h([0-9]{2})")
_PARTS = re.compile(
    rf"(?P<n>{NUMBER})(?P<half>\s+and\s+a\s+half)?[\s-]*(?P<unit>{UNIT})"
    rf"(?P<rest>\s+and\s+a\s+half)?(?:\s*(?:and\s+)?(?P<m>{NUMBER})\s*(?:minutes?|mins?))?",
    re.IGNORECASE,
)


def number(text: str) -> float:
    """The number that `NUMBER` found."""
    word = re.sub(r"[\s-]+", " ", text.strip().lower())
    return _WORDS[word] if word in _WORDS else float(word.replace(",", "."))


def minutes(text: str) -> int:
    """The length that `LENGTH` found, in whole minutes."""
    short = _SHORT.fullmatch(text.strip())
    if short:
        return int(short[1]) * 60 + int(short[2])
    match = _PARTS.match(text.strip())
    if not match:
        return 0
    size = _UNITS[match["unit"][0].lower()]
    half = 0.5 if match["half"] or match["rest"] else 0
    return round((number(match["n"]) + half) * size + (number(match["m"]) if match["m"] else 0))
