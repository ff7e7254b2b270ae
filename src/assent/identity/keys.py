"""API keys: created and shown once, revoked for good."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta

from assent.errors import Conflict, Invalid, NotFound
from assent.identity import names
from assent.identity.access import require_grantable, require_person
from assent.identity.model.access import Kind, Principal, Scope, parse_scopes
from assent.identity.model.keys import LONGEST_OVERLAP, PREFIX, ApiKey, Lifetime
from assent.identity.model.users import User
from assent.identity.rows import agents, keys, sessions, users
from assent.kernel import events
from assent.kernel.ids import new_id, new_token, token_hash
from assent.kernel.store.paging import Page
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx

OVERLAP = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key together with its secret, which is shown only once."""

    key: ApiKey
    secret: str


@dataclass(frozen=True, slots=True)
class _Wanted:
    kind: Kind
    name: str | None
    user: str | None
    agent: str | None
    scopes: frozenset[Scope]
    lifetime: timedelta | None


class Keys:
    def __init__(
        self, store: Store, *, lifetime: timedelta = timedelta(days=90), changed: Callable[[], None] = lambda: None
    ) -> None:
        """`lifetime` is the default; `changed` is called when a key has lost its rights."""
        self._store = store
        self.lifetime = lifetime
        self._changed = changed

    async def create(
        self,
        caller: Principal,
        *,
        kind: Kind,
        name: str | None = None,
        user: str | None = None,
        agent: str | None = None,
        scopes: Iterable[str] = (),
        lifetime: timedelta | Lifetime | None = Lifetime.USUAL,
    ) -> NewKey:
        """A program's key creates a new agent or service, unless `agent` names an existing one: by its id, or by its
        name where that is unique. All keys of an agent have its name and act as the same principal. Without a
        `lifetime` (None) a key works until it is revoked."""
        caller.require(Scope.ADMIN)
        granted = parse_scopes(kind, scopes)
        if (kind is Kind.REVIEWER) != (user is not None):
            raise Invalid("a key of kind reviewer belongs to a user, other keys do not", hint="name the person: --user")
        if kind is Kind.REVIEWER and agent is not None:
            raise Invalid("a key of kind reviewer belongs to a user, not to an agent", hint="leave the agent out")
        if kind is Kind.REVIEWER:
            require_person(caller)
        require_grantable(caller, granted)
        secret = new_token(f"{PREFIX}_{kind}")
        named, works = None if name is None else names.checked(name), self._lifetime(lifetime)
        wanted = _Wanted(kind, named, user, agent, granted, works)
        key = await self._store.write(caller.tenant, _create, caller, wanted, token_hash(secret))
        return NewKey(key, secret)

    async def list(self, caller: Principal, *, limit: int = 50, cursor: str | None = None) -> Page[ApiKey]:
        caller.require(Scope.ADMIN)
        return await self._store.read(caller.tenant, keys.page, limit=limit, cursor=cursor)

    async def rotate(
        self,
        caller: Principal,
        key_id: str,
        *,
        overlap: timedelta = OVERLAP,
        lifetime: timedelta | Lifetime | None = Lifetime.USUAL,
    ) -> NewKey:
        """Creates a new key of the same agent or person, with the same rights. The old key works for the overlap, so
        that its user can switch, and is refused afterwards."""
        caller.require(Scope.ADMIN)
        if not timedelta() < overlap <= LONGEST_OVERLAP:
            raise Invalid(f"two keys overlap for at most {LONGEST_OVERLAP.days} days", hint="such as 24h")
        old = await self._store.read(caller.tenant, _get, key_id)
        secret = new_token(f"{PREFIX}_{old.kind}")
        key = await self._store.write(
            caller.tenant, _rotate, caller, key_id, token_hash(secret), overlap, self._lifetime(lifetime)
        )
        return NewKey(key, secret)

    def _lifetime(self, chosen: timedelta | Lifetime | None) -> timedelta | None:
        return self.lifetime if isinstance(chosen, Lifetime) else chosen

    async def revoke(self, caller: Principal, key_id: str) -> ApiKey:
        """Revoking twice is allowed and leaves one event. A person whose key is revoked is signed out as well: the key
        may have opened sessions."""
        caller.require(Scope.ADMIN)
        revoked = await self._store.write(caller.tenant, _revoke, caller, key_id)
        self._changed()
        return revoked


