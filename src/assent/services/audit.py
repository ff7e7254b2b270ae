"""The timeline from outside: search it, check it, export it, erase payloads from it, keep it within its retention."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from assent.domain import canonical
from assent.domain.access import Principal, Scope
from assent.domain.timeline import Break, ChainCheck, Event, Head, as_export, from_export
from assent.errors import AuditBroken, Invalid
from assent.ports import Store
from assent.store import events
from assent.store.events import Entry
from assent.store.paging import Page
from assent.store.transaction import Tx

_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check of one tenant's chain found."""

    tenant: str
    head: Head
    breaks: list[Break]


class Audit:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def search(
        self,
        caller: Principal,
        *,
        subject: str | None = None,
        kind: str | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Entry]:
        caller.require(Scope.AUDIT_READ)
        return await self._store.read(
            caller.tenant,
            events.search,
            subject=subject,
            kind=kind,
            actor=actor,
            since=since,
            until=until,
            text=text,
            limit=limit,
            cursor=cursor,
        )

    async def verify(self, caller: Principal, *, anchor: Head | None = None) -> Verdict:
        """Walks the caller's whole chain; `anchor` is a head exported earlier that it must still contain."""
        caller.require(Scope.AUDIT_READ)
        check, stored = ChainCheck(anchor), None
        try:
            async for chunk, head in self._chain(caller.tenant):
                stored = head
                await asyncio.to_thread(_feed, check, chunk)  # a thousand hashes: others are served meanwhile
        except AuditBroken as unreadable:
            broken = Break(check.head.seq + 1, f"this row or a later one cannot be read: {unreadable.message}")
            return Verdict(caller.tenant, check.head, [*check.breaks, broken])
        strays = await self._store.read(caller.tenant, events.strays)
        breaks = [Break(seq, "a payload that belongs to no event") for seq in strays]
        return Verdict(caller.tenant, check.head, [*check.finish(stored), *breaks])

    async def export(self, caller: Principal) -> AsyncIterator[str]:
        """The chain as JSON lines, the head last: everything an auditor needs, without the database."""
        caller.require(Scope.AUDIT_READ)
        stored: Head | None = None
        async for chunk, head in self._chain(caller.tenant):
            stored = head
            for event, payload in chunk:
                yield json.dumps(as_export(event, payload), ensure_ascii=False)
        end = stored or Head()
        yield json.dumps({"head": {"tenant": caller.tenant, "seq": end.seq, "hash": end.hash}})

    async def erase(self, caller: Principal, subject: str) -> int:
        """Erases the payloads of every event about or by `subject`; the events themselves stay."""
        caller.require(Scope.ADMIN)
        if subject.startswith("user:"):
            hint = "a person is forgotten by name: DELETE /api/users/NAME, or assent erase user:NAME"
            raise Invalid(f"{subject!r} is nothing that events are about", hint=hint)
        return await self._store.write(caller.tenant, _erase, caller, subject)

    async def tenants(self) -> list[str]:
        return await self._store.read(None, events.tenants)

    async def expire_payloads(self, system: Principal, older_than: timedelta) -> int:
        return await self._store.write(system.tenant, _expire, system, older_than)

    async def _chain(self, tenant: str) -> AsyncIterator[tuple[list[Entry], Head | None]]:
        """The chain in order, each chunk with its snapshot's head. The last chunk is empty: its head is the end."""
        after = 0
        while True:
            chunk, head = await self._store.read(tenant, _chunk, after)
            yield chunk, head
            if not chunk:
                return
            after = chunk[-1][0].seq


def verify_export(lines: Iterable[str], anchor: Head | None = None) -> Verdict:
    """Checks an exported chain offline; `anchor` is a head exported earlier that it must still contain."""
    check, tenants, end = ChainCheck(anchor), set[str](), None
    for number, line in enumerate(lines, 1):
        if end is not None:
            raise Invalid(f"line {number} of the export comes after its head")
        record = _parse(line, number)
        if "head" in record:
            end = _head(record, number)
        else:
            event, payload = _entry(record, number)
            check.feed(event, payload)
            tenants.add(event.tenant)
    if end is None:
        raise Invalid("the export has no head: it is cut off, or not an export")
    tenant, head = end
    if tenants - {tenant}:
        raise Invalid(f"the export is {tenant}'s by its head and {', '.join(sorted(tenants))}'s by its events")
    return Verdict(tenant, check.head, check.finish(head))


def _parse(line: str, number: int) -> dict[str, Any]:
    try:
        record = canonical.parse(line)
    except canonical.JsonError:
        record = None
    if not isinstance(record, dict):
        raise Invalid(f"line {number} of the export is not a JSON object")
    return record


def _head(record: dict[str, Any], number: int) -> tuple[str, Head]:
    match record:
        case {"head": {"tenant": str(tenant), "seq": int(seq), "hash": str(digest), **others}} if not others:
            return tenant, Head(seq, digest)
    raise Invalid(f"line {number} of the export is not a head")


def _entry(record: dict[str, Any], number: int) -> tuple[Event, str | None]:
    try:
        return from_export(record)
    except (KeyError, TypeError, ValueError):
        raise Invalid(f"line {number} of the export is not an event") from None


def _feed(check: ChainCheck, chunk: Iterable[Entry]) -> None:
    for event, payload in chunk:
        check.feed(event, payload)


def _chunk(tx: Tx, after: int) -> tuple[list[Entry], Head | None]:
    return events.entries(tx, after=after, limit=_CHUNK), events.head(tx)


def _erase(tx: Tx, caller: Principal, subject: str) -> int:
    return events.erase(tx, caller, events.erasable(tx, subject=subject), reason=f"erasure of {subject}")


def _expire(tx: Tx, system: Principal, older_than: timedelta) -> int:
    found = events.erasable(tx, before=tx.now() - older_than)
    return events.erase(tx, system, found, reason=f"retention of {older_than.days} days")
