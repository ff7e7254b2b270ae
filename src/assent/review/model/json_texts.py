"""Locates values in JSON text, so that one can be replaced without altering the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from assent.kernel.canonical import Json

Path = tuple[str, ...]
_BLANKS = " \t\n\r"
_DEEPEST = 64
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Part:
    """A value from `start` to `end` of a text. `whole`: its path was chosen; else it is some other string."""

    start: int
    end: int
    value: Json
    path: Path
    whole: bool


def is_document(text: str) -> bool:
    return text.lstrip(_BLANKS)[:1] in ("{", "[")


def parts(text: str, path: Path, chosen: Callable[[Path], bool]) -> list[Part]:
    """The values in the text whose path is chosen, and every other string. A list adds no step to the path. Raises
    ValueError if the text is not JSON, or too deep."""
    try:
        json.loads(text)
    except RecursionError:
        raise ValueError("too deep") from None
    reader = _Reader(text, chosen)
    reader.read(path)
    return reader.parts


class _Reader:
    """Reads JSON text, including duplicate keys."""

    def __init__(self, text: str, chosen: Callable[[Path], bool]) -> None:
        self._text = text
        self._chosen = chosen
        self._at = 0
        self.parts: list[Part] = []

    def read(self, path: Path, depth: int = 0) -> None:
        start = self._next()
        whole = self._chosen(path)
        if not whole and self._text[start] in "{[":
            return self._read_inside(path, "}" if self._text[start] == "{" else "]", depth + 1)
        value, self._at = _DECODER.raw_decode(self._text, start)
        if whole or isinstance(value, str):
            self.parts.append(Part(start, self._at, value, path, whole))
        return None

    def _read_inside(self, path: Path, end: str, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("too deep")
        self._at += 1
        while self._text[self._next()] != end:
            self.read((*path, self._name()) if end == "}" else path, depth)
            if self._text[self._next()] == ",":
                self._at += 1
        self._at += 1

    def _name(self) -> str:
        name, self._at = _DECODER.raw_decode(self._text, self._at)
        self._next()
        self._at += 1  # the colon
        return str(name)

    def _next(self) -> int:
        while self._text[self._at] in _BLANKS:
            self._at += 1
        return self._at
