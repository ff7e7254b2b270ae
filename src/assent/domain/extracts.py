"""Single values out of a thread, by path (`values.messages[-1].content`): a search need not bring whole states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assent.errors import Invalid

ROOTS = ("values", "metadata", "config", "interrupts")
MOST = 10
_LONGEST = 500
_PATH = re.compile(rf"(?P<root>{'|'.join(ROOTS)})(?P<steps>(\.[^.\[\]]+|\[-?\d{{1,9}}\])*)")
_STEP = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<index>-?\d+)\]")


@dataclass(frozen=True, slots=True)
class Path:
    root: str
    steps: tuple[str | int, ...]

    def find(self, roots: Mapping[str, Any]) -> Any:
        """What stands there, or None where the path leads nowhere."""
        found = roots.get(self.root)
        for step in self.steps:
            found = _member(found, step) if isinstance(step, str) else _element(found, step)
        return found


def parse(paths: Mapping[str, str]) -> dict[str, Path]:
    """Paths by the name that their value is to have in the answer."""
    if len(paths) > MOST:
        raise Invalid(f"extract: at most {MOST} paths")
    return {alias: _path(text) for alias, text in paths.items()}


def _path(text: str) -> Path:
    found = _PATH.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        raise Invalid(f"extract: {text[:80]!r} is not a path", hint="such as values.messages[-1].content")
    steps = (step["key"] or int(step["index"]) for step in _STEP.finditer(found["steps"]))
    return Path(found["root"], tuple(steps))


def _member(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _element(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, list) and -len(value) <= index < len(value) else None
