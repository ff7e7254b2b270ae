"""The records of logins and sign-ins that all processes of an installation share, encrypted.

A sign-in is made by the process whose run needs it, and the person comes back to any process that serves. So the one
keeps its page here, with a lease, and finds the person's answer here; the other one finds how it ended.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import Row

from assent.assistant.mcp.login import rows
from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.cipher import Cipher, Undecipherable
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx

LEASE = timedelta(minutes=1)
"""How long a link is good after its process has last looked for the answer."""

Login = dict[str, Any]


class Records:
    """A login belongs to the installation, so its records are those of the default tenant."""

    def __init__(self, store: Store, cipher: Cipher) -> None:
        self._store = store
        self._cipher = cipher

    async def login(self, url: str) -> Login:
        """The tokens and the registration at this server; empty without any that this secret decrypts."""
        row = await self._store.read(DEFAULT_TENANT, rows.get, _hash(url))
        return self._opened(row.login if row else None, "login", _hash(url)) or {}

    async def change_login(self, url: str, changes: Mapping[str, Any]) -> None:
        await self._store.write(DEFAULT_TENANT, self._change_login, _hash(url), changes)

    async def offer(self, url: str, id: str, state: str, page: str) -> None:
        """Begins a sign-in; it replaces an earlier one. `page` is that of the authorization server."""
        await self._store.write(DEFAULT_TENANT, self._offer, _hash(url), id, _hash(state), page)

    async def offered(self, url: str) -> str | None:
        """The id of the sign-in that a process waits for."""
        return await self._store.read(DEFAULT_TENANT, _offered, _hash(url))

    async def begin(self, id: str, person: str) -> str | None:
        """The page where this person signs in; None if no process waits for it any more."""
        return await self._store.write(DEFAULT_TENANT, self._begin, id, person)

    async def look(self, url: str, state: str) -> tuple[bool, Any]:
        """Whether the sign-in is still wanted, and the person's answer, if there is one. Renews the lease."""
        return await self._store.write(DEFAULT_TENANT, self._look, _hash(url), _hash(state))

    async def answer(self, state: str, code: str, issuer: str | None, person: str) -> bool:
        """Keeps the answer for the process that waits; False if none does, or if the person has not begun it."""
        return await self._store.write(DEFAULT_TENANT, self._answer, _hash(state), [code, issuer], person)

    async def end(self, state: str, *, done: bool) -> None:
        await self._store.write(DEFAULT_TENANT, _end, _hash(state), done)

    async def ended(self, state: str) -> bool | None:
        """How the sign-in ended; None while it goes on."""
        row = await self._store.read(DEFAULT_TENANT, rows.of_state, _hash(state))
        return row.done if row else False

    def _change_login(self, tx: Tx, server: str, changes: Mapping[str, Any]) -> None:
        before = self._opened(rows.lock(tx, server).login, "login", server) or {}
        rows.change(tx, server, login=self._sealed({**before, **changes}, "login", server))

    def _offer(self, tx: Tx, server: str, id: str, state: str, page: str) -> None:
        rows.lock(tx, server)
        sealed = self._sealed(page, "page", server)
        begun = {"sign_in": id, "state": state, "page": sealed, "people": [], "until": tx.now() + LEASE}
        rows.change(tx, server, **begun, answer=None, done=None)

    def _begin(self, tx: Tx, id: str, person: str) -> str | None:
        row = rows.lock_sign_in(tx, id)
        if row is None or not _waits(tx, row):
            return None
        if person not in row.people:
            rows.change(tx, row.server, people=[*row.people, person])
        page: str | None = self._opened(row.page, "page", row.server)
        return page

    def _look(self, tx: Tx, server: str, state: str) -> tuple[bool, Any]:
        row = rows.lock(tx, server)
        if row.state != state or row.done is not None:
            return False, None
        rows.change(tx, server, until=tx.now() + LEASE)
        return True, self._opened(row.answer, "answer", server)

    def _answer(self, tx: Tx, state: str, answer: Any, person: str) -> bool:
        row = rows.lock_of_state(tx, state)
        if row is None or not _waits(tx, row) or row.answer is not None or person not in row.people:
            return False
        rows.change(tx, row.server, answer=self._sealed(answer, "answer", row.server))
        return True

    def _sealed(self, value: Any, column: str, server: str) -> bytes:
        return self._cipher.seal(json.dumps(value).encode(), f"{column} {server}".encode())

    def _opened(self, sealed: bytes | None, column: str, server: str) -> Any:
        """None without a value, and for one that was stored with another secret."""
        if sealed is None:
            return None
        try:
            return json.loads(self._cipher.open(sealed, f"{column} {server}".encode()))
        except Undecipherable:
            return None


def _offered(tx: Tx, server: str) -> str | None:
    row = rows.get(tx, server)
    return row.sign_in if row is not None and _waits(tx, row) else None


def _waits(tx: Tx, row: Row[Any]) -> bool:
    return row.done is None and row.until is not None and row.until > tx.now()


def _end(tx: Tx, state: str, done: bool) -> None:
    row = rows.lock_of_state(tx, state)
    if row is not None and row.done is None:
        rows.change(tx, row.server, done=done, page=None, answer=None, until=None)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
