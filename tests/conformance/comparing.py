"""The differences between two recordings, after what differs on any two servers is made equal: ids and times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b|^\d{13,16}-\d+$")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+(?:\+00:00|Z)")
_SAME_IN_ALL = ("00000000-0000-0000-0000-000000000001",)
"""Ids that the graphs themselves make."""


@dataclass(frozen=True)
class Difference:
    scenario: str
    path: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.scenario}  {self.path}\n    theirs {_short(self.theirs)}\n    ours   {_short(self.ours)}"


class Nothing:
    def __repr__(self) -> str:
        return "(nothing)"


NOTHING = Nothing()


def alike(value: Any) -> Any:
    """Without ids and times; questions come last in a stream (`allowed.py` has the reason)."""
    if isinstance(value, dict):
        return {alike(name): alike(each) for name, each in _unnumbered(value).items()}
    if isinstance(value, list | tuple):
        return sorted((alike(each) for each in value), key=_asks)
    return _TIME.sub("TIME", _ID.sub(_name_of, value)) if isinstance(value, str) else value


def _unnumbered(value: dict[str, Any]) -> dict[str, Any]:
    """A protocol event without its number, its id and its time."""
    if value.get("type") != "event" or "method" not in value:
        return value
    params = {name: each for name, each in value["params"].items() if name != "timestamp"}
    return {"method": value["method"], "params": params}


def _asks(value: Any) -> bool:
    """Whether it is a frame that tells a question or a stop."""
    if not isinstance(value, dict) or "data" not in value:
        return isinstance(value, dict) and value.get("method") == "input.requested"
    return isinstance(value["data"], dict) and "__interrupt__" in value["data"]


def _name_of(match: re.Match[str]) -> str:
    return match.group() if match.group() in _SAME_IN_ALL else "ID"


def differences(scenario: str, theirs: Any, ours: Any, path: str = "") -> Iterator[Difference]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted({*theirs, *ours}):
            yield from differences(scenario, theirs.get(name, NOTHING), ours.get(name, NOTHING), f"{path}.{name}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for index, (left, right) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(scenario, left, right, f"{path}[{index}]")
    elif theirs != ours or type(theirs) is not type(ours):
        yield Difference(scenario, path, theirs, ours)


def _short(value: Any) -> str:
    text = value if isinstance(value, Nothing) else json.dumps(value, ensure_ascii=False)
    return str(text)[:1500]
