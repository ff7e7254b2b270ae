"""The append-only timeline: what an event is, how events are chained, and how a chain is checked.

Every event's hash covers its own fields, the hash of its payload and the hash of the event before it, so an edited,
removed or reordered row breaks the chain from there on. Only the *hash* of a payload is chained: payloads sit apart
and can be erased, which is itself an event (`payload.erased`) that lists the sequence numbers it emptied.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assent.domain import canonical

GENESIS = "0" * 64
ERASED = "payload.erased"


@dataclass(frozen=True, slots=True)
class Event:
    tenant: str
    seq: int
    at: datetime
    kind: str
    actor: str
    subject: str
    payload_hash: str
    previous: str
    hash: str

    def seal(self) -> str:
        """The hash this event should carry, computed from everything else in it."""
        fields = [self.tenant, self.seq, self.at.isoformat(timespec="microseconds"), self.kind, self.actor]
        return canonical.digest([*fields, self.subject, self.payload_hash, self.previous])


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a tenant's chain. Exported and kept elsewhere, it shows later that no tail was cut off."""

    seq: int = 0
    hash: str = GENESIS


@dataclass(frozen=True, slots=True)
class Break:
    """One place where the chain does not hold."""

    seq: int
    reason: str


class ChainCheck:
    """Walks a chain in order, in constant memory but for the payloads that are missing."""

    def __init__(self, anchor: Head | None = None) -> None:
        """`anchor` is a head exported earlier, which the chain must still contain."""
        self.head = Head()
        self._anchor = anchor
        self.breaks: list[Break] = []
        self._missing: set[int] = set()
        self._erased: list[tuple[int, int]] = []

    def feed(self, event: Event, payload: str | None) -> None:
        self._follow(event)
        self._weigh(event, payload)
        self.head = Head(event.seq, event.hash)

    def finish(self, stored: Head | None) -> list[Break]:
        """All breaks, once the end of the chain has been compared with the stored head."""
        if stored is None and self.head.seq:
            self._broken(self.head.seq, "the stored head is gone")
        if stored is not None and stored != self.head:
            self._broken(stored.seq, "the stored head differs from the last event")
        if self._anchor is not None and self._anchor.seq > self.head.seq:
            self._broken(self._anchor.seq, "events up to the exported head are gone")
        for seq in sorted(self._missing - set(_spread(self._erased, self._missing))):
            self._broken(seq, "its payload is gone and no erasure tells of it")
        return sorted(self.breaks, key=lambda found: found.seq)

    def _follow(self, event: Event) -> None:
        if event.seq != self.head.seq + 1:
            self._broken(event.seq, f"follows {self.head.seq}, so rows between are missing or out of order")
        if event.previous != self.head.hash:
            self._broken(event.seq, "does not name the event before it")
        if event.hash != event.seal():
            self._broken(event.seq, "was changed after it was written")
        if self._anchor is not None and event.seq == self._anchor.seq and event.hash != self._anchor.hash:
            self._broken(event.seq, "differs from the exported head")

    def _weigh(self, event: Event, payload: str | None) -> None:
        if payload is None:
            self._missing.add(event.seq)
        elif canonical.digest_text(payload) != event.payload_hash:
            self._broken(event.seq, "its payload was changed after it was written")
        elif event.kind == ERASED:
            self._forgive(event, payload)

    def _forgive(self, event: Event, payload: str) -> None:
        try:
            self._erased.extend((int(first), int(last)) for first, last in json.loads(payload)["seqs"])
        except (KeyError, TypeError, ValueError):
            self._broken(event.seq, "does not say which payloads were erased")

    def _broken(self, seq: int, reason: str) -> None:
        self.breaks.append(Break(seq, reason))


def follow(head: Head, *, tenant: str, at: datetime, kind: str, actor: str, subject: str, payload: str) -> Event:
    """The event that comes after `head`, sealed."""
    payload_hash = canonical.digest_text(payload)
    unsealed = Event(tenant, head.seq + 1, at, kind, actor, subject, payload_hash, head.hash, "")
    return Event(tenant, head.seq + 1, at, kind, actor, subject, payload_hash, head.hash, unsealed.seal())


def ranges(seqs: Iterable[int]) -> list[list[int]]:
    """Sequence numbers as inclusive ranges: [3, 4, 5, 9] → [[3, 5], [9, 9]]."""
    found: list[list[int]] = []
    for seq in sorted(seqs):
        if found and seq == found[-1][1] + 1:
            found[-1][1] = seq
        else:
            found.append([seq, seq])
    return found


def _spread(spans: Iterable[tuple[int, int]], wanted: set[int]) -> Iterator[int]:
    for first, last in spans:
        yield from (seq for seq in wanted if first <= seq <= last)


def as_export(event: Event, payload: str | None) -> dict[str, Any]:
    """One line of an export: everything needed to check the chain without the database."""
    fields = {name: getattr(event, name) for name in Event.__slots__}
    return {**fields, "at": event.at.isoformat(timespec="microseconds"), "payload": payload}


def from_export(line: dict[str, Any]) -> tuple[Event, str | None]:
    """One line read back. Raises ValueError or TypeError where it holds anything but what `as_export` writes."""
    if line.keys() != {*Event.__slots__, "payload"}:
        raise ValueError("not the fields of an event")
    fields = {name: line[name] for name in Event.__slots__}
    expected = {"seq": int, "payload": str | None}
    if not all(isinstance(value, expected.get(name, str)) for name, value in line.items()):
        raise TypeError("not the types of an event")
    return Event(**{**fields, "at": datetime.fromisoformat(line["at"])}), line["payload"]
