"""Logins and sign-ins as rows, one for each MCP server."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, bindparam, select, update

from assent.kernel.store.tables import TENANT, mcp_logins
from assent.kernel.store.transaction import Tx

_ONE = (mcp_logins.c.tenant_id == TENANT, mcp_logins.c.server == bindparam("at"))
_BY_SERVER = select(mcp_logins).where(*_ONE)
_LOCK = _BY_SERVER.with_for_update()
_BY_STATE = select(mcp_logins).where(mcp_logins.c.tenant_id == TENANT, mcp_logins.c.state == bindparam("wanted"))
_LOCK_BY_STATE = _BY_STATE.with_for_update()
_LOCK_SIGN_IN = (
    select(mcp_logins)
    .where(mcp_logins.c.tenant_id == TENANT, mcp_logins.c.sign_in == bindparam("id"))
    .with_for_update()
)
_CHANGE = update(mcp_logins).where(*_ONE)

_EMPTY = dict.fromkeys(("login", "sign_in", "state", "page", "people", "answer", "done", "until"))


def get(tx: Tx, server: str) -> Row[Any] | None:
    return tx.first(_BY_SERVER, at=server)


def lock(tx: Tx, server: str) -> Row[Any]:
    """The row, made if it is missing."""
    row = tx.first(_LOCK, at=server)
    if row is None:
        tx.insert_new(mcp_logins, server=server, **_EMPTY)
        row = tx.first(_LOCK, at=server)
    assert row is not None
    return row


def of_state(tx: Tx, state: str) -> Row[Any] | None:
    return tx.first(_BY_STATE, wanted=state)


def lock_of_state(tx: Tx, state: str) -> Row[Any] | None:
    return tx.first(_LOCK_BY_STATE, wanted=state)


def lock_sign_in(tx: Tx, id: str) -> Row[Any] | None:
    return tx.first(_LOCK_SIGN_IN, id=id)


def change(tx: Tx, server: str, **columns: Any) -> None:
    tx.change(_CHANGE.values(**columns), at=server)
