"""Lengths of time as people write them: `90s`, `15m`, `2h`, `7d`, `1h30m`; and back, in one way only."""

from __future__ import annotations

import re
from datetime import timedelta

LONGEST = timedelta(days=3650)

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WRITTEN = re.compile("".join(rf"(?:(\d{{1,9}}){unit})?" for unit in _UNITS), re.ASCII)


def parse(source: str) -> timedelta:
    """The length of time, or a `ValueError` that says how to write one."""
    found = _WRITTEN.fullmatch(source)
    seconds = (
        sum(int(count) * size for count, size in zip(found.groups("0"), _UNITS.values(), strict=True)) if found else 0
    )
    if not 0 < seconds <= LONGEST.total_seconds():
        raise ValueError("must be a length of time such as 90s, 15m, 2h, 7d or 1h30m, and at most ten years")
    return timedelta(seconds=seconds)


def text(duration: timedelta) -> str:
    """The canonical spelling, in whole seconds: 90 minutes are `1h30m` however they were written."""
    left, parts = round(duration.total_seconds()), []
    for unit, size in _UNITS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
