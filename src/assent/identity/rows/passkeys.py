"""Passkeys as rows: public keys only, the private ones never leave their owners' devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, bindparam, delete, select, update

from assent.identity.model.passkeys import Passkey
from assent.kernel.store.tables import TENANT, passkeys, users
from assent.kernel.store.transaction import Tx

_ALL = select(passkeys).where(passkeys.c.tenant_id == TENANT)
_OF_PERSON = _ALL.where(passkeys.c.user_id == bindparam("whose")).order_by(passkeys.c.created_at, passkeys.c.passkey_id)
_ONE = _ALL.where(passkeys.c.passkey_id == bindparam("id"))
_LOCK = _ALL.where(passkeys.c.credential_id == bindparam("credential")).with_for_update()
_EVERYONE = _ALL.order_by(passkeys.c.user_id, passkeys.c.created_at, passkeys.c.passkey_id)
_HOLDERS = (
    select(users)
    .where(users.c.tenant_id == TENANT, users.c.disabled_at.is_(None))
    .where(
        users.c.user_id.in_(select(passkeys.c.user_id).where(passkeys.c.tenant_id == TENANT).distinct()),
    )
)
_THIS = (passkeys.c.tenant_id == TENANT, passkeys.c.passkey_id == bindparam("this"))
_USE = update(passkeys).where(*_THIS).values(sign_count=bindparam("count"), last_used_at=bindparam("at"))
_RENAME = update(passkeys).where(*_THIS).values(name=bindparam("new_name"))
_REMOVE = delete(passkeys).where(*_THIS)
_REMOVE_ALL = delete(passkeys).where(passkeys.c.tenant_id == TENANT, passkeys.c.user_id == bindparam("whose"))


def insert(tx: Tx, passkey: Passkey) -> bool:
    """False where this passkey is registered already, for any person."""
    return tx.insert_new(
        passkeys,
        passkey_id=passkey.id,
        user_id=passkey.user_id,
        credential_id=passkey.credential_id,
        public_key=passkey.public_key,
        sign_count=passkey.sign_count,
        party=passkey.party,
        name=passkey.name,
        transports=list(passkey.transports),
        created_at=passkey.created_at,
    )


def of_person(tx: Tx, user_id: str) -> list[Passkey]:
    return [_from_row(row) for row in tx.all(_OF_PERSON, whose=user_id)]


def of_everyone(tx: Tx) -> list[Passkey]:
    return [_from_row(row) for row in tx.all(_EVERYONE)]


def get(tx: Tx, passkey_id: str) -> Passkey | None:
    return _passkey(tx.first(_ONE, id=passkey_id))


def lock(tx: Tx, credential_id: str) -> Passkey | None:
    """Locks the passkey that signed until this transaction ends."""
    return _passkey(tx.first(_LOCK, credential=credential_id))


def holders(tx: Tx) -> Sequence[Row[Any]]:
    """The people who could confirm something: active, with at least one passkey."""
    return tx.all(_HOLDERS)


def use(tx: Tx, passkey_id: str, sign_count: int) -> None:
    tx.change(_USE, this=passkey_id, count=sign_count, at=tx.now())


def rename(tx: Tx, passkey_id: str, name: str) -> None:
    tx.change(_RENAME, this=passkey_id, new_name=name)


def remove(tx: Tx, passkey_id: str) -> bool:
    return tx.change(_REMOVE, this=passkey_id) == 1


def remove_all(tx: Tx, user_id: str) -> int:
    return tx.change(_REMOVE_ALL, whose=user_id)


def _passkey(row: Row[Any] | None) -> Passkey | None:
    return None if row is None else _from_row(row)


def _from_row(row: Row[Any]) -> Passkey:
    return Passkey(
        id=row.passkey_id,
        user_id=row.user_id,
        credential_id=row.credential_id,
        public_key=bytes(row.public_key),
        sign_count=row.sign_count,
        party=row.party,
        name=row.name,
        transports=tuple(row.transports),
        created_at=row.created_at,
        last_used_at=row.last_used_at,
    )
