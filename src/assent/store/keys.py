"""API keys. The secret itself is never here, only its SHA-256."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, select, update

from assent.domain.access import Kind, Role, Scope
from assent.domain.keys import ApiKey
from assent.store.paging import Keyset, Page
from assent.store.tables import TENANT, api_keys, users
from assent.store.transaction import Tx

_WITH_OWNER = select(api_keys, users.c.name.label("owner"), users.c.role, users.c.disabled_at).outerjoin(
    users, (users.c.tenant_id == api_keys.c.tenant_id) & (users.c.user_id == api_keys.c.user_id)
)
_ALL = _WITH_OWNER.where(api_keys.c.tenant_id == TENANT)
_BY_ID = _ALL.where(api_keys.c.key_id == bindparam("key_id"))
_BY_HASH = _WITH_OWNER.where(api_keys.c.hash == bindparam("hash"))
_ANY = select(api_keys.c.key_id).where(api_keys.c.revoked_at.is_(None)).limit(1)
_THIS = update(api_keys).where(api_keys.c.tenant_id == TENANT, api_keys.c.key_id == bindparam("this"))
_REVOKE = _THIS.where(api_keys.c.revoked_at.is_(None)).values(revoked_at=bindparam("at"))
_TOUCH = _THIS.values(last_used_at=bindparam("at"))
_ORDER = Keyset((api_keys.c.created_at, api_keys.c.key_id), descending=True)


def insert(
    tx: Tx,
    *,
    key_id: str,
    kind: Kind,
    name: str,
    user_id: str | None,
    token_hash: str,
    scopes: frozenset[Scope],
    expires_at: datetime | None,
) -> None:
    tx.insert(
        api_keys,
        key_id=key_id,
        kind=kind,
        name=name,
        user_id=user_id,
        hash=token_hash,
        scopes=sorted(scopes),
        created_at=tx.now(),
        expires_at=expires_at,
    )


def by_hash(tx: Tx, token_hash: str) -> ApiKey | None:
    """Needs a transaction across tenants: the key is what names the tenant."""
    return _key(tx.first(_BY_HASH, hash=token_hash))


def by_id(tx: Tx, key_id: str) -> ApiKey | None:
    return _key(tx.first(_BY_ID, key_id=key_id))


def page(tx: Tx, *, limit: int, cursor: str | None) -> Page[ApiKey]:
    return _ORDER.page(tx, _ALL, _known, limit=limit, cursor=cursor)


def any_active(tx: Tx) -> bool:
    return tx.first(_ANY) is not None


def revoke(tx: Tx, key_id: str) -> bool:
    return tx.change(_REVOKE, this=key_id, at=tx.now()) == 1


def touch(tx: Tx, key_id: str) -> None:
    tx.change(_TOUCH, this=key_id, at=tx.now())


def _key(row: Row[Any] | None) -> ApiKey | None:
    return None if row is None else _known(row)


def _known(row: Row[Any]) -> ApiKey:
    return ApiKey(
        id=row.key_id,
        tenant=row.tenant_id,
        kind=Kind(row.kind),
        name=row.name,
        user_id=row.user_id,
        owner=row.owner,
        scopes=frozenset(map(Scope, row.scopes)),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
        role=Role(row.role) if row.role else None,
        owner_disabled=row.disabled_at is not None,
    )
