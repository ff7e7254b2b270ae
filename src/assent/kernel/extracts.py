"""Single values of a thread, by path (`values.messages[-1].content`), so that a search need not return whole states."""

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
        """The value at the path, or None."""
        value = roots.get(self.root)
        for step in self.steps:
            value = _member(value, step) if isinstance(step, str) else _element(value, step)
        return value


def parse(paths: Mapping[str, str]) -> dict[str, Path]:
    """Parses paths, keyed by the name of the value in the answer."""
    if len(paths) > MOST:
        raise Invalid(f"extract: at most {MOST} paths")
    return {alias: _path(text) for alias, text in paths.items()}


def _path(text: str) -> Path:
    match = _PATH.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise Invalid(f"extract: {text[:80]!r} is not a path", hint="such as values.messages[-1].content")
    steps = (step["key"] or int(step["index"]) for step in _STEP.finditer(match["steps"]))
    return Path(match["root"], tuple(steps))


def _member(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else None


def _element(value: Any, index: int) -> Any:
    return value[index] if isinstance(value, list) and -len(value) <= index < len(value) else None
