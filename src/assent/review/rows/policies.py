"""The policy versions of a tenant, and its standing approvals.

Without a policy, every call asks: a missing policy must not open the gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

from sqlalchemy import Row, bindparam, select, update

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.kernel.store.paging import Keyset, Page
from assent.kernel.store.tables import TENANT, standing_approvals
from assent.kernel.store.tables import policies as table
from assent.kernel.store.transaction import Tx
from assent.review.model import policies
from assent.review.model.policies import Call, Policy, StandingApproval

_ALL = select(table).where(table.c.tenant_id == TENANT)
_LATEST = _ALL.order_by(table.c.version.desc()).limit(1)
_LATEST_OF_SOURCE = _LATEST.where(table.c.source == bindparam("from_source"))
_VERSION = _ALL.where(table.c.version == bindparam("number"))
_BY_VERSION = Keyset((table.c.version,), descending=True)
_APPROVALS = select(standing_approvals).where(standing_approvals.c.tenant_id == TENANT)
_APPROVAL = _APPROVALS.where(standing_approvals.c.approval_id == bindparam("id"))
_FOR_TOOL = (
    _APPROVALS.where(
        standing_approvals.c.tool == bindparam("tool"),
        standing_approvals.c.revoked_at.is_(None),
        standing_approvals.c.expires_at > bindparam("now"),
    )
    .order_by(standing_approvals.c.created_at)
    .with_for_update()
)
_APPROVALS_OF = _APPROVALS.where(
    standing_approvals.c.actor == bindparam("whose"),
    standing_approvals.c.revoked_at.is_(None),
    standing_approvals.c.expires_at > bindparam("now"),
)
_THIS_APPROVAL = update(standing_approvals).where(
    standing_approvals.c.tenant_id == TENANT, standing_approvals.c.approval_id == bindparam("id")
)
_USE = _THIS_APPROVAL.values(uses=standing_approvals.c.uses + 1, uses_left=standing_approvals.c.uses_left - 1)
_REVOKE = _THIS_APPROVAL.where(standing_approvals.c.revoked_at.is_(None)).values(revoked_at=bindparam("now"))
_NEWEST = Keyset((standing_approvals.c.created_at, standing_approvals.c.approval_id), descending=True)


@dataclass(frozen=True, slots=True)
class Version:
    number: int
    policy: Json
    hash: str
    source: str
    actor: str
    created_at: datetime | None = None

    def parsed(self) -> Policy:
        return _parsed(self.hash, canonical.text(self.policy))


def in_force(tx: Tx) -> Version:
    row = tx.first(_LATEST)
    return _none() if row is None else _version(row)


def latest_of(tx: Tx, source: str) -> Version | None:
    row = tx.first(_LATEST_OF_SOURCE, from_source=source)
    return None if row is None else _version(row)


def get(tx: Tx, number: int) -> Version | None:
    row = tx.first(_VERSION, number=number)
    return None if row is None else _version(row)


def put(tx: Tx, policy: Policy, *, source: str, actor: str) -> Version:
    """The next version. The caller has locked the timeline, so that concurrent versions get different numbers."""
    document = policies.to_json(policy)
    version = Version(in_force(tx).number + 1, document, policies.digest(policy), source, actor, tx.now())
    tx.insert(
        table,
        version=version.number,
        policy=document,
        hash=version.hash,
        source=source,
        actor=actor,
        created_at=tx.now(),
    )
    return version


def page(tx: Tx, *, limit: int, cursor: str | None) -> Page[Version]:
    return _BY_VERSION.page(tx, _ALL, _version, limit=limit, cursor=cursor)


def insert_approval(tx: Tx, **columns: Any) -> None:
    tx.insert(standing_approvals, uses=0, created_at=tx.now(), **columns)


def approval(tx: Tx, approval_id: str) -> Row[Any] | None:
    return tx.first(_APPROVAL, id=approval_id)


def approvals(tx: Tx, *, limit: int, cursor: str | None) -> Page[Row[Any]]:
    return _NEWEST.page(tx, _APPROVALS, lambda row: row, limit=limit, cursor=cursor)


def approvals_of(tx: Tx, actor: str) -> Sequence[Row[Any]]:
    """The approvals of this person that are still usable."""
    return tx.all(_APPROVALS_OF, whose=actor, now=tx.now())


def revoke_approval(tx: Tx, approval_id: str) -> bool:
    return tx.change(_REVOKE, id=approval_id, now=tx.now()) == 1


def use_approval(tx: Tx, call: Call) -> StandingApproval | None:
    """The approval that covers this call, with one use less; None if there is none."""
    rows = tx.all(_FOR_TOOL, tool=call.tool, now=tx.now())
    approval_used = next(
        (approval for approval in map(_approval, rows) if policies.covers(approval, call, tx.now())), None
    )
    if approval_used is not None:
        tx.change(_USE, id=approval_used.id)
    return approval_used


@cache
def _none() -> Version:
    """The default without any stored policy."""
    return Version(0, policies.to_json(policies.ASK_ALL), policies.digest(policies.ASK_ALL), "none", "system")


@lru_cache(maxsize=64)
def _parsed(_hash: str, text: str) -> Policy:
    return policies.stored(canonical.parse(text))


def _version(row: Row[Any]) -> Version:
    return Version(row.version, row.policy, row.hash, row.source, row.actor, row.created_at)


def _approval(row: Row[Any]) -> StandingApproval:
    return StandingApproval(
        id=row.approval_id,
        tool=row.tool,
        graph=row.graph,
        agent=row.agent,
        condition=row.condition,
        args_hash=row.args_hash,
        expires_at=row.expires_at,
        uses_left=row.uses_left,
        revoked_at=row.revoked_at,
    )
