"""Durations as people write them: `90s`, `15m`, `2h`, `7d`, `1h30m`; and back, in canonical form."""

from __future__ import annotations

import re
from datetime import timedelta

LONGEST = timedelta(days=3650)

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WRITTEN = re.compile("".join(rf"(?:(\d{{1,9}}){unit})?" for unit in _UNITS), re.ASCII)


def parse(source: str) -> timedelta:
    """The duration, or a `ValueError` with the expected format."""
    match = _WRITTEN.fullmatch(source)
    seconds = (
        sum(int(count) * size for count, size in zip(match.groups("0"), _UNITS.values(), strict=True)) if match else 0
    )
    if not 0 < seconds <= LONGEST.total_seconds():
        raise ValueError("must be a length of time such as 90s, 15m, 2h, 7d or 1h30m, and at most ten years")
    return timedelta(seconds=seconds)


def text(duration: timedelta) -> str:
    """The canonical text, in whole seconds: 90 minutes are always `1h30m`."""
    left, parts = round(duration.total_seconds()), []
    for unit, size in _UNITS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
