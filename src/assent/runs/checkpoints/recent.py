"""Parts that this process has loaded lately, so that a turn of a long conversation does not read and parse all of it.

A message is kept as a blueprint: the plain data of its fields, from which equal and independent copies are made in a
fifth of the time of parsing. A message that holds more than plain data has none. Messages are compared and copied many
at a time, because calls for each would take most of the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import repeat
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple, TypeAlias

import ormsgpack
from pydantic import BaseModel

from assent.threads.model.parts import Part

_MOST_BYTES = 16 * 1024 * 1024
_LARGEST = 64 * 1024
AT_ONCE = 128
"""Messages that are copied and compared together: enough that calls do not count, and few enough for the caches."""
_pack = partial(
    ormsgpack.packb,
    option=ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID,
)
"""Raises a `TypeError` for everything that it would not read back with the same type."""


class Shape(NamedTuple):
    """The class of a message, its packed fields, and those that the class does not name. Equal only for messages with
    equal bytes."""

    cls: type
    fields: bytes
    extra: bytes


class Blueprint(NamedTuple):
    shape: Shape
    fields_set: frozenset[str]
    size: int
    """The bytes of the part."""


Kept: TypeAlias = Part | Blueprint

_SLOTS = ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
_SET_FIELDS, _SET_NAMES, _SET_EXTRA, _SET_PRIVATE = (vars(BaseModel)[name].__set__ for name in _SLOTS)
_FIELDS, _EXTRA = attrgetter("__dict__"), attrgetter("__pydantic_extra__")


def shape_of(message: Any) -> Shape | None:
    """None if the message holds more than plain data."""
    try:
        return Shape(type(message), _pack(message.__dict__), _pack(message.__pydantic_extra__))
    except TypeError:
        return None


class Copies:
    """New messages, one of each blueprint."""

    def __init__(self, blueprints: Sequence[Blueprint]) -> None:
        self.shapes = [blueprint.shape for blueprint in blueprints]
        self._classes = [shape.cls for shape in self.shapes]
        self._packed = array([*(shape.fields for shape in self.shapes), *(shape.extra for shape in self.shapes)])
        data = ormsgpack.unpackb(self._packed)
        self.messages: list[Any] = [*map(object.__new__, self._classes)]
        names = [blueprint.fields_set for blueprint in blueprints]
        _each(_SET_FIELDS, self.messages, data)
        _each(_SET_NAMES, self.messages, map(set, names))
        _each(_SET_EXTRA, self.messages, data[len(names) :])
        _each(_SET_PRIVATE, self.messages, repeat(None))

    def are_unchanged(self) -> bool:
        if [*map(type, self.messages)] != self._classes:
            return False
        try:
            return _pack([*map(_FIELDS, self.messages), *map(_EXTRA, self.messages)]) == self._packed
        except TypeError:
            return False


def _each(set: Callable[[Any, Any], None], messages: Iterable[Any], values: Iterable[Any]) -> None:
    deque(map(set, messages, values), maxlen=0)


def array(packed: Sequence[bytes]) -> bytes:
    """The MessagePack array of packed values, as ormsgpack writes it."""
    count = len(packed)
    if count < 16:
        head = bytes([0x90 | count])
    else:
        head = b"\xdc" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xdd" + count.to_bytes(4, "big")
    return b"".join([head, *packed])


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

    def among(self, names: Set[bytes]) -> dict[bytes, Kept]:
        """Those of the parts that are here."""
        young = self._young.get
        return {name: kept for name in names if (kept := young(name) or self.get(name)) is not None}

    def add_parts(self, loaded: Mapping[bytes, Kept]) -> None:
        young = self._young
        for name, kept in loaded.items():
            if name not in young and isinstance(kept, Part):
                self.add(name, kept)

    def add(self, name: bytes, kept: Kept) -> None:
        if kept.size > _LARGEST:
            return
        with self._adding:
            if self._bytes > self._most // 2:
                self._young, self._old, self._bytes = {}, self._young, 0
            self._bytes += 0 if name in self._young else kept.size
            self._young[name] = kept
