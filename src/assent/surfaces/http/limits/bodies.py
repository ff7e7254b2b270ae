"""Limits the bytes of request bodies in memory: per caller and in total.

Bytes count as they arrive, because a body need not declare its size. A body that would exceed the limit is refused
rather than paused: paused bodies would wait for each other.
"""

from __future__ import annotations

from collections import Counter

from starlette.types import Message, Receive

from assent.errors import TooManyRequests, Unavailable


class Bodies:
    def __init__(self, most: int, most_of_caller: int) -> None:
        self._most = most
        self._most_of_caller = most_of_caller
        self._held = 0
        self._by_caller: Counter[str] = Counter()

    def take(self, name: str, size: int, share: float) -> None:
        """`share` is the part of the total that this kind of caller can use."""
        if self._by_caller[name] + size > self._most_of_caller:
            raise TooManyRequests(
                "this caller is sending too many bytes at once", hint="see the setting max_buffered_bytes_per_caller"
            )
        if self._held + size > self._most * share:
            raise Unavailable("too many bytes are being sent at once", hint="see the setting max_buffered_bytes")
        self._held += size
        self._by_caller[name] += size

    def give_back(self, name: str, size: int) -> None:
        self._held -= size
        self._by_caller[name] -= size
        if self._by_caller[name] <= 0:
            del self._by_caller[name]


class Body:
    """The part of one request's body that has arrived."""

    def __init__(self, bodies: Bodies, name: str, share: float = 1.0) -> None:
        self._bodies = bodies
        self._name = name
        self._share = share
        self._size = 0

    def counting(self, receive: Receive) -> Receive:
        async def counted() -> Message:
            message = await receive()
            if size := len(message.get("body", b"")):
                self._bodies.take(self._name, size, self._share)
                self._size += size
            return message

        return counted

    def forget(self) -> None:
        """The bytes are no longer held."""
        if self._size:
            self._bodies.give_back(self._name, self._size)
            self._size = 0
