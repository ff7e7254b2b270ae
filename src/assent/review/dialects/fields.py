"""Reads fields of untrusted JSON, collecting problems instead of raising.

Dialects read questions with it (problems make a raw item) and answers from outside the inbox (problems refuse the
answer). Every problem has the path of its field; reading continues after a problem, so that all are reported at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from assent.errors import InvalidDecision, Problem
from assent.kernel.canonical import Json, join

T = TypeVar("T")

_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}


def kind(value: Json) -> str:
    if value is None:
        return "null"
    return _KINDS.get(type(value), "a number")


class Fields:
    """One object at `path`. `problems` is shared with the objects below it."""

    def __init__(self, value: Json, path: str = "", problems: list[Problem] | None = None) -> None:
        self.path = path
        self.problems: list[Problem] = [] if problems is None else problems
        self._readable = isinstance(value, dict)
        self._values: dict[str, Json] = value if isinstance(value, dict) else {}
        if not self._readable:
            self.problems.append(Problem(path, f"must be an object, not {kind(value)}"))

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def get(self, key: str) -> Json:
        """The field, or None if it is absent or null."""
        return self._values.get(key)

    def fault(self, key: str, message: str) -> None:
        if self._readable:
            self.problems.append(Problem(join(self.path, key) if key else self.path, message))

    def refuse(self) -> None:
        if self.problems:
            raise InvalidDecision(problems=self.problems)

    def text(self, key: str) -> str:
        return self._typed(key, str, "")

    def optional_text(self, key: str) -> str | None:
        return None if self.get(key) is None else self.text(key)

    def flag(self, key: str) -> bool:
        return self._typed(key, bool, False)

    def mapping(self, key: str) -> dict[str, Json]:
        return self._typed(key, dict, {})

    def sequence(self, key: str) -> list[Json]:
        return self._typed(key, list, [])

    def choice(self, key: str, choices: Mapping[str, T]) -> T | None:
        """The entry of `choices` for the text in this field."""
        value = self.get(key)
        if isinstance(value, str) and value in choices:
            return choices[value]
        self.fault(key, f"must be one of {', '.join(choices)}")
        return None

    def inside(self, key: str) -> Fields:
        if key in self._values:
            return Fields(self._values[key], join(self.path, key), self.problems)
        self.fault(key, "is missing")
        return Fields({}, join(self.path, key), [])

    def each(self, key: str) -> list[Fields]:
        """The objects in a non-empty list."""
        values = self.sequence(key)
        if not values and isinstance(self.get(key), list):
            self.fault(key, "must not be empty")
        return entries(values, join(self.path, key), self.problems)

    def _typed(self, key: str, wanted: type[T], default: T) -> T:
        if key not in self._values:
            self.fault(key, "is missing")
            return default
        value = self._values[key]
        if isinstance(value, wanted):
            return value
        self.fault(key, f"must be {_KINDS[wanted]}, not {kind(value)}")
        return default


def repeated(ids: Iterable[str | None]) -> set[str | None]:
    """The ids that occur more than once."""
    return {id for id, times in Counter(ids).items() if times > 1}


def entries(values: list[Json], path: str, problems: list[Problem]) -> list[Fields]:
    return [Fields(value, join(path, index), problems) for index, value in enumerate(values)]
