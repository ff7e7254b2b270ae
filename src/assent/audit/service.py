"""The timeline as callers use it: search, verify, export, erase payloads, enforce retention."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assent.errors import AuditBroken, Conflict, Invalid
from assent.identity.model.access import Principal, Scope
from assent.kernel import canonical, events, fair_threads
from assent.kernel.events import Entry
from assent.kernel.store.paging import Page
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.kernel.timeline import Break, ChainCheck, Event, Head, SignedHead, as_export, from_export, is_withheld

if TYPE_CHECKING:
    from assent.audit.signatures import AuditKey, PublicKeys

_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking one tenant's chain."""

    tenant: str
    head: Head
    breaks: list[Break]
    signed: int = 0
    """The number of signed heads that the chain was compared with."""
    signed_until: int = 0
    """The last event that these heads cover: later events could have been rewritten unnoticed."""
    withheld: int = 0
    """The number of payloads that an export has left out, because they quote a later secret."""


@dataclass(frozen=True, slots=True)
class Heads:
    """Signed heads that were stored outside the database, by tenant, and the flaws of others."""

    signed: Mapping[str, Sequence[SignedHead]] = field(default_factory=dict)
    flaws: Mapping[str, Sequence[Break]] = field(default_factory=dict)
    unreadable: int = 0

    @property
    def tenants(self) -> set[str]:
        return {*self.signed, *self.flaws}


Masked = Callable[[Tx, Sequence[Entry]], Sequence[Entry]]
"""Masks texts that became secret after an event was written."""


def _unmasked(tx: Tx, entries: Sequence[Entry]) -> Sequence[Entry]:
    return entries


class Audit:
    def __init__(
        self,
        store: Store,
        *,
        key: Callable[[], AuditKey | None] = lambda: None,
        heads_file: Path | None = None,
        masked: Masked = _unmasked,
    ) -> None:
        """`key` signs heads, where there is one; `heads_file` is the file with the heads that were signed here."""
        self._store = store
        self._masked = masked
        self._key = key
        self._heads_file = heads_file

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
        """Masks texts that became secret after the event; `text` does not match them."""
        caller.require(Scope.AUDIT_READ)
        return await self._store.read(
            caller.tenant,
            _search,
            self._masked,
            subject=subject,
            kind=kind,
            actor=actor,
            since=since,
            until=until,
            text=text,
            limit=limit,
            cursor=cursor,
        )

    async def verify(self, caller: Principal, *, anchor: Head | None = None, heads: Heads | None = None) -> Verdict:
        """Checks the caller's whole chain. It must still contain `anchor`, a head exported earlier, and all signed
        `heads`; the default for these is this installation's own file."""
        caller.require(Scope.AUDIT_READ)
        heads = await fair_threads.beside(self.kept_heads) if heads is None else heads
        signed, flaws = heads.signed.get(caller.tenant, ()), heads.flaws.get(caller.tenant, ())
        covers = {"signed": len(signed), "signed_until": max((head.seq for head in signed), default=0)}
        check, stored = ChainCheck(anchor, signed), None
        try:
            async for chunk, head in self._chain(caller.tenant):
                stored = head
                await fair_threads.beside(_feed, check, chunk)  # a thousand hashes: others are served meanwhile
        except AuditBroken as unreadable:
            broken = Break(check.head.seq + 1, f"this row or a later one cannot be read: {unreadable.message}")
            return Verdict(caller.tenant, check.head, [*check.breaks, broken, *flaws], **covers)
        strays = await self._store.read(caller.tenant, events.strays)
        breaks = [Break(seq, "a payload that belongs to no event") for seq in strays]
        return Verdict(caller.tenant, check.head, [*check.finish(stored), *breaks, *flaws], **covers)

    def kept_heads(self) -> Heads:
        """The heads that this installation has signed and written to its file; empty where there is no such file."""
        key = self._key() if self._heads_file is not None and self._heads_file.exists() else None
        if key is None or self._heads_file is None:
            return Heads()
        from assent.audit.signatures import PublicKeys

        with self._heads_file.open(encoding="utf-8", errors="replace") as lines:
            return read_heads(lines, PublicKeys([key.public_pem().encode()]))

    async def head(self, caller: Principal) -> SignedHead | Head:
        """The end of the chain, signed where there is a key."""
        caller.require(Scope.AUDIT_READ)
        head, now = await self._store.read(caller.tenant, lambda tx: (events.head(tx) or Head(), tx.now()))
        key = self._key()
        return key.sign(caller.tenant, head, now) if key else head

    def public_key(self, caller: Principal) -> str:
        """The public key for the signatures of heads, as PEM, for checks elsewhere."""
        caller.require(Scope.AUDIT_READ)
        key = self._key()
        if key is None:
            raise Conflict("no audit signing key is configured", hint="set secret_key or audit_key")
        return key.public_pem()

    async def export(self, caller: Principal) -> AsyncIterator[str]:
        """The chain as JSON lines, the head last: all an auditor needs, without the database. A payload that quotes a
        later secret is left out, and marked."""
        caller.require(Scope.AUDIT_READ)
        stored: Head | None = None
        async for chunk, head in self._chain(caller.tenant):
            stored = head
            masked = await self._store.read(caller.tenant, self._masked, chunk)
            for (event, payload), (_, shown) in zip(chunk, masked, strict=True):
                yield json.dumps(as_export(event, payload, withheld=shown != payload), ensure_ascii=False)
        end, key = stored or Head(), self._key()
        last: dict[str, Any] = {"tenant": caller.tenant, "seq": end.seq, "hash": end.hash}
        if key is not None:
            now = await self._store.read(caller.tenant, lambda tx: tx.now())
            last = key.sign(caller.tenant, end, now).to_json()
        yield json.dumps({"head": last})

    async def erase(self, caller: Principal, subject: str) -> int:
        """Erases the payloads of every event about or by `subject`; the events themselves stay."""
        caller.require(Scope.ADMIN)
        if subject.startswith("user:"):
            hint = "erase a person by name: DELETE /api/users/NAME, or assent erase user:NAME"
            raise Invalid(f"{subject!r} is not a subject of events", hint=hint)
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


