"""Deployments as rows, with the lease of the process that follows each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import Row, bindparam, delete, func, literal, or_, select, update

from assent.kernel.store.tables import TENANT, deployments
from assent.kernel.store.transaction import Tx
from assent.threads.model.deployments import Deployment, Trouble

BELL = "deployments"
"""Rung by every change of a deployment, for the sync of this process."""

_ALL = select(deployments).where(deployments.c.tenant_id == TENANT).order_by(deployments.c.name)
_ONE = (deployments.c.tenant_id == TENANT, deployments.c.deployment_id == bindparam("id"))
_BY_ID = select(deployments).where(*_ONE)
_LOCK = _BY_ID.with_for_update()
_BY_NAME = _ALL.where(deployments.c.name == bindparam("named"))
_CHANGE = update(deployments).where(*_ONE)
_REMOVE = delete(deployments).where(*_ONE)
_FOLLOWED = select(deployments).where(~deployments.c.paused)
_EVERY = select(deployments).order_by(deployments.c.tenant_id, deployments.c.name)
_OWN = _FOLLOWED.where(deployments.c.leader == bindparam("who")).with_for_update()
_FREE = _FOLLOWED.where(
    or_(
        deployments.c.leader_until.is_(None),
        deployments.c.leader_until <= bindparam("now", type_=deployments.c.leader_until.type),
    )
).with_for_update(skip_locked=True)
_LEAD = update(deployments).where(
    deployments.c.tenant_id == bindparam("owner"), deployments.c.deployment_id == bindparam("id")
)
_OF_WEBHOOK = select(deployments.c.tenant_id, deployments.c.deployment_id).where(
    deployments.c.webhook_hash == bindparam("hash")
)
_RELEASE = update(deployments).where(deployments.c.leader == bindparam("who")).values(leader=None, leader_until=None)
_LED = _BY_ID.where(deployments.c.leader == bindparam("who")).with_for_update(read=True)


def insert(tx: Tx, deployment_id: str, **columns: Any) -> bool:
    """False where the name is taken."""
    tx.ring(BELL)
    now = tx.now()
    return tx.insert_new(
        deployments,
        deployment_id=deployment_id,
        **{"paused": False, "in_file": False, "info": None, "problem": None, "message": None, **columns},
        created_at=now,
        updated_at=now,
    )


def all_of(tx: Tx) -> list[Deployment]:
    return [_deployment(row) for row in tx.all(_ALL)]


def everywhere(tx: Tx) -> list[tuple[str, Deployment]]:
    """All with their tenants. Needs a transaction across tenants."""
    return [(row.tenant_id, _deployment(row)) for row in tx.all(_EVERY)]


def get(tx: Tx, deployment_id: str) -> Deployment | None:
    return _or_none(tx.first(_BY_ID, id=deployment_id))


def lock(tx: Tx, deployment_id: str) -> Deployment | None:
    return _or_none(tx.first(_LOCK, id=deployment_id))


def named(tx: Tx, name: str) -> Deployment | None:
    return _or_none(tx.first(_BY_NAME, named=name))


def change(tx: Tx, deployment_id: str, **columns: Any) -> None:
    tx.change(_CHANGE.values(**columns, updated_at=tx.now()), id=deployment_id)
    tx.ring(BELL)


def remove(tx: Tx, deployment_id: str) -> None:
    tx.change(_REMOVE, id=deployment_id)
    tx.ring(BELL)


def of_webhook(tx: Tx, webhook_hash: str) -> tuple[str, str] | None:
    """The tenant and the id of the deployment with this webhook. Needs a transaction across tenants."""
    row = tx.first(_OF_WEBHOOK, hash=webhook_hash)
    return None if row is None else (row.tenant_id, row.deployment_id)


def call(tx: Tx, deployment_id: str) -> None:
    """Notes that the deployment announced a change."""
    tx.change(_CHANGE.values(called_at=tx.now()), id=deployment_id)
    tx.ring(BELL)


def any_followed(tx: Tx) -> bool:
    """Needs a transaction across tenants."""
    return tx.first(_FOLLOWED.limit(1)) is not None


def lead(tx: Tx, who: str, lease: timedelta) -> list[tuple[str, Deployment]]:
    """Takes or renews the lease of every deployment that no other process follows. Waits for the
    rows of its own deployments: this process locks them while it records what it saw, and must not lose the lease then.
    Needs a transaction across tenants."""
    now = tx.now()
    rows = [*tx.all(_OWN, who=who), *tx.all(_FREE, now=now)]
    led = {(row.tenant_id, row.deployment_id): _deployment(row) for row in rows}
    for tenant, deployment_id in led:
        tx.change(_LEAD.values(leader=who, leader_until=now + lease), owner=tenant, id=deployment_id)
    return [(tenant, deployment) for (tenant, _), deployment in led.items()]


def release(tx: Tx, who: str) -> None:
    """Gives up all leases of a process. Needs a transaction across tenants."""
    tx.change(_RELEASE, who=who)


def is_led(tx: Tx, deployment_id: str, who: str) -> bool:
    """Whether this process still has the lease; it keeps it until the transaction ends."""
    row = tx.first(_LED, id=deployment_id, who=who)
    return row is not None and row.leader_until is not None and row.leader_until > tx.now()


def note_read(tx: Tx, deployment_id: str, *, has_graphs: bool) -> None:
    """Its questions were read. That does not end the problem of an unknown graph, which a check may have noted just
    now; `has_graphs`: the graphs were looked for."""
    before = get(tx, deployment_id)
    well = {"problem": None, "message": None, "failing_since": None}
    keeps = before is not None and before.problem is Trouble.UNKNOWN_GRAPH and not has_graphs
    tx.change(_CHANGE.values(synced_at=tx.now(), **({} if keeps else well)), id=deployment_id)


def note_failure(tx: Tx, deployment_id: str, problem: Trouble, message: str, *, read: bool = False) -> None:
    """`read`: its questions were read nevertheless."""
    synced = {"synced_at": tx.now()} if read else {}
    since = func.coalesce(deployments.c.failing_since, literal(tx.now(), deployments.c.failing_since.type))
    tx.change(_CHANGE.values(problem=problem, message=message, failing_since=since, **synced), id=deployment_id)


def _or_none(row: Row[Any] | None) -> Deployment | None:
    return None if row is None else _deployment(row)


def _deployment(row: Row[Any]) -> Deployment:
    return Deployment(
        id=row.deployment_id,
        name=row.name,
        url=row.url,
        credentials=row.credentials,
        graphs=tuple(row.graphs),
        stringify_args=row.stringify_args,
        paused=row.paused,
        in_file=row.in_file,
        info=row.info,
        problem=Trouble(row.problem) if row.problem else None,
        message=row.message,
        failing_since=row.failing_since,
        synced_at=row.synced_at,
        has_webhook=row.webhook_hash is not None,
        called_at=row.called_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
