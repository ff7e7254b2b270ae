"""Browser sessions and the one-time links that open them. Both are stored as the hash of their token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, select, update

from assent.identity.model.access import ROLE_SCOPES, Kind, Principal, Role
from assent.kernel.store.tables import TENANT, login_links, sessions, users
from assent.kernel.store.transaction import Tx

_OF_ACTIVE_USER = users.c.disabled_at.is_(None)
_SESSION = (
    select(sessions.c.tenant_id, sessions.c.expires_at, users.c.user_id, users.c.name, users.c.role)
    .join(users, (users.c.tenant_id == sessions.c.tenant_id) & (users.c.user_id == sessions.c.user_id))
    .where(sessions.c.hash == bindparam("hash"), _OF_ACTIVE_USER)
)
_OPENED = select(sessions).where(sessions.c.tenant_id == TENANT, sessions.c.hash == bindparam("hash"))
_LINK = (
    select(
        login_links.c.tenant_id,
        login_links.c.expires_at,
        login_links.c.by_key,
        users.c.user_id,
        users.c.name,
        users.c.role,
    )
    .join(users, (users.c.tenant_id == login_links.c.tenant_id) & (users.c.user_id == login_links.c.user_id))
    .where(login_links.c.hash == bindparam("hash"), _OF_ACTIVE_USER)
)
_SPEND_LINK = delete(login_links).where(login_links.c.hash == bindparam("hash"))
_END = delete(sessions).where(sessions.c.hash == bindparam("hash"))
_END_ALL = delete(sessions).where(sessions.c.tenant_id == TENANT, sessions.c.user_id == bindparam("user_id"))
_SHORTEN = (
    update(sessions)
    .where(sessions.c.tenant_id == TENANT, sessions.c.user_id == bindparam("whose"))
    .where(sessions.c.expires_at > bindparam("until"))
    .values(expires_at=bindparam("until"))
)
_END_LINKS = delete(login_links).where(login_links.c.tenant_id == TENANT, login_links.c.user_id == bindparam("user_id"))
_EXPIRED = [delete(table).where(table.c.expires_at <= bindparam("now")) for table in (sessions, login_links)]


@dataclass(frozen=True, slots=True)
class Opened:
    """How a session began. `by_key`: it depends on an API key, directly or by the link that the key made."""

    at: datetime
    by_key: bool


def insert_link(tx: Tx, token_hash: str, user_id: str, expires_at: datetime, *, by_key: bool) -> None:
    tx.insert(login_links, hash=token_hash, user_id=user_id, expires_at=expires_at, by_key=by_key)


def spend_link(tx: Tx, token_hash: str) -> tuple[Principal, bool] | None:
    """The link's person and whether an API key made it; the link is deleted. Needs a transaction across tenants."""
    row = tx.first(_LINK, hash=token_hash)
    person = _current(tx, row)
    spent = tx.change(_SPEND_LINK, hash=token_hash) == 1
    return (person, row.by_key) if spent and person and row else None


def insert(tx: Tx, token_hash: str, principal: Principal, expires_at: datetime, *, by_key: bool) -> None:
    tx.insert(
        sessions,
        hash=token_hash,
        user_id=principal.id,
        created_at=tx.now(),
        expires_at=expires_at,
        by_key=by_key,
    )


def opened(tx: Tx, token_hash: str) -> Opened | None:
    row = tx.first(_OPENED, hash=token_hash)
    return None if row is None or row.expires_at <= tx.now() else Opened(row.created_at, row.by_key)


def find(tx: Tx, token_hash: str) -> Principal | None:
    return _current(tx, tx.first(_SESSION, hash=token_hash))


def end(tx: Tx, token_hash: str) -> bool:
    return tx.change(_END, hash=token_hash) == 1


def end_all(tx: Tx, user_id: str) -> None:
    """Signs a person out everywhere and voids their unused login links."""
    tx.change(_END_ALL, user_id=user_id)
    end_links(tx, user_id)


def end_by(tx: Tx, user_id: str, until: datetime) -> None:
    """Ends a person's sessions at this time at the latest."""
    tx.change(_SHORTEN, whose=user_id, until=until)


def end_links(tx: Tx, user_id: str) -> None:
    """Voids a person's unused login links: they were made for the person's earlier rights."""
    tx.change(_END_LINKS, user_id=user_id)


def delete_expired(tx: Tx) -> int:
    return sum(tx.change(statement, now=tx.now()) for statement in _EXPIRED)


def _current(tx: Tx, row: Row[Any] | None) -> Principal | None:
    if row is None or row.expires_at <= tx.now():
        return None
    return Principal(Kind.REVIEWER, row.user_id, row.name, row.tenant_id, ROLE_SCOPES[Role(row.role)])