def read_heads(lines: Iterable[str], keys: PublicKeys) -> Heads:
    """Signed heads, one per line. A head with a wrong signature is a break; a line that is not a head, as a crash may
    leave one, is ignored."""
    signed: dict[str, list[SignedHead]] = {}
    flaws: dict[str, list[Break]] = {}
    unreadable = 0
    for number, line in enumerate(lines, 1):
        try:
            head = SignedHead.from_json(canonical.parse(line))
        except (ValueError, canonical.JsonError):
            unreadable += 1
            continue
        flaw = keys.flaw(head)
        if flaw is None:
            signed.setdefault(head.tenant, []).append(head)
        else:
            flaws.setdefault(head.tenant, []).append(Break(head.seq, f"the signed head on line {number} {flaw}"))
    return Heads(signed, flaws, unreadable)


def verify_export(
    lines: Iterable[str], anchor: Head | None = None, *, heads: Heads | None = None, keys: PublicKeys | None = None
) -> Verdict:
    """Checks an exported chain offline: it must still contain `anchor`, a head exported earlier, and the signed
    `heads`. With `keys` the export's own head must be signed as well."""
    outside, tenants = heads or Heads(), set[str]()
    check, end = None, None
    for number, line in enumerate(lines, 1):
        if end is not None:
            raise Invalid(f"line {number} of the export comes after its head")
        record = _parse(line, number)
        if "head" in record:
            end = _head(record, number)
        else:
            event, payload = _entry(record, number)
            check = check or ChainCheck(anchor, outside.signed.get(event.tenant, ()))
            check.feed(event, payload, withheld=is_withheld(record))
            tenants.add(event.tenant)
    if end is None:
        raise Invalid("the export has no head: it is truncated, or not an export")
    if tenants - {end.tenant}:
        raise Invalid(f"the export's head is of {end.tenant} and its events are of {', '.join(sorted(tenants))}")
    signed, check = outside.signed.get(end.tenant, ()), check or ChainCheck(anchor, outside.signed.get(end.tenant, ()))
    breaks = [*check.finish(end.head), *outside.flaws.get(end.tenant, ()), *_unsigned(end, keys)]
    vouched = [*signed, *([end] if keys and not _unsigned(end, keys) else [])]
    until = max((head.seq for head in vouched), default=0)
    return Verdict(end.tenant, check.head, breaks, signed=len(vouched), signed_until=until, withheld=check.withheld)


def _unsigned(end: SignedHead, keys: PublicKeys | None) -> list[Break]:
    if keys is None:
        return []
    flaw = keys.flaw(end) if end.signature else "is not signed"
    return [Break(end.seq, f"the head of the export {flaw}")] if flaw else []


def _parse(line: str, number: int) -> dict[str, Any]:
    try:
        record = canonical.parse(line)
    except canonical.JsonError:
        record = None
    if not isinstance(record, dict):
        raise Invalid(f"line {number} of the export is not a JSON object")
    return record


def _head(record: dict[str, Any], number: int) -> SignedHead:
    """The export's own head; its signature is empty where the export was made without a key."""
    match record:
        case {"head": {"tenant": str(tenant), "seq": int(seq), "hash": str(digest), **others}} if not others:
            return SignedHead(tenant, seq, digest, "", "", "")
    try:
        return SignedHead.from_json(record["head"])
    except ValueError:
        raise Invalid(f"line {number} of the export is not a head") from None


def _entry(record: dict[str, Any], number: int) -> tuple[Event, str | None]:
    try:
        return from_export(record)
    except (KeyError, TypeError, ValueError):
        raise Invalid(f"line {number} of the export is not an event") from None


def _feed(check: ChainCheck, chunk: Iterable[Entry]) -> None:
    for event, payload in chunk:
        check.feed(event, payload)


def _search(tx: Tx, masked: Masked, /, *, text: str | None, **wanted: Any) -> Page[Entry]:
    page = events.search(tx, text=text, **wanted)
    both = zip(page.items, masked(tx, page.items), strict=True)
    return replace(page, items=[shown for stored, shown in both if shown == stored or _shows(shown, text)])


def _shows(entry: Entry, text: str | None) -> bool:
    """Whether the searched text is in the masked entry: a search must not reveal masked text."""
    return text is None or text.casefold() in (entry[1] or "").casefold()


def _chunk(tx: Tx, after: int) -> tuple[list[Entry], Head | None]:
    return events.entries(tx, after=after, limit=_CHUNK), events.head(tx)


def _erase(tx: Tx, caller: Principal, subject: str) -> int:
    return events.erase(tx, caller, events.erasable(tx, subject=subject), reason=f"erasure of {subject}")


def _expire(tx: Tx, system: Principal, older_than: timedelta) -> int:
    seqs = events.erasable(tx, before=tx.now() - older_than)
    return events.erase(tx, system, seqs, reason=f"retention of {older_than.days} days")
