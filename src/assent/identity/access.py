"""Resolves a credential to a principal: API keys, browser sessions, one-time links.

A key's principal is cached for less than a second: busy callers do not cost a query each time, and a revocation still
takes effect within a second in every process.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from assent.errors import Forbidden, Unauthenticated
from assent.identity.model.access import SCOPE_CEILING, Kind, Principal, Scope, operator, system
from assent.identity.model.keys import PREFIX, ApiKey
from assent.identity.rows import agents, keys, sessions, users
from assent.kernel import events
from assent.kernel.ids import new_token, token_hash
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx

_REMEMBER_SECONDS = 0.5
_MOST_REMEMBERED = 4096
_NOTE_USE_EVERY = timedelta(hours=1)
_KEY, _SESSION, _USER = "key", "session", "user"


def is_key(credential: str) -> bool:
    return credential.startswith(f"{PREFIX}_")


def came_by_key(caller: Principal) -> bool:
    """Whether the caller used an API key of Assent, rather than a session or nothing."""
    return caller.credential is not None and caller.credential.startswith(f"{_KEY}:")


def is_answerable(caller: Principal) -> bool:
    """Whether the caller is a person or the operator of the database: a program must not widen its own rights."""
    return caller.kind is Kind.REVIEWER or caller == operator(caller.tenant)


def require_person(caller: Principal) -> None:
    """Only people, or the operator of the database, manage people: a program that could create a reviewer's key, sign
    in as a reviewer, or change roles, could decide."""
    if not is_answerable(caller):
        raise Forbidden(
            f"a {caller.kind} cannot manage people or their credentials",
            hint="ask an administrator, who is a person",
            missing=[Kind.REVIEWER.value],
        )


def require_grantable(caller: Principal, scopes: frozenset[Scope]) -> None:
    """Callers grant only rights that their own credential holds. The operator of the database holds all rights. No
    program holds `decide`, so none grants it."""
    missing = sorted(scopes - caller.scopes)
    if missing and caller != operator(caller.tenant):
        raise Forbidden(
            f"{caller.kind} {caller.name!r} cannot grant rights that its own credential lacks: {', '.join(missing)}",
            hint="name fewer scopes, or use a credential that holds them",
            missing=missing,
        )


class Access:
    def __init__(self, store: Store, *, session_lifetime: timedelta) -> None:
        self._store = store
        self._session_lifetime = session_lifetime
        self._recent: dict[str, tuple[float, Principal]] = {}
        self._looking: dict[str, asyncio.Task[Principal]] = {}

    async def by_key(self, secret: str) -> Principal:
        """The principal of an API key. The error does not reveal whether the key is unknown, expired or revoked."""
        if not is_key(secret):
            raise Unauthenticated("that is not an Assent API key")
        return self._remembered(hashed := token_hash(secret)) or await self._look_up_once(hashed)

    async def by_handler(self, user: Principal) -> Principal:
        """The user of the project's auth handler, unless their identity is that of a stored person or agent: rules and
        the timeline could not tell the two apart."""
        known = f"{_USER}:{user.tenant}:{user.actor}"
        if self._remembered(known) is None:
            await self._store.read(user.tenant, _require_own_identity, user)
            self._remember(known, user)
        return user

    async def by_session(self, token: str) -> Principal:
        principal = await self._store.read(None, holder, f"{_SESSION}:{token_hash(token)}")
        if principal is None:
            raise Unauthenticated("the session has ended", hint="sign in again")
        return principal

    async def sign_in_by_link(self, token: str) -> tuple[Principal, str]:
        """Uses up a one-time link and opens a session."""
        spent = await self._store.write(None, sessions.spend_link, token_hash(token))
        if spent is None:
            raise Unauthenticated(
                "this sign-in link was used or has expired", hint="make a new one: assent users login-link NAME"
            )
        principal, by_key = spent
        return principal, await self._open_session(principal, by="link", by_key=by_key)

    async def sign_in_by_key(self, secret: str) -> tuple[Principal, str]:
        """Opens a session for the owner of a reviewer key; agents and services have no pages.

        A session has all the rights of its person, so a key with fewer scopes does not open one."""
        principal = await self.by_key(secret)
        if principal.kind is not Kind.REVIEWER:
            raise Unauthenticated(
                f"a key of kind {principal.kind} does not sign a person in", hint="use a reviewer key"
            )
        return principal, await self._open_session(principal, by="key", by_key=True)

    async def sign_out(self, token: str) -> None:
        await self._store.write(None, sessions.end, token_hash(token))

    async def configured(self) -> bool:
        """Whether anyone could authenticate at all: an active user or key exists, in any tenant."""
        return await self._store.read(None, lambda tx: users.any_active(tx) or keys.any_active(tx))

    def forget(self) -> None:
        """Drops cached principals after a change of rights in this process, including reads under way."""
        self._recent.clear()
        self._looking.clear()

    def _remembered(self, hashed: str) -> Principal | None:
        until, principal = self._recent.get(hashed, (0.0, None))
        return principal if time.monotonic() < until else None

    async def _look_up_once(self, hashed: str) -> Principal:
        """Concurrent requests with the same key share one query."""
        looking = self._looking.get(hashed)
        if looking is None:
            looking = self._looking[hashed] = asyncio.create_task(self._look_up(hashed))
            looking.add_done_callback(partial(self._looked, hashed))
        return await asyncio.shield(looking)

    def _looked(self, hashed: str, looking: asyncio.Task[Principal]) -> None:
        if self._looking.get(hashed) is looking:
            del self._looking[hashed]
        if not looking.cancelled():
            looking.exception()  # retrieved, also where no request waits for it any more

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

    async def _open_session(self, principal: Principal, *, by: str, by_key: bool) -> str:
        token = new_token("session")
        await self._store.write(
            principal.tenant, _open_session, principal, token_hash(token), self._session_lifetime, by, by_key
        )
        return token


def _open_session(tx: Tx, principal: Principal, hashed: str, lifetime: timedelta, by: str, by_key: bool) -> None:
    key = keys.by_id(tx, principal.via) if principal.via else None
    sessions.insert(tx, hashed, principal, _session_end(key, tx.now(), lifetime), by_key=by_key)
    events.append(tx, principal, "session.opened", principal.actor, {"by": by})


def _session_end(key: ApiKey | None, now: datetime, lifetime: timedelta) -> datetime:
    """The end of a session; one opened by a key ends with the key at the latest."""
    if key is None:
        return now + lifetime
    if not key.usable(now) or key.scopes != SCOPE_CEILING[Kind.REVIEWER]:
        raise Unauthenticated("this key cannot open a session: it holds only some of its person's rights")
    return min(now + lifetime, key.expires_at) if key.expires_at else now + lifetime


def _require_own_identity(tx: Tx, user: Principal) -> None:
    taken = "person" if _is_person(tx, user) else "agent" if _is_agent(tx, user) else None
    if taken is not None:
        raise Forbidden(
            f"the identity {user.id!r} of this user is that of a stored {taken}",
            hint="let the auth handler return identities of its own, such as sso:alice",
        )


def _is_person(tx: Tx, user: Principal) -> bool:
    """Rules name people by id or name."""
    if user.actor == system(user.tenant).actor or users.by_id(tx, user.id) is not None:
        return True
    return user.kind is Kind.REVIEWER and users.by_name(tx, user.id) is not None


def _is_agent(tx: Tx, user: Principal) -> bool:
    """A person cannot be taken for an agent: rules name the two in different fields."""
    if user.kind is not Kind.AGENT:
        return False
    stored = keys.agents(tx, Kind.AGENT, user.id) or agents.named(tx, user.id)
    return keys.by_id(tx, user.id) is not None or bool(stored)


def session_of(caller: Principal) -> str | None:
    """The hash of the caller's browser session; None for other credentials."""
    kind, _, hashed = (caller.credential or "").partition(":")
    return hashed if kind == _SESSION else None


