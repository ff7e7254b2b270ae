"""Stored values as parts, which checkpoints share.

A part is named by the hash of its bytes, so equal values are stored once in a thread. A list has a part per element, or
per slice of small elements, and a tree of nodes above them, each of which lists the parts below it. The ends of nodes
depend on the names below, not on positions: after an insertion or a removal in the middle, only the nodes around it are
new. The last names of each level, which do not fill a node yet, are stored with the list: a list that grows rarely
needs a new node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import ormsgpack

from assent.errors import UnreadableState

FORMAT = "parts"
"""The type of a stored checkpoint or write that refers to parts."""
NODE = "node"
"""The type of a part that lists others."""
INLINE = 128
"""The bytes up to which a value is stored where it is used."""
SLICE = 1024
"""The bytes up to which elements of a list are stored together."""

_NAME_BYTES = 16
_MOST_AT_TOP = 4
_FEWEST, _MOST = 4, 64
_ENDS = 1  # one name in two ends a node that is long enough


class Part(NamedTuple):
    name: bytes
    type: str
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


class Inline(NamedTuple):
    """A small value, which is stored where it is used."""

    type: str
    data: bytes


class Whole(NamedTuple):
    """A value in one part."""

    name: bytes


class Listed(NamedTuple):
    """A list. `levels` has the names of each level of its tree that are in no node, lowest level first: the elements
    below those of a higher level come before them. `width` is the number of elements of a part."""

    width: int
    levels: tuple[tuple[bytes, ...], ...]


Ref: TypeAlias = Inline | Whole | Listed


def part(type: str, data: bytes) -> Part:
    hashed = hashlib.blake2b(data, digest_size=_NAME_BYTES, person=type.encode()[:16])
    return Part(hashed.digest(), type, data)


def slice_width(average: float) -> int:
    """The number of elements in a slice, for elements of so many bytes. It is a power of two, so that a list that grows
    evenly keeps it."""
    return 1 << max(0, int(SLICE / max(average, 1)).bit_length() - 1)


class Tree:
    """The tree over a list that changes: if it begins like the last one, only the rest is divided into nodes."""

    def __init__(self) -> None:
        self._levels: list[_Level] = []

    def over(self, names: Sequence[bytes], width: int) -> tuple[Listed, list[Part]]:
        """The tree over these parts, and all its nodes."""
        rests, nodes, depth = list[tuple[bytes, ...]](), list[Part](), 0
        while len(names) > _MOST_AT_TOP:
            if depth == len(self._levels):
                self._levels.append(_Level())
            level = self._levels[depth]
            level.divide(names)
            rests.append(tuple(names[level.divided :]))
            nodes += level.nodes
            names, depth = [node.name for node in level.nodes], depth + 1
        return Listed(width, (*rests, tuple(names))), nodes


class _Level:
    """`nodes` list the first `divided` of the names; the other names fill no node yet."""

    def __init__(self) -> None:
        self.nodes: list[Part] = []
        self.divided = 0
        self._names: Sequence[bytes] = ()

    def divide(self, names: Sequence[bytes]) -> None:
        if names[: self.divided] != self._names[: self.divided]:
            self.nodes, self.divided = [], 0
        self._names = names
        for end in range(self.divided + _FEWEST, len(names) + 1):
            size = end - self.divided
            if size >= _FEWEST and (not names[end - 1][-1] & _ENDS or size >= _MOST):
                self.nodes.append(part(NODE, b"".join(names[self.divided : end])))
                self.divided = end


def listed(names: Sequence[bytes], width: int) -> tuple[Listed, list[Part]]:
    return Tree().over(names, width)


@lru_cache(maxsize=4096)
def below(node: object) -> Sequence[bytes]:
    """The names of the parts that a node lists. A part that a damaged node does not name would be swept."""
    if not isinstance(node, Part) or node.type != NODE or part(NODE, node.data).name != node.name:
        raise UnreadableState("a part of the checkpoint is damaged")
    return tuple(_names_in(node.data))


def missing() -> UnreadableState:
    return UnreadableState("a part of the checkpoint is missing")


def _names_in(joined: bytes) -> list[bytes]:
    return [joined[at : at + _NAME_BYTES] for at in range(0, len(joined), _NAME_BYTES)]


def pack(ref: Ref) -> bytes:
    return ormsgpack.packb(_plain(ref))


def unpack(data: bytes) -> Ref:
    return _ref(ormsgpack.unpackb(data))


def pack_checkpoint(header: Inline, values: Sequence[tuple[str, Ref]]) -> bytes:
    return ormsgpack.packb([_plain(header), [[channel, _plain(ref)] for channel, ref in values]])


def unpack_checkpoint(data: bytes) -> tuple[Inline, list[tuple[str, Ref]]]:
    header, values = ormsgpack.unpackb(data)
    return Inline(*header[1:]), [(channel, _ref(ref)) for channel, ref in values]


def refs_in(checkpoint: bytes) -> list[Ref]:
    return [ref for _, ref in unpack_checkpoint(checkpoint)[1]]


def _plain(ref: Ref) -> list[object]:
    if isinstance(ref, Inline):
        return [0, ref.type, ref.data]
    if isinstance(ref, Whole):
        return [1, ref.name]
    return [3, ref.width, [b"".join(names) for names in ref.levels]]


def _ref(plain: list[Any]) -> Ref:
    kind, *rest = plain
    if kind == 0:
        return Inline(*rest)
    if kind == 1:
        return Whole(*rest)
    if kind != 3:  # 2 was of a format that no release wrote
        raise UnreadableState(f"the checkpoint refers to parts in a way that is not supported ({kind})")
    width, levels = rest
    return Listed(width, tuple(tuple(_names_in(names)) for names in levels))
