"""Stored values as parts, which checkpoints share.

A part is named by the hash of its bytes, so equal values are stored once in a thread. A list has a part per element, or
per slice of small elements, and a tree of nodes above them, each of which lists the parts below it. The ends of nodes
depend on the names below, not on positions: after an insertion or a removal in the middle, only the nodes around it are
new.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

import ormsgpack

FORMAT = "parts"
"""The type of a stored checkpoint or write that refers to parts."""
NODE = "node"
"""The type of a part that lists others."""

_NAME_BYTES = 16
_MOST_AT_TOP = 24
_FEWEST, _MOST = 4, 64
_ENDS = 15  # one name in sixteen ends a node


class Part(NamedTuple):
    name: bytes
    type: str
    data: bytes


class Inline(NamedTuple):
    """A small value, which is stored where it is used."""

    type: str
    data: bytes


class Whole(NamedTuple):
    """A value in one part."""

    name: bytes


class Listed(NamedTuple):
    """A list: the names at the top of its tree. `width` is the number of elements of a part."""

    depth: int
    width: int
    names: tuple[bytes, ...]


Ref: TypeAlias = Inline | Whole | Listed


def part(type: str, data: bytes) -> Part:
    hashed = hashlib.blake2b(data, digest_size=_NAME_BYTES, person=type.encode()[:16])
    return Part(hashed.digest(), type, data)


def listed(names: Sequence[bytes], width: int) -> tuple[Listed, list[Part]]:
    """The tree over these parts, and its nodes."""
    depth, level, nodes = 0, list(names), list[Part]()
    while len(level) > _MOST_AT_TOP:
        made = [part(NODE, b"".join(group)) for group in _groups(level)]
        nodes += made
        level, depth = [node.name for node in made], depth + 1
    return Listed(depth, width, tuple(level)), nodes


def _groups(names: Sequence[bytes]) -> Iterable[Sequence[bytes]]:
    start = 0
    for end, name in enumerate(names, 1):
        size = end - start
        if size >= _FEWEST and (not name[-1] & _ENDS or size >= _MOST):
            yield names[start:end]
            start = end
    if start < len(names):
        yield names[start:]


def names_in(node: bytes) -> list[bytes]:
    return [node[at : at + _NAME_BYTES] for at in range(0, len(node), _NAME_BYTES)]


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
    return [2, ref.depth, ref.width, b"".join(ref.names)]


def _ref(plain: list[object]) -> Ref:
    kind, *rest = plain
    if kind == 0:
        return Inline(*rest)  # type: ignore[arg-type]
    if kind == 1:
        return Whole(*rest)  # type: ignore[arg-type]
    depth, width, names = rest
    return Listed(depth, width, tuple(names_in(names)))  # type: ignore[arg-type]