def is_by_key(tx: Tx, caller: Principal) -> bool:
    """Whether the caller depends on an API key: the key itself, or a session that it opened or made the link for."""
    if caller == operator(caller.tenant):
        return False
    hashed = session_of(caller)
    opened = sessions.opened(tx, hashed) if hashed else None
    return opened is None or opened.by_key


def holder(tx: Tx, credential: str) -> Principal | None:
    """The principal of this credential with its current rights; None where it is no longer valid. Needs a transaction
    across tenants."""
    kind, _, hashed = credential.partition(":")
    if kind == _SESSION:
        person = sessions.find(tx, hashed)
        return person and replace(person, credential=credential)
    key = keys.by_hash(tx, hashed)
    return _of_key(key, hashed) if key and key.usable(tx.now()) else None


async def renewed(store: Store, caller: Principal) -> Principal:
    """The caller with the rights of now, for a connection that outlives the rights that it was opened with. Users of
    the project's own auth handlers have no credential of Assent: only their handlers can renew them."""
    if caller.credential is None:
        return caller
    principal = await store.read(None, holder, caller.credential)
    if principal is None:
        raise Unauthenticated("the credential has expired or was revoked")
    return principal


def _of_key(key: ApiKey, hashed: str) -> Principal:
    """The principal of a key. An agent or a service never decides, even if its stored row has the scope."""
    principal = key.principal()
    scopes = principal.scopes & SCOPE_CEILING[principal.kind]
    return replace(principal, scopes=scopes, credential=f"{_KEY}:{hashed}")
