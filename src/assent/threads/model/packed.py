"""Msgpack bytes, divided without being decoded: the classes of the values inside need not exist any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_FIXED |= {0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_SIZED |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
"""By type: the bytes of the length, and of what follows beside the content."""
_ARRAYS, _MAPS = {0xDC: 2, 0xDD: 4}, {0xDE: 2, 0xDF: 4}


class _Head(NamedTuple):
    """The first bytes of a value: where its content begins, the bytes of the content, and the values inside."""

    begin: int
    size: int = 0
    inside: int = 0


def elements(data: bytes) -> list[bytes] | None:
    """The values of an array; None for any other value."""
    if not (data[0] >> 4 == 0x9 or data[0] in _ARRAYS):
        return None
    return list(_values(data, _head(data, 0)))


def entries(data: bytes) -> list[tuple[bytes, bytes]]:
    """The keys and values of a map."""
    if not (data[0] >> 4 == 0x8 or data[0] in _MAPS):
        raise ValueError("not a map")
    inside = _values(data, _head(data, 0))
    return list(zip(inside, inside, strict=True))


def array(values: Sequence[bytes]) -> bytes:
    return _counted(len(values), 0x90, 0xDC) + b"".join(values)


def mapping(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    return _counted(len(entries), 0x80, 0xDE) + b"".join(part for entry in entries for part in entry)


def _counted(count: int, small: int, large: int) -> bytes:
    if count < 16:
        return bytes([small | count])
    return bytes([large]) + count.to_bytes(2, "big") if count < 2**16 else bytes([large + 1]) + count.to_bytes(4, "big")


def _values(data: bytes, head: _Head) -> Iterator[bytes]:
    at = head.begin
    for _ in range(head.inside):
        end = _end(data, at)
        yield data[at:end]
        at = end


def _end(data: bytes, at: int) -> int:
    left = 1
    while left:
        head = _head(data, at)
        at = head.begin + head.size
        left += head.inside - 1
    if at > len(data):
        raise ValueError("the bytes are cut off")
    return at


def _head(data: bytes, at: int) -> _Head:
    kind, after = data[at], at + 1
    if kind < 0x80 or kind >= 0xE0:
        return _Head(after)
    if kind < 0xA0:
        count = kind & 0xF
        return _Head(after, inside=count if kind >= 0x90 else 2 * count)
    if kind < 0xC0:
        return _Head(after, kind & 0x1F)
    if kind in _FIXED:
        return _Head(after, _FIXED[kind])
    if kind in _SIZED:
        length, more = _SIZED[kind]
        return _Head(after + length, int.from_bytes(data[after : after + length], "big") + more)
    length = _ARRAYS.get(kind) or _MAPS[kind]
    count = int.from_bytes(data[after : after + length], "big")
    return _Head(after + length, inside=count if kind in _ARRAYS else 2 * count)
