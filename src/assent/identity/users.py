"""People: sign-in, roles, groups and erasure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Protocol

from assent.errors import AlreadyExists, Conflict, Invalid, NotFound
from assent.identity import names
from assent.identity.access import is_by_key, require_grantable, require_person
from assent.identity.model.access import ROLE_SCOPES, SCOPE_CEILING, Kind, Principal, Role, Scope, operator
from assent.identity.model.users import User
from assent.identity.rows import challenges, passkeys, sessions, users
from assent.kernel import events
from assent.kernel.ids import new_id, new_token, token_hash
from assent.kernel.store.paging import Page
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx

LINK_LIFETIME = timedelta(minutes=15)
MOST_GROUPS = 100


class Reviews(Protocol):
    """A person's decisions and saved views, which follow the person's rights."""

    def hold(self, tx: Tx, user: User) -> None:
        """Locks the rows that `retract` may change, before the person's row is locked."""
        ...

    def retract(self, tx: Tx, caller: Principal, user: User) -> None:
        """Retracts unused approvals that the person may no longer give."""
        ...

    def forget(self, tx: Tx, user: User) -> None:
        """Removes the person's own saved data."""
        ...


class Users:
    def __init__(self, store: Store, reviews: Reviews, *, changed: Callable[[], None] = lambda: None) -> None:
        """`changed` is called when a person's rights have changed."""
        self._store = store
        self._reviews = reviews
        self._changed = changed

    async def create(
        self, caller: Principal, *, name: str, role: Role, email: str | None = None, groups: Iterable[str] = ()
    ) -> User:
        caller.require(Scope.ADMIN)
        named, belongs = names.checked(name), _checked(groups)
        require_person(caller)
        require_grantable(caller, ROLE_SCOPES[role] | ({Scope.DECIDE} if belongs else set()))
        return await self._store.write(caller.tenant, _create, caller, named, role, email, belongs)

    async def find(self, caller: Principal, name: str) -> User | None:
        caller.require(Scope.ADMIN)
        return await self._store.read(caller.tenant, users.by_name, name)

    async def list(self, caller: Principal, *, limit: int = 50, cursor: str | None = None) -> Page[User]:
        caller.require(Scope.ADMIN)
        return await self._store.read(caller.tenant, users.page, limit=limit, cursor=cursor)

    async def change(
        self,
        caller: Principal,
        name: str,
        *,
        role: Role | None = None,
        disabled: bool | None = None,
        groups: Iterable[str] | None = None,
    ) -> User:
        """Disabling signs the person out everywhere; their keys stop working at once. An approval no longer counts
        where the person may no longer give it. A program can disable people and change nothing else: programs do not
        control reviewers' rights."""
        caller.require(Scope.ADMIN)
        belongs = None if groups is None else _checked(groups)
        if not disabled or role is not None or groups is not None:
            require_person(caller)
        user = await self._store.write(caller.tenant, _change, self._reviews, caller, name, role, disabled, belongs)
        self._changed()
        return user

    async def login_link(self, caller: Principal, name: str) -> str:
        """A token that signs this person in once, within 15 minutes."""
        caller.require(Scope.ADMIN)
        require_person(caller)
        require_grantable(caller, SCOPE_CEILING[Kind.REVIEWER])  # a session has its person's current and later rights
        token = new_token("login")
        await self._store.write(caller.tenant, _link, caller, name, token_hash(token))
        return token

    async def erase(self, caller: Principal, name: str) -> int:
        """Erases a person: name, mail, and the payloads of their events. Returns the number of erased payloads."""
        caller.require(Scope.ADMIN)
        erased = await self._store.write(caller.tenant, _erase, self._reviews, caller, name)
        self._changed()
        return erased


def _checked(groups: Iterable[str]) -> frozenset[str]:
    """Groups are free names that policies use; the rules for people's names apply."""
    checked = frozenset(map(names.checked, groups))
    if len(checked) > MOST_GROUPS:
        raise Invalid(f"a person is in at most {MOST_GROUPS} groups")
    return checked


