"""The people of a tenant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, func, select, update

from assent.identity.model.access import Role
from assent.identity.model.users import User
from assent.kernel.store.paging import Keyset, Page
from assent.kernel.store.tables import TENANT, users
from assent.kernel.store.transaction import Tx

_ALL = select(users).where(users.c.tenant_id == TENANT)
_BY_NAME = _ALL.where(users.c.name == bindparam("name"))
_BY_ID = _ALL.where(users.c.user_id == bindparam("user_id"))
_HOLD = _BY_ID.with_for_update(read=True)
_LOCK_ADMINS = (
    _ALL.where(users.c.role == Role.ADMIN, users.c.disabled_at.is_(None)).order_by(users.c.user_id).with_for_update()
)
_ANY = select(func.count()).select_from(users).where(users.c.disabled_at.is_(None))
_THIS = update(users).where(users.c.tenant_id == TENANT, users.c.user_id == bindparam("this"))
_SET_ROLE = _THIS.values(role=bindparam("new_role"))
_SET_GROUPS = _THIS.values(groups=bindparam("new_groups"))
_SET_DISABLED = _THIS.values(disabled_at=bindparam("at"))
_ANONYMISE = _THIS.values(name=bindparam("new_name"), email=None, disabled_at=bindparam("at"))
_ACTIVE = _ALL.where(users.c.disabled_at.is_(None)).order_by(users.c.name)
_ORDER = Keyset((users.c.name,))


def insert(tx: Tx, user: User) -> bool:
    """False where the name is taken."""
    return tx.insert_new(
        users,
        user_id=user.id,
        name=user.name,
        email=user.email,
        role=user.role,
        groups=sorted(user.groups),
        created_at=user.created_at,
    )


def by_name(tx: Tx, name: str) -> User | None:
    return _user(tx.first(_BY_NAME, name=name))


def by_id(tx: Tx, user_id: str) -> User | None:
    return _user(tx.first(_BY_ID, user_id=user_id))


def hold(tx: Tx, user_id: str) -> User | None:
    """As `by_id`, with a lock on the person's rights until the transaction ends."""
    return _user(tx.first(_HOLD, user_id=user_id))


def lock_admins(tx: Tx) -> list[User]:
    """Locks the active administrators. Of two that remove each other one waits for the other."""
    return [_from_row(row) for row in tx.all(_LOCK_ADMINS)]


def page(tx: Tx, *, limit: int, cursor: str | None) -> Page[User]:
    return _ORDER.page(tx, _ALL, _from_row, limit=limit, cursor=cursor)


def active(tx: Tx) -> list[User]:
    """Everyone who is not disabled, by name."""
    return [_from_row(row) for row in tx.all(_ACTIVE)]


def like(tx: Tx, part: str, limit: int) -> list[User]:
    """The active people with a name that contains this part, by name."""
    return [_from_row(row) for row in tx.all(_ACTIVE.where(users.c.name.icontains(part, autoescape=True)).limit(limit))]


def any_active(tx: Tx) -> bool:
    """Whether anyone can sign in. Needs a transaction across tenants."""
    row = tx.first(_ANY)
    return bool(row and row[0])


def set_role(tx: Tx, user_id: str, role: Role) -> None:
    tx.change(_SET_ROLE, this=user_id, new_role=role)


def set_groups(tx: Tx, user_id: str, groups: Iterable[str]) -> None:
    tx.change(_SET_GROUPS, this=user_id, new_groups=sorted(groups))


def set_disabled(tx: Tx, user_id: str, at: datetime | None) -> None:
    tx.change(_SET_DISABLED, this=user_id, at=at)


def anonymise(tx: Tx, user_id: str) -> None:
    tx.change(_ANONYMISE, this=user_id, new_name=f"erased-{user_id}", at=tx.now())


def _user(row: Row[Any] | None) -> User | None:
    return None if row is None else _from_row(row)


def _from_row(row: Row[Any]) -> User:
    return User(
        row.user_id, row.name, row.email, Role(row.role), row.created_at, row.disabled_at, frozenset(row.groups)
    )
