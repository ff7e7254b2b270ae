"""Challenges as rows, stored as hashes only. Deleting a row uses the challenge up."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import bindparam, delete, select

from assent.kernel.ids import token_hash
from assent.kernel.store.tables import TENANT, challenges
from assent.kernel.store.transaction import Tx

_ONE = select(challenges).where(
    challenges.c.tenant_id == TENANT,
    challenges.c.hash == bindparam("hash"),
    challenges.c.user_id == bindparam("whose"),
)
_SPEND = delete(challenges).where(challenges.c.tenant_id == TENANT, challenges.c.hash == bindparam("hash"))
_REPLACE = delete(challenges).where(
    challenges.c.tenant_id == TENANT,
    challenges.c.user_id == bindparam("whose"),
    challenges.c.subject == bindparam("about"),
)
_FORGET = delete(challenges).where(challenges.c.tenant_id == TENANT, challenges.c.user_id == bindparam("whose"))
_EXPIRED = delete(challenges).where(challenges.c.expires_at <= bindparam("now"))


def give(tx: Tx, challenge: str, *, user_id: str, subject: str, bound: str, lifetime: timedelta) -> None:
    """Replaces the person's challenge for the same subject."""
    tx.change(_REPLACE, whose=user_id, about=subject)
    tx.insert(
        challenges,
        hash=token_hash(challenge),
        user_id=user_id,
        subject=subject,
        bound=bound,
        expires_at=tx.now() + lifetime,
    )


def spend(tx: Tx, challenge: str, *, user_id: str) -> str | None:
    """The purpose of the person's challenge, once; None where it was used, has expired or was never issued."""
    row = tx.first(_ONE, hash=token_hash(challenge), whose=user_id)
    if row is None or row.expires_at <= tx.now() or tx.change(_SPEND, hash=token_hash(challenge)) != 1:
        return None
    bound: str = row.bound
    return bound


def forget(tx: Tx, user_id: str) -> None:
    tx.change(_FORGET, whose=user_id)


def delete_expired(tx: Tx) -> int:
    """Needs a transaction across tenants."""
    return tx.change(_EXPIRED, now=tx.now())
