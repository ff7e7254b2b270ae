"""Converts the value of any `interrupt()` to plain JSON.

A graph may raise anything: tuples, dates, NaN, its own classes, a list that contains itself. A value that JSON cannot
represent becomes a text, and its path is reported, so that the question can still be shown. Such a value is never read
as a dialect: an approval must not send back anything other than the agent's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite

from assent.errors import Problem
from assent.kernel import canonical
from assent.kernel.canonical import MAX_DEPTH, Json

MAX_VALUES = 100_000
MAX_PROBLEMS = 50
MAX_REPR = 2_000
_LEFT_OUT = "…"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # differs on each run of the node


def plain(value: object) -> tuple[Json, tuple[Problem, ...]]:
    """The value as JSON, and the parts that could not be converted."""
    reader = _Reader()
    return reader.read(value, "", 0), tuple(reader.problems)


class _Reader:
    """Reads through the base classes' own methods, so that no code of the agent's classes runs, except `repr`."""

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
        return self._lost(_escaped(value), path, "a lone surrogate is not a character and is shown escaped")

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
    except Exception:  # noqa: BLE001 - the agent's own code may raise anything; the question must not get lost
        return name
    return _escaped(_ADDRESS.sub("", shown[:MAX_REPR]))


def _escaped(value: str) -> str:
    return value.encode("utf-8", "backslashreplace").decode()