def _create(tx: Tx, caller: Principal, wanted: _Wanted, secret_hash: str) -> ApiKey:
    owner = _owner(tx, wanted.user)
    key_id = new_id()
    principal_id, name = _belonging(tx, wanted, key_id)
    keys.insert(
        tx,
        key_id=key_id,
        kind=wanted.kind,
        name=name,
        user_id=owner.id if owner else None,
        principal_id=principal_id,
        token_hash=secret_hash,
        scopes=wanted.scopes,
        expires_at=tx.now() + wanted.lifetime if wanted.lifetime else None,
    )
    if wanted.kind is Kind.AGENT:
        agents.insert_new(tx, principal_id, name)
    payload = {"kind": wanted.kind, "name": name, "scopes": sorted(wanted.scopes), "user": owner.id if owner else None}
    if wanted.agent is not None:
        payload["agent"] = principal_id
    events.append(tx, caller, "key.created", f"key:{key_id}", payload)
    return _get(tx, key_id)


def _owner(tx: Tx, name: str | None) -> User | None:
    owner = users.by_name(tx, name) if name else None
    if name and owner is None:
        raise NotFound(f"there is no user {name!r}")
    return owner


def _belonging(tx: Tx, wanted: _Wanted, key_id: str) -> tuple[str, str]:
    """The id of the principal that a new key belongs to, and its name."""
    if wanted.agent is None:
        if wanted.name is None:
            raise Invalid("a key needs a name", hint="name its purpose")
        return key_id, wanted.name
    principal_id, name = program_named(tx, wanted.kind, wanted.agent)
    if wanted.name not in (None, name):
        raise Invalid(f"a key of the {wanted.kind} {name!r} has its name", hint="leave the name of the key out")
    return principal_id, name


def program_named(tx: Tx, kind: Kind, named: str) -> tuple[str, str]:
    """The id and the name of the one agent or service with this id or name."""
    programs = _programs(tx, kind, named)
    if not programs:
        raise NotFound(
            f"there is no {kind} {named!r}", hint=f"create it with its first key: assent keys create NAME --kind {kind}"
        )
    if len(programs) > 1:
        raise Conflict(f"{len(programs)} {kind}s are named {named!r}", hint="give the id of the one you mean")
    return programs[0]


def _programs(tx: Tx, kind: Kind, named: str) -> list[tuple[str, str]]:
    """Those with this id or name, each as its id and its name. An agent may be registered without a key."""
    if kind is Kind.AGENT:
        return [(agent.id, agent.name) for agent in agents.named(tx, named)]
    return keys.agents(tx, kind, named)


def _rotate(
    tx: Tx, caller: Principal, key_id: str, secret_hash: str, overlap: timedelta, lifetime: timedelta | None
) -> ApiKey:
    old, now = _get(tx, key_id), tx.now()
    if old.kind is Kind.REVIEWER:
        require_person(caller)
    require_grantable(caller, old.scopes)
    if not old.usable(now):
        raise Conflict(f"the key {old.name!r} no longer works", hint="create another one for the same agent")
    until = min(now + overlap, old.expires_at or now + overlap)
    new_key = new_id()
    keys.insert(
        tx,
        key_id=new_key,
        kind=old.kind,
        name=old.name,
        user_id=old.user_id,
        principal_id=old.principal_id,
        token_hash=secret_hash,
        scopes=old.scopes,
        expires_at=now + lifetime if lifetime else None,
    )
    keys.expire(tx, old.id, until)
    if old.user_id:
        sessions.end_by(tx, old.user_id, until)  # the key may have opened some
    facts = {"kind": old.kind, "name": old.name, "scopes": sorted(old.scopes), "user": old.user_id, "replaces": old.id}
    events.append(tx, caller, "key.created", f"key:{new_key}", facts)
    events.append(tx, caller, "key.rotated", f"key:{old.id}", {"by": new_key, "until": until.isoformat()})
    return _get(tx, new_key)


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
