"""Parts that this process has loaded lately, so that a turn of a long conversation does not read and parse all of it.

A message is kept as a blueprint: the plain data of its fields, from which equal and independent copies are made in a
tenth of the time of parsing. A message that holds more than plain data has none.
"""

from __future__ import annotations

import marshal
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel

from assent.threads.model.parts import Part

_MARSHAL = 2  # later versions encode references, which depend on more than the values
_MOST_BYTES = 16 * 1024 * 1024
_LARGEST = 64 * 1024


class Shape(NamedTuple):
    """The class and the fields of a message. Equal only for messages with equal bytes."""

    cls: type
    keys: tuple[str, ...]
    values: bytes

    def fits(self, message: Any) -> bool:
        """Whether this is still the shape of the message."""
        return _values_of(message) == self.values and tuple(message.__dict__) == self.keys and type(message) is self.cls


class Blueprint(NamedTuple):
    shape: Shape
    fields_set: frozenset[str]
    size: int
    """The bytes of the part."""

    def message(self) -> Any:
        cls, keys, values = self.shape
        *fields, extra = marshal.loads(values)  # noqa: S302 - made in this process
        made: Any = object.__new__(cls)
        _SET_FIELDS(made, dict(zip(keys, fields, strict=True)))
        _SET_NAMES(made, set(self.fields_set))
        _SET_EXTRA(made, extra)
        _SET_PRIVATE(made, None)
        return made


Kept: TypeAlias = Part | Blueprint

_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_SET_FIELDS, _SET_NAMES, _SET_EXTRA, _SET_PRIVATE = (vars(BaseModel)[name].__set__ for name in _SLOTS)


def shape_of(message: Any) -> Shape | None:
    """None if the message holds more than plain data."""
    values = _values_of(message)
    return None if values is None else Shape(type(message), tuple(message.__dict__), values)


def _values_of(message: Any) -> bytes | None:
    try:
        return marshal.dumps([*message.__dict__.values(), message.__pydantic_extra__], _MARSHAL)
    except ValueError:
        return None


class Recent:
    """Limited to about `most` bytes: what was not used since the last half of them is dropped. Threads of the store use
    it beside the event loop: one of them adds at a time, and a lookup beside it may miss what is being moved."""

    def __init__(self, most: int = _MOST_BYTES) -> None:
        self._most = most
        self._young: dict[bytes, Kept] = {}
        self._old: dict[bytes, Kept] = {}
        self._bytes = 0
        self._adding = Lock()

    def get(self, name: bytes) -> Kept | None:
        kept = self._young.get(name)
        if kept is None and (kept := self._old.get(name)) is not None:
            self.add(name, kept)
        return kept

    def add(self, name: bytes, kept: Kept) -> None:
        if kept.size > _LARGEST:
            return
        with self._adding:
            if self._bytes > self._most // 2:
                self._young, self._old, self._bytes = {}, self._young, 0
            self._bytes += 0 if name in self._young else kept.size
            self._young[name] = kept
