"""Saved reasons: texts that reviewers use again for rejections and for requests for a revision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from assent.errors import AlreadyExists, Conflict, Invalid, NotFound
from assent.identity.model.access import Principal, Scope
from assent.kernel import events
from assent.kernel.ids import new_id
from assent.kernel.store import idempotency
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.rows import reasons
from assent.review.rows.reasons import Reason

MOST = 100
LONGEST_NAME, LONGEST_TEXT = 100, 4_000
View: TypeAlias = dict[str, Any]
Views: TypeAlias = list[View]


class Use(StrEnum):
    """The decisions that offer a reason."""

    REJECT = "reject"
    REVISION = "revision"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Wanted:
    name: str
    text: str
    use: Use = Use.BOTH

    def checked(self) -> Wanted:
        name, text = self.name.strip(), self.text.strip()
        if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise Invalid(f"the name of a reason has 1 to {LONGEST_NAME} printable characters")
        if not 0 < len(text) <= LONGEST_TEXT or "\0" in text:
            raise Invalid(f"the text of a reason has 1 to {LONGEST_TEXT} characters")
        return Wanted(name, text, self.use)


class Reasons:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, caller: Principal) -> Views:
        """All reasons of the tenant, by name."""
        caller.require(Scope.ITEMS_READ)
        saved = await self._store.read(caller.tenant, reasons.all_of_tenant)
        return [_view(reason) for reason in saved]

    async def create(self, caller: Principal, wanted: Wanted, *, key: str | None = None) -> View:
        caller.require(Scope.POLICY_WRITE)
        checked = wanted.checked()

        def act(tx: Tx) -> View:
            return _view(_create(tx, caller, checked))

        request = ("reason", checked.name, checked.text, checked.use)
        made: View = await self._store.write(caller.tenant, idempotency.once, caller.actor, key, request, act)
        return made

    async def update(self, caller: Principal, reason_id: str, wanted: Wanted) -> View:
        caller.require(Scope.POLICY_WRITE)
        return _view(await self._store.write(caller.tenant, _update, caller, reason_id, wanted.checked()))

    async def remove(self, caller: Principal, reason_id: str) -> View:
        caller.require(Scope.POLICY_WRITE)
        return _view(await self._store.write(caller.tenant, _remove, caller, reason_id))


def _view(reason: Reason) -> View:
    facts = {"id": reason.id, "name": reason.name, "text": reason.text, "use": reason.use}
    return {**facts, "created_at": reason.created_at.isoformat()}


def _create(tx: Tx, caller: Principal, wanted: Wanted) -> Reason:
    if len(reasons.all_of_tenant(tx)) >= MOST:
        raise Conflict(f"there are {MOST} reasons, the maximum", hint="remove one first")
    reason = Reason(new_id(), wanted.name, wanted.text, wanted.use, tx.now())
    _insert(tx, reason)
    events.append(tx, caller, "reason.created", reason.subject, {"name": reason.name, "use": reason.use})
    return reason


def _update(tx: Tx, caller: Principal, reason_id: str, wanted: Wanted) -> Reason:
    before = _require(tx, reason_id)
    reason = Reason(before.id, wanted.name, wanted.text, wanted.use, before.created_at)
    reasons.remove(tx, reason_id)
    _insert(tx, reason)
    events.append(tx, caller, "reason.changed", reason.subject, {"name": reason.name, "use": reason.use})
    return reason


def _remove(tx: Tx, caller: Principal, reason_id: str) -> Reason:
    reason = _require(tx, reason_id)
    reasons.remove(tx, reason_id)
    events.append(tx, caller, "reason.removed", reason.subject, {"name": reason.name})
    return reason


def _insert(tx: Tx, reason: Reason) -> None:
    if not reasons.insert(tx, reason):
        raise AlreadyExists(f"there is a reason {reason.name!r} already")


def _require(tx: Tx, reason_id: str) -> Reason:
    reason = reasons.get(tx, reason_id)
    if reason is None:
        raise NotFound(f"reason {reason_id!r} not found")
    return reason
