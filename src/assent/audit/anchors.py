"""Signs the heads of the timeline on a schedule and stores them where the database's writers cannot reach them.

A head is signed in the transaction that adds it to the outbox, so it reaches the operator's file and receiver even if
the process dies. One of several processes on a database signs. A head is not signed where the chain has lost a head
that this process, or its file, has seen signed before.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from assent.audit import anchor_rows
from assent.audit.service import read_heads
from assent.errors import AuditBroken
from assent.kernel import events, jsontext
from assent.kernel.background import Repeating, every
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.kernel.timeline import Head, SignedHead
from assent.outbox import deliveries
from assent.outbox.model import AUDIT_HEAD, WEBHOOK, Delivery, Failure

if TYPE_CHECKING:
    from assent.audit.signatures import AuditKey

log = logging.getLogger(__name__)

_SUBJECT = "audit"
_EARLY = 0.9
"""The fraction of the interval that must have passed: clocks and loops are not exact."""

Targets = Sequence[tuple[str, str]]
"""Kind and target of the deliveries of each head."""


class Anchoring:
    def __init__(
        self,
        store: Store,
        key: Callable[[], AuditKey],
        *,
        file: Path | None,
        url: str | None,
        every: timedelta,
    ) -> None:
        self._store = store
        self._key = key
        self._file = file
        self._every = every
        named = ((AUDIT_HEAD, file and str(file)), (WEBHOOK, url))
        self._targets: Targets = [(kind, target) for kind, target in named if target]
        self._seen: dict[str, Head] = {}
        self._signing: Repeating | None = None

    async def open(self) -> None:
        if not self._targets:
            return
        key = self._key()
        if self._file is not None and self._file.exists():
            self._seen = await asyncio.to_thread(_newest, self._file, key)
        self._signing = Repeating("anchoring", every(self._every.total_seconds(), lambda: self.sign_heads(key)))
        self._signing.start()

    async def close(self) -> None:
        if self._signing is not None:
            await self._signing.stop()

    async def sign_heads(self, key: AuditKey) -> None:
        """Signs every head that has moved, unless another process has just done so."""
        for tenant in await self._store.read(None, events.tenants):
            try:
                signed = await self._store.write(
                    tenant, anchor, key, self._targets, self._every, self._seen.get(tenant)
                )
            except AuditBroken as broken:
                log.error("sign head failed", extra={"tenant": tenant, "reason": broken.message})
                continue
            if signed is not None:
                self._seen[tenant] = signed.head


def anchor(tx: Tx, key: AuditKey, targets: Targets, every: timedelta, seen: Head | None) -> SignedHead | None:
    last, at = anchor_rows.lock(tx)
    if at <= tx.now() < at + every * _EARLY:
        return None
    head = events.head(tx)
    if seen is not None and events.hash_at(tx, seen.seq) != seen.hash:
        raise AuditBroken(f"the timeline no longer contains the head {seen.seq}:{seen.hash}")
    if head is None or head == last:
        return None
    signed = key.sign(tx.tenant, head, tx.now())
    anchor_rows.put(tx, head)
    for kind, target in targets:
        deliveries.add(tx, kind, subject=_SUBJECT, target=target, body=jsontext.dump(_payload(kind, signed)))
    return signed


class HeadFile:
    """Appends a signed head to the file, one line each, and syncs it before the delivery counts as delivered."""

    def __init__(self, file: Path) -> None:
        self._file = file

    async def __call__(self, delivery: Delivery) -> Failure | None:
        try:
            await asyncio.to_thread(_append, self._file, delivery.body)
        except OSError as error:
            log.error("write signed head failed", extra={"file": str(self._file), "reason": error.strerror})
            return Failure(f"the file cannot be written: {error.strerror}")
        return None


def _payload(kind: str, signed: SignedHead) -> dict[str, object]:
    return signed.to_json() if kind == AUDIT_HEAD else {"event": "audit.head", **signed.to_json()}


def _append(file: Path, line: str) -> None:
    """Appends a line; a line that a crash has cut off is ended first."""
    target = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(target).st_size
        torn = size > 0 and os.pread(target, 1, size - 1) != b"\n"
        os.write(target, f"{chr(10) if torn else ''}{line}\n".encode())
        os.fsync(target)
    finally:
        os.close(target)


def _newest(file: Path, key: AuditKey) -> dict[str, Head]:
    """The last head of each tenant in the file that this key has signed."""
    from assent.audit.signatures import PublicKeys

    with file.open(encoding="utf-8", errors="replace") as lines:
        heads = read_heads(lines, PublicKeys([key.public_pem().encode()]))
    return {tenant: _last(signed) for tenant, signed in heads.signed.items() if signed}


def _last(signed: Iterable[SignedHead]) -> Head:
    return max((entry.head for entry in signed), key=lambda head: head.seq)
