"""Whatever an agent passed to `interrupt()`, as plain JSON.

A graph may raise anything: tuples, dates, NaN, its own classes, a list that contains itself. What JSON cannot carry
becomes a text, and the place is named, so that the question can still be shown. Such a value is never read as a
dialect: an approval must not send back something other than what the agent asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite

from assent.domain import canonical
from assent.domain.canonical import MAX_DEPTH, Json
from assent.domain.questions import Problem

MAX_VALUES = 100_000
MAX_PROBLEMS = 50
MAX_REPR = 2_000
_LEFT_OUT = "…"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # differs each time the node runs, though nothing else was asked


def plain(value: object) -> tuple[Json, tuple[Problem, ...]]:
    """The value as JSON, and what could not be kept."""
    reader = _Reader()
    return reader.read(value, "", 0), tuple(reader.problems)


class _Reader:
    """Reads through the base classes' own methods, so that no code of the agent's classes runs, but for `repr`."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.values = 0

    def read(self, value: object, path: str, depth: int) -> Json:
        self.values += 1
        if self.values > MAX_VALUES:
            return self._lost(_LEFT_OUT, path, f"more than {MAX_VALUES} values: the rest is left out")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if issubclass(kind, str):
            return self._text(str.__str__(value), path)
        if issubclass(kind, (int, float)):
            return self._number(value, path)  # type: ignore[arg-type]
        if issubclass(kind, (dict, list, tuple)):
            return self._container(value, path, depth)
        return self._lost(_repr(value), path, f"{kind.__name__} is not JSON and is shown as text")

    def _lost(self, shown: str, path: str, message: str) -> str:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(path, message))
        return shown

    def _text(self, value: str, path: str) -> str:
        if value.isascii() or not canonical.has_surrogate(value):
            return value
        return self._lost(_escaped(value), path, "a lone surrogate is no character and is shown escaped")

    def _number(self, value: int | float, path: str) -> Json:
        if isinstance(value, float):
            number = float.__float__(value)
            return number if isfinite(number) else self._lost(str(number), path, f"{number} is not a JSON number")
        if int.__abs__(value) >= canonical.TOO_LONG:
            return self._lost(_LEFT_OUT, path, "an integer of more than 4300 digits")
        return int.__int__(value)

    def _container(self, value: object, path: str, depth: int) -> Json:
        if depth >= MAX_DEPTH:
            return self._lost(_LEFT_OUT, path, f"nested deeper than {MAX_DEPTH}: the rest is left out")
        if isinstance(value, dict):
            return dict(self._entry(key, child, path, depth) for key, child in dict.items(value))
        children: Iterable[object] = tuple.__iter__(value) if isinstance(value, tuple) else list.__iter__(value)  # type: ignore[arg-type]
        return [self.read(child, canonical.join(path, index), depth + 1) for index, child in enumerate(children)]

    def _entry(self, key: object, child: object, path: str, depth: int) -> tuple[str, Json]:
        if isinstance(key, str):
            name = self._text(str.__str__(key), path)
        else:
            name = self._lost(f"<{type(key).__name__} {_repr(key)}>", path, "a key must be a string")
        return name, self.read(child, canonical.join(path, name), depth + 1)


def _repr(value: object) -> str:
    name = f"<{type(value).__module__}.{type(value).__qualname__}>"
    if type(value).__repr__ is object.__repr__:
        return name
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 - the agent's own code: whatever it raises, the question must not get lost
        return name
    return _escaped(_ADDRESS.sub("", shown[:MAX_REPR]))


def _escaped(value: str) -> str:
    return value.encode("utf-8", "backslashreplace").decode()
