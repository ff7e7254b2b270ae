"""From a credential to a principal: API keys, browser sessions, one-time links.

A key's principal is remembered for less than a second, so that busy callers do not cost a query each time and a
revocation still takes effect within a second in every process.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timedelta

from assent.domain.access import SCOPE_CEILING, Kind, Principal, operator
from assent.domain.ids import new_token, token_hash
from assent.domain.keys import PREFIX, ApiKey
from assent.errors import Forbidden, Unauthenticated
from assent.ports import Store
from assent.store import events, keys, sessions, users
from assent.store.transaction import Tx

_REMEMBER_SECONDS = 0.5
_MOST_REMEMBERED = 4096
_NOTE_USE_EVERY = timedelta(hours=1)
_KEY, _SESSION = "key", "session"


def is_key(credential: str) -> bool:
    return credential.startswith(f"{PREFIX}_")


def is_answerable(caller: Principal) -> bool:
    """A person, or whoever holds the database: what widens what a program may do by itself is not done by programs."""
    return caller.kind is Kind.REVIEWER or caller == operator(caller.tenant)


def require_person(caller: Principal) -> None:
    """Credentials of people are made by people, or by whoever holds the database: a program that could make itself a
    reviewer's key, or sign itself in as a reviewer, could decide."""
    if not is_answerable(caller):
        raise Forbidden(f"a {caller.kind} cannot make credentials of a person", hint="ask an administrator")


class Access:
    def __init__(self, store: Store, *, session_lifetime: timedelta) -> None:
        self._store = store
        self._session_lifetime = session_lifetime
        self._recent: dict[str, tuple[float, Principal]] = {}

    async def by_key(self, secret: str) -> Principal:
        """The holder of an API key; raises for one that is unknown, expired or revoked, without saying which."""
        if not is_key(secret):
            raise Unauthenticated("that is not an Assent API key")
        return self._remembered(hashed := token_hash(secret)) or await self._look_up(hashed)

    async def by_session(self, token: str) -> Principal:
        principal = await self._store.read(None, holder, f"{_SESSION}:{token_hash(token)}")
        if principal is None:
            raise Unauthenticated("the session has ended", hint="sign in again")
        return principal

    async def sign_in_by_link(self, token: str) -> tuple[Principal, str]:
        """Spends a one-time link and opens a session. The link works once, whoever comes second gets nothing."""
        principal = await self._store.write(None, sessions.spend_link, token_hash(token))
        if principal is None:
            raise Unauthenticated(
                "this sign-in link was used or has expired", hint="make a new one: assent users login-link NAME"
            )
        return principal, await self._open_session(principal, by="link")

    async def sign_in_by_key(self, secret: str) -> tuple[Principal, str]:
        """Opens a session for the person a reviewer key belongs to; agents and services have no pages.

        A session has all the rights of its person, so a key that was given fewer does not open one."""
        principal = await self.by_key(secret)
        if principal.kind is not Kind.REVIEWER:
            raise Unauthenticated(
                f"a key of kind {principal.kind} does not sign a person in", hint="use a reviewer key"
            )
        return principal, await self._open_session(principal, by="key")

    async def sign_out(self, token: str) -> None:
        await self._store.write(None, sessions.end, token_hash(token))

    async def configured(self) -> bool:
        """Whether anyone could authenticate at all: an active user or key exists, in any tenant."""
        return await self._store.read(None, lambda tx: users.any_active(tx) or keys.any_active(tx))

    def forget(self) -> None:
        """Rights were changed in this process: what it remembers of them is not true any more."""
        self._recent.clear()

    def _remembered(self, hashed: str) -> Principal | None:
        until, principal = self._recent.get(hashed, (0.0, None))
        return principal if time.monotonic() < until else None

    async def _look_up(self, hashed: str) -> Principal:
        key, now = await self._store.read(None, lambda tx: (keys.by_hash(tx, hashed), tx.now()))
        if key is None or not key.usable(now):
            raise Unauthenticated("the API key is unknown, expired or revoked")
        if key.last_used_at is None or now - key.last_used_at > _NOTE_USE_EVERY:
            await self._store.write(key.tenant, keys.touch, key.id)
        return self._remember(hashed, _of_key(key, hashed))

    def _remember(self, hashed: str, principal: Principal) -> Principal:
        if len(self._recent) >= _MOST_REMEMBERED:
            self._recent.clear()
        self._recent[hashed] = (time.monotonic() + _REMEMBER_SECONDS, principal)
        return principal

    async def _open_session(self, principal: Principal, *, by: str) -> str:
        token = new_token("session")
        await self._store.write(
            principal.tenant, _open_session, principal, token_hash(token), self._session_lifetime, by
        )
        return token


def _open_session(tx: Tx, principal: Principal, hashed: str, lifetime: timedelta, by: str) -> None:
    key = keys.by_id(tx, principal.via) if principal.via else None
    sessions.insert(tx, hashed, principal, _session_end(key, tx.now(), lifetime))
    events.append(tx, principal, "session.opened", principal.actor, {"by": by})


def _session_end(key: ApiKey | None, now: datetime, lifetime: timedelta) -> datetime:
    """A session opened by a key ends with it at the latest."""
    if key is None:
        return now + lifetime
    if not key.usable(now) or key.scopes != SCOPE_CEILING[Kind.REVIEWER]:
        raise Unauthenticated("this key does not open a session: it was given only some of its person's rights")
    return min(now + lifetime, key.expires_at) if key.expires_at else now + lifetime


def holder(tx: Tx, credential: str) -> Principal | None:
    """Whoever came with this credential, with the rights they have now; None where it opens nothing any more. Needs a
    transaction across tenants."""
    kind, _, hashed = credential.partition(":")
    if kind == _SESSION:
        person = sessions.find(tx, hashed)
        return person and replace(person, credential=credential)
    key = keys.by_hash(tx, hashed)
    return _of_key(key, hashed) if key and key.usable(tx.now()) else None


def _of_key(key: ApiKey, hashed: str) -> Principal:
    """Whatever a stored row says, an agent or a service does not decide."""
    principal = key.principal()
    scopes = principal.scopes & SCOPE_CEILING[principal.kind]
    return replace(principal, scopes=scopes, credential=f"{_KEY}:{hashed}")
