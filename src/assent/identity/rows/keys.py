"""API keys. Only the SHA-256 of a secret is stored."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Row, bindparam, func, select, update

from assent.identity.model.access import Kind, Role, Scope, known_scopes
from assent.identity.model.keys import ApiKey
from assent.kernel.store.paging import Keyset, Page
from assent.kernel.store.tables import TENANT, api_keys, users
from assent.kernel.store.transaction import Tx

_WITH_OWNER = select(api_keys, users.c.name.label("owner"), users.c.role, users.c.disabled_at).outerjoin(
    users, (users.c.tenant_id == api_keys.c.tenant_id) & (users.c.user_id == api_keys.c.user_id)
)
_ALL = _WITH_OWNER.where(api_keys.c.tenant_id == TENANT)
_BY_ID = _ALL.where(api_keys.c.key_id == bindparam("key_id"))
_BY_HASH = _WITH_OWNER.where(api_keys.c.hash == bindparam("hash"))
_HELD = _ALL.where(api_keys.c.hash == bindparam("hash"))
_OF_PRINCIPAL = _ALL.where(
    api_keys.c.kind == bindparam("kind"),
    func.coalesce(api_keys.c.user_id, api_keys.c.principal_id, api_keys.c.key_id) == bindparam("principal"),
)
_AGENTS = (
    select(api_keys.c.principal_id, api_keys.c.name)
    .where(api_keys.c.tenant_id == TENANT, api_keys.c.kind == bindparam("kind"), api_keys.c.principal_id.is_not(None))
    .where((api_keys.c.principal_id == bindparam("named")) | (api_keys.c.name == bindparam("named")))
    .distinct()
)
_ANY = select(api_keys.c.key_id).where(api_keys.c.revoked_at.is_(None)).limit(1)
_THIS = update(api_keys).where(api_keys.c.tenant_id == TENANT, api_keys.c.key_id == bindparam("this"))
_REVOKE = _THIS.where(api_keys.c.revoked_at.is_(None)).values(revoked_at=bindparam("at"))
_EXPIRE = _THIS.values(expires_at=bindparam("at"))
_TOUCH = _THIS.values(last_used_at=bindparam("at"))
_ORDER = Keyset((api_keys.c.created_at, api_keys.c.key_id), descending=True)


def insert(
    tx: Tx,
    *,
    key_id: str,
    kind: Kind,
    name: str,
    user_id: str | None,
    principal_id: str | None = None,
    token_hash: str,
    scopes: frozenset[Scope],
    expires_at: datetime | None,
) -> None:
    """A program's key without a principal creates a new agent or service."""
    tx.insert(
        api_keys,
        key_id=key_id,
        kind=kind,
        name=name,
        user_id=user_id,
        principal_id=None if user_id else principal_id or key_id,
        hash=token_hash,
        scopes=sorted(scopes),
        created_at=tx.now(),
        expires_at=expires_at,
    )


def by_hash(tx: Tx, token_hash: str) -> ApiKey | None:
    """Needs a transaction across tenants: the key determines the tenant."""
    return _key(tx, tx.first(_BY_HASH, hash=token_hash))


def held(tx: Tx, token_hash: str) -> ApiKey | None:
    """As `by_hash`, of this tenant."""
    return _key(tx, tx.first(_HELD, hash=token_hash))


def of_principal(tx: Tx, kind: Kind, principal_id: str) -> list[ApiKey]:
    return [_from_row(row, tx.now()) for row in tx.all(_OF_PRINCIPAL, kind=kind, principal=principal_id)]


def by_id(tx: Tx, key_id: str) -> ApiKey | None:
    return _key(tx, tx.first(_BY_ID, key_id=key_id))


def agents(tx: Tx, kind: Kind, named: str) -> list[tuple[str, str]]:
    """The agents or services with this id or name, each as its id and its name. An id is unique."""
    programs = [(row.principal_id, row.name) for row in tx.all(_AGENTS, kind=kind, named=named)]
    return [program for program in programs if program[0] == named] or programs


def page(tx: Tx, *, limit: int, cursor: str | None) -> Page[ApiKey]:
    return _ORDER.page(tx, _ALL, partial(_from_row, now=tx.now()), limit=limit, cursor=cursor)


def any_active(tx: Tx) -> bool:
    return tx.first(_ANY) is not None


def revoke(tx: Tx, key_id: str) -> bool:
    return tx.change(_REVOKE, this=key_id, at=tx.now()) == 1


def expire(tx: Tx, key_id: str, at: datetime) -> None:
    tx.change(_EXPIRE, this=key_id, at=at)


def touch(tx: Tx, key_id: str) -> None:
    tx.change(_TOUCH, this=key_id, at=tx.now())


def _key(tx: Tx, row: Row[Any] | None) -> ApiKey | None:
    return None if row is None else _from_row(row, tx.now())


def _from_row(row: Row[Any], now: datetime) -> ApiKey:
    return ApiKey(
        id=row.key_id,
        tenant=row.tenant_id,
        kind=Kind(row.kind),
        name=row.name,
        user_id=row.user_id,
        owner=row.owner,
        scopes=known_scopes(row.scopes),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
        role=Role(row.role) if row.role else None,
        owner_disabled=row.disabled_at is not None,
        principal_id=row.user_id or row.principal_id or row.key_id,
        read_at=now,
    )
