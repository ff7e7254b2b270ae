"""Checkpoints and writes as earlier releases stored them, with the whole state in one value, and their conversion to
parts.

Nothing is decoded, so conversion needs no graph and no class of its state, and what is read afterwards has the same
bytes. The parts are those that a run would store, so later checkpoints share them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import ormsgpack

from assent.threads.model import packed
from assent.threads.model.messages import MESSAGES, PACKAGE
from assent.threads.model.parts import (
    INLINE,
    SLICE,
    Inline,
    Part,
    Ref,
    Whole,
    listed,
    pack,
    pack_checkpoint,
    part,
    slice_width,
)

PLAIN = "msgpack"
"""The type of values that can be divided. Encrypted ones cannot."""
_VALUES = ormsgpack.packb("channel_values")
_NIL = ormsgpack.packb(None)
_FIRST_FIELD = {0xC7: 4, 0xC8: 5, 0xC9: 7}
"""Where the fields of an object begin, by the first byte of its extension. The first two are its module and class."""
_MESSAGES = tuple(ormsgpack.packb(f"{PACKAGE}.{module}") + ormsgpack.packb(name) for module, name in MESSAGES)


class Converted(NamedTuple):
    data: bytes
    size: int
    """The bytes of the value with its parts."""
    parts: Sequence[Part]


def checkpoint_in_parts(data: bytes) -> Converted:
    divided, entries = _Divided(), packed.entries(data)
    header = packed.mapping([(key, _NIL if key == _VALUES else value) for key, value in entries])
    channels = packed.entries(dict(entries)[_VALUES])
    values = [(ormsgpack.unpackb(name), divided.ref(value)) for name, value in channels]
    return divided.stored_with(pack_checkpoint(Inline(PLAIN, header), values))


def write_in_parts(data: bytes) -> Converted:
    divided = _Divided()
    return divided.stored_with(pack(divided.ref(data)))


class _Divided:
    def __init__(self) -> None:
        self._parts: dict[bytes, Part] = {}
        self._size = 0

    def stored_with(self, data: bytes) -> Converted:
        return Converted(data, len(data) + self._size, list(self._parts.values()))

    def ref(self, value: bytes) -> Ref:
        elements = packed.elements(value)
        if not elements:
            return self._whole(packed.array([value]))
        if all(map(_is_message, elements)):
            return self._tree(elements, 1)
        whole = packed.array([value])
        if len(whole) <= SLICE:
            return self._whole(whole)
        return self._tree(elements, slice_width(len(whole) / len(elements)))

    def _whole(self, data: bytes) -> Ref:
        if len(data) <= INLINE:
            self._size += len(data)
            return Inline(PLAIN, data)
        return Whole(self._store(data))

    def _tree(self, elements: Sequence[bytes], width: int) -> Ref:
        slices = [packed.array(elements[at : at + width]) for at in range(0, len(elements), width)]
        ref, nodes = listed([self._store(data) for data in slices], width)
        self._parts.update((node.name, node) for node in nodes)
        return ref

    def _store(self, data: bytes) -> bytes:
        self._size += len(data)
        made = part(PLAIN, data)
        self._parts[made.name] = made
        return made.name


def _is_message(element: bytes) -> bool:
    return element[0] in _FIRST_FIELD and element.startswith(_MESSAGES, _FIRST_FIELD[element[0]])
