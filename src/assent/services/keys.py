"""API keys: made once, shown once, revoked for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from assent.domain.access import Kind, Principal, Scope, parse_scopes
from assent.domain.ids import new_id, new_token, token_hash
from assent.domain.keys import PREFIX, ApiKey
from assent.errors import Invalid, NotFound
from assent.ports import Store
from assent.services import names
from assent.services.access import require_person
from assent.store import events, keys, sessions, users
from assent.store.paging import Page
from assent.store.transaction import Tx


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key together with its secret, which cannot be had a second time."""

    key: ApiKey
    secret: str


class Keys:
    def __init__(self, store: Store, *, changed: Callable[[], None] = lambda: None) -> None:
        """`changed` is told when a key has lost its rights."""
        self._store = store
        self._changed = changed

    async def create(
        self,
        caller: Principal,
        *,
        kind: Kind,
        name: str,
        user: str | None = None,
        scopes: Iterable[str] = (),
        lifetime: timedelta | None = None,
    ) -> NewKey:
        caller.require(Scope.ADMIN)
        granted = parse_scopes(kind, scopes)
        if (kind is Kind.REVIEWER) != (user is not None):
            raise Invalid("a key of kind reviewer belongs to a user, other keys do not", hint="give the user's name")
        if kind is Kind.REVIEWER:
            require_person(caller)
        secret = new_token(f"{PREFIX}_{kind}")
        key = await self._store.write(
            caller.tenant, _create, caller, kind, names.checked(name), user, granted, token_hash(secret), lifetime
        )
        return NewKey(key, secret)

    async def list(self, caller: Principal, *, limit: int = 50, cursor: str | None = None) -> Page[ApiKey]:
        caller.require(Scope.ADMIN)
        return await self._store.read(caller.tenant, keys.page, limit=limit, cursor=cursor)

    async def revoke(self, caller: Principal, key_id: str) -> ApiKey:
        """Revoking twice is fine and leaves one event. A person whose key is revoked is signed out as well: sessions
        may have been opened with it."""
        caller.require(Scope.ADMIN)
        revoked = await self._store.write(caller.tenant, _revoke, caller, key_id)
        self._changed()
        return revoked


def _create(
    tx: Tx,
    caller: Principal,
    kind: Kind,
    name: str,
    user: str | None,
    scopes: frozenset[Scope],
    secret_hash: str,
    lifetime: timedelta | None,
) -> ApiKey:
    owner = users.by_name(tx, user) if user else None
    if user and owner is None:
        raise NotFound(f"there is no user {user!r}")
    key_id = new_id()
    keys.insert(
        tx,
        key_id=key_id,
        kind=kind,
        name=name,
        user_id=owner.id if owner else None,
        token_hash=secret_hash,
        scopes=scopes,
        expires_at=tx.now() + lifetime if lifetime else None,
    )
    told = {"kind": kind, "name": name, "scopes": sorted(scopes), "user": owner.id if owner else None}
    events.append(tx, caller, "key.created", f"key:{key_id}", told)
    return _get(tx, key_id)


def _revoke(tx: Tx, caller: Principal, key_id: str) -> ApiKey:
    key = _get(tx, key_id)
    if keys.revoke(tx, key_id):
        if key.user_id:
            sessions.end_all(tx, key.user_id)
        events.append(tx, caller, "key.revoked", f"key:{key_id}")
    return _get(tx, key_id)


def _get(tx: Tx, key_id: str) -> ApiKey:
    key = keys.by_id(tx, key_id)
    if key is None:
        raise NotFound(f"there is no key {key_id!r}")
    return key
