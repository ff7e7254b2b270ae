"""The append-only timeline: its events, their hash chain, and the check of a chain.

Every event's hash covers its own fields, the hash of its payload and the hash of the previous event, so an edited,
removed or reordered row breaks the chain from there on. Only the *hash* of a payload is chained: payloads are stored
apart and can be erased, which is itself an event (`payload.erased`) that lists the erased sequence numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assent.kernel import canonical

GENESIS = "0" * 64
ERASED = "payload.erased"
_SIGNED = "assent audit head 1"


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
        """The expected hash of this event, computed from all its other fields."""
        fields = [self.tenant, self.seq, self.at.isoformat(timespec="microseconds"), self.kind, self.actor]
        return canonical.digest([*fields, self.subject, self.payload_hash, self.previous])


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a tenant's chain. A copy outside the database proves later that no tail was cut off."""

    seq: int = 0
    hash: str = GENESIS


@dataclass(frozen=True, slots=True)
class SignedHead:
    """A head at a moment, with a signature by a key that is not in the database. A copy outside the database proves
    later that the chain up to it was not rewritten, hashes and all."""

    tenant: str
    seq: int
    hash: str
    at: str
    key: str
    signature: str

    @property
    def head(self) -> Head:
        return Head(self.seq, self.hash)

    def message(self) -> bytes:
        """The bytes that the signature covers: all fields but itself."""
        return canonical.text([_SIGNED, self.tenant, self.seq, self.hash, self.at, self.key]).encode()

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, record: Any) -> SignedHead:
        """Raises ValueError for any other JSON."""
        match record:
            case {
                "tenant": str(),
                "seq": int(),
                "hash": str(),
                "at": str(),
                "key": str(),
                "signature": str(),
            } if len(record) == len(cls.__slots__):
                return cls(**record)
        raise ValueError("not a signed head")


@dataclass(frozen=True, slots=True)
class Break:
    """One place where the chain is broken."""

    seq: int
    reason: str


class ChainCheck:
    """Checks a chain in order, in constant memory except for missing payloads."""

    def __init__(self, anchor: Head | None = None, signed: Iterable[SignedHead] = ()) -> None:
        """The chain must still contain `anchor`, a head exported earlier, and `signed`, heads whose signatures were
        checked."""
        self.head = Head()
        self._anchor = anchor
        self._signed: dict[int, set[str]] = {}
        for head in signed:
            self._signed.setdefault(head.seq, set()).add(head.hash)
        self.breaks: list[Break] = []
        self.withheld = 0
        self._missing: set[int] = set()
        self._erased: list[tuple[int, int]] = []

    def feed(self, event: Event, payload: str | None, *, withheld: bool = False) -> None:
        """Adds one event. A payload that an export has withheld is not compared: the chain has its hash."""
        self._check_link(event)
        if withheld:
            self.withheld += 1
        else:
            self._check_payload(event, payload)
        self.head = Head(event.seq, event.hash)

    def finish(self, stored: Head | None) -> list[Break]:
        """All breaks, after comparing the end of the chain with the stored head."""
        if stored is None and self.head.seq:
            self._broken(self.head.seq, "the stored head is missing")
        if stored is not None and stored != self.head:
            self._broken(stored.seq, "the stored head differs from the last event")
        if self._anchor is not None and self._anchor.seq > self.head.seq:
            self._broken(self._anchor.seq, "events up to the exported head are missing")
        for seq in sorted(seq for seq in self._signed if seq > self.head.seq)[-1:]:
            self._broken(seq, "events up to the signed head are missing")
        for seq in sorted(self._missing - set(_spread(self._erased, self._missing))):
            self._broken(seq, "its payload is missing and no erasure event covers it")
        return sorted(self.breaks, key=lambda flaw: flaw.seq)

    def _check_link(self, event: Event) -> None:
        if event.seq != self.head.seq + 1:
            self._broken(event.seq, f"follows {self.head.seq}, so rows between are missing or out of order")
        if event.previous != self.head.hash:
            self._broken(event.seq, "does not name the event before it")
        if event.hash != event.seal():
            self._broken(event.seq, "was changed after it was written")
        if self._anchor is not None and event.seq == self._anchor.seq and event.hash != self._anchor.hash:
            self._broken(event.seq, "differs from the exported head")
        if self._signed.get(event.seq, {event.hash}) != {event.hash}:
            self._broken(event.seq, "differs from the signed head")

    def _check_payload(self, event: Event, payload: str | None) -> None:
        if payload is None:
            self._missing.add(event.seq)
        elif canonical.digest_text(payload) != event.payload_hash:
            self._broken(event.seq, "its payload was changed after it was written")
        elif event.kind == ERASED:
            self._note_erasure(event, payload)

    def _note_erasure(self, event: Event, payload: str) -> None:
        try:
            self._erased.extend((int(first), int(last)) for first, last in json.loads(payload)["seqs"])
        except (KeyError, TypeError, ValueError):
            self._broken(event.seq, "does not list the erased payloads")

    def _broken(self, seq: int, reason: str) -> None:
        self.breaks.append(Break(seq, reason))


def follow(head: Head, *, tenant: str, at: datetime, kind: str, actor: str, subject: str, payload: str) -> Event:
    """The sealed event after `head`."""
    payload_hash = canonical.digest_text(payload)
    unsealed = Event(tenant, head.seq + 1, at, kind, actor, subject, payload_hash, head.hash, "")
    return Event(tenant, head.seq + 1, at, kind, actor, subject, payload_hash, head.hash, unsealed.seal())


def ranges(seqs: Iterable[int]) -> list[list[int]]:
    """Sequence numbers as inclusive ranges: [3, 4, 5, 9] → [[3, 5], [9, 9]]."""
    spans: list[list[int]] = []
    for seq in sorted(seqs):
        if spans and seq == spans[-1][1] + 1:
            spans[-1][1] = seq
        else:
            spans.append([seq, seq])
    return spans


def _spread(spans: Iterable[tuple[int, int]], wanted: set[int]) -> Iterator[int]:
    for first, last in spans:
        yield from (seq for seq in wanted if first <= seq <= last)


def as_export(event: Event, payload: str | None, *, withheld: bool = False) -> dict[str, Any]:
    """One line of an export, with everything needed to check the chain without the database. `withheld`: the payload
    quotes a later secret. It is left out, because a masked payload would not match its hash."""
    fields = {name: getattr(event, name) for name in Event.__slots__}
    line = {**fields, "at": event.at.isoformat(timespec="microseconds"), "payload": payload}
    return {**line, "payload": None, "withheld": True} if withheld else line


def is_withheld(line: dict[str, Any]) -> bool:
    return line.get("withheld") is True and line.get("payload") is None


def from_export(line: dict[str, Any]) -> tuple[Event, str | None]:
    """Reads one line back. Raises ValueError or TypeError for anything that `as_export` does not write."""
    if line.keys() != {*Event.__slots__, "payload", *(("withheld",) if is_withheld(line) else ())}:
        raise ValueError("not the fields of an event")
    fields = {name: line[name] for name in Event.__slots__}
    expected = {"seq": int, "payload": str | None, "withheld": bool}
    if not all(isinstance(value, expected.get(name, str)) for name, value in line.items()):
        raise TypeError("not the types of an event")
    return Event(**{**fields, "at": datetime.fromisoformat(line["at"])}), line["payload"]