def _create(
    tx: Tx, caller: Principal, name: str, role: Role, email: str | None, groups: frozenset[str] = frozenset()
) -> User:
    user = User(new_id(), name, email, role, tx.now(), None, groups)
    if not users.insert(tx, user):
        raise AlreadyExists(f"there is a user {name!r} already")
    payload = {"name": name, "role": role, **({"groups": sorted(groups)} if groups else {})}
    events.append(tx, caller, "user.created", user.actor, payload)
    return user


def _change(
    tx: Tx,
    reviews: Reviews,
    caller: Principal,
    name: str,
    role: Role | None,
    disabled: bool | None,
    groups: frozenset[str] | None,
) -> User:
    user = _get(tx, name)
    _require_giving(caller, user, role or user.role, disabled, groups)
    if disabled or role not in (None, user.role):
        _require_spare(tx, caller, user, keeps=not disabled and role is Role.ADMIN)
    reviews.hold(tx, user)
    if groups is not None and groups != user.groups:
        users.set_groups(tx, user.id, groups)
        payload = {"from": sorted(user.groups), "to": sorted(groups)}
        events.append(tx, caller, "user.groups_changed", user.actor, payload)
    if role is not None and role is not user.role:
        users.set_role(tx, user.id, role)
        sessions.end_links(tx, user.id)
        events.append(tx, caller, "user.role_changed", user.actor, {"from": user.role, "to": role})
    if disabled is not None and disabled is not (user.disabled_at is not None):
        _set_disabled(tx, caller, user, disabled)
    reviews.retract(tx, caller, changed := _get(tx, name))
    return changed


def _require_giving(
    caller: Principal, user: User, role: Role, disabled: bool | None, groups: frozenset[str] | None
) -> None:
    """The caller must hold the rights that the person gains by the change."""
    before = frozenset[Scope]() if disabled is False else ROLE_SCOPES[user.role]
    joined = (groups or frozenset()) - user.groups
    require_grantable(caller, (ROLE_SCOPES[role] - before) | ({Scope.DECIDE} if joined else set()))


def _require_spare(tx: Tx, caller: Principal, user: User, *, keeps: bool) -> None:
    """Administrators cannot remove their own rights, nor those of the last administrator: only the operator of the
    database could create another, so the operator may do both."""
    if keeps or user.role is not Role.ADMIN or user.disabled_at is not None or caller == operator(caller.tenant):
        return
    if caller.actor == user.actor:
        raise Conflict("you cannot remove your own administrator rights", hint="ask another administrator")
    if not [admin for admin in users.lock_admins(tx) if admin.id != user.id]:
        raise Conflict(f"{user.name!r} is the last administrator", hint="make someone else an administrator first")


def _set_disabled(tx: Tx, caller: Principal, user: User, disabled: bool) -> None:
    if not disabled and user.name == f"erased-{user.id}":
        raise Conflict(f"{user.name!r} was erased and cannot be restored")
    users.set_disabled(tx, user.id, tx.now() if disabled else None)
    if disabled:
        sessions.end_all(tx, user.id)
    events.append(tx, caller, "user.disabled" if disabled else "user.enabled", user.actor)


def _link(tx: Tx, caller: Principal, name: str, link_hash: str) -> None:
    user = _get(tx, name)
    if user.disabled_at:
        raise Conflict(f"the user {name!r} is disabled")
    by_key = is_by_key(tx, caller)
    sessions.insert_link(tx, link_hash, user.id, tx.now() + LINK_LIFETIME, by_key=by_key)
    events.append(tx, caller, "user.login_link_created", user.actor)


def _erase(tx: Tx, reviews: Reviews, caller: Principal, name: str) -> int:
    user = _get(tx, name)
    _require_spare(tx, caller, user, keeps=False)
    reviews.hold(tx, user)
    users.anonymise(tx, user.id)
    sessions.end_all(tx, user.id)
    passkeys.remove_all(tx, user.id)
    challenges.forget(tx, user.id)
    reviews.forget(tx, user)
    reviews.retract(tx, caller, _get(tx, f"erased-{user.id}"))
    return events.erase(tx, caller, events.erasable(tx, subject=user.actor), reason=f"erasure of {user.actor}")


def _get(tx: Tx, name: str) -> User:
    user = users.by_name(tx, name)
    if user is None:
        raise NotFound(f"there is no user {name!r}")
    return user
