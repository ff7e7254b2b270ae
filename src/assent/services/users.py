"""People: who may sign in, with which role, in which groups, and how they are forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta

from assent.domain.access import Principal, Role, Scope
from assent.domain.ids import new_id, new_token, token_hash
from assent.domain.users import User
from assent.errors import AlreadyExists, Conflict, Invalid, NotFound
from assent.ports import Store
from assent.services import names
from assent.services.access import require_person
from assent.store import events, inboxes, sessions, users
from assent.store.paging import Page
from assent.store.transaction import Tx

LINK_LIFETIME = timedelta(minutes=15)
MOST_GROUPS = 100


class Users:
    def __init__(self, store: Store, *, changed: Callable[[], None] = lambda: None) -> None:
        """`changed` is told when a person's rights are different."""
        self._store = store
        self._changed = changed

    async def create(
        self, caller: Principal, *, name: str, role: Role, email: str | None = None, groups: Iterable[str] = ()
    ) -> User:
        caller.require(Scope.ADMIN)
        named, belongs = names.checked(name), _checked(groups)
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
        """Disabling signs the person out everywhere; their keys stop working at once."""
        caller.require(Scope.ADMIN)
        belongs = None if groups is None else _checked(groups)
        user = await self._store.write(caller.tenant, _change, caller, name, role, disabled, belongs)
        self._changed()
        return user

    async def login_link(self, caller: Principal, name: str) -> str:
        """A token that signs this person in once, within a quarter of an hour."""
        caller.require(Scope.ADMIN)
        require_person(caller)
        token = new_token("login")
        await self._store.write(caller.tenant, _link, caller, name, token_hash(token))
        return token

    async def erase(self, caller: Principal, name: str) -> int:
        """Forgets a person: name and mail are gone, and the payloads of their events. Returns how many of those."""
        caller.require(Scope.ADMIN)
        erased = await self._store.write(caller.tenant, _erase, caller, name)
        self._changed()
        return erased


def _checked(groups: Iterable[str]) -> frozenset[str]:
    """Groups are whatever policies name; they are called as people are."""
    found = frozenset(map(names.checked, groups))
    if len(found) > MOST_GROUPS:
        raise Invalid(f"a person is in at most {MOST_GROUPS} groups")
    return found


def _create(
    tx: Tx, caller: Principal, name: str, role: Role, email: str | None, groups: frozenset[str] = frozenset()
) -> User:
    user = User(new_id(), name, email, role, tx.now(), None, groups)
    if not users.insert(tx, user):
        raise AlreadyExists(f"there is a user {name!r} already")
    told = {"name": name, "role": role, **({"groups": sorted(groups)} if groups else {})}
    events.append(tx, caller, "user.created", f"reviewer:{user.id}", told)
    return user


def _change(
    tx: Tx, caller: Principal, name: str, role: Role | None, disabled: bool | None, groups: frozenset[str] | None
) -> User:
    user = _get(tx, name)
    if groups is not None and groups != user.groups:
        users.set_groups(tx, user.id, groups)
        told = {"from": sorted(user.groups), "to": sorted(groups)}
        events.append(tx, caller, "user.groups_changed", f"reviewer:{user.id}", told)
    if role is not None and role is not user.role:
        users.set_role(tx, user.id, role)
        events.append(tx, caller, "user.role_changed", f"reviewer:{user.id}", {"from": user.role, "to": role})
    if disabled is not None and disabled is not (user.disabled_at is not None):
        _set_disabled(tx, caller, user, disabled)
    return _get(tx, name)


def _set_disabled(tx: Tx, caller: Principal, user: User, disabled: bool) -> None:
    if not disabled and user.name == f"erased-{user.id}":
        raise Conflict(f"{user.name!r} was erased and cannot come back")
    users.set_disabled(tx, user.id, tx.now() if disabled else None)
    if disabled:
        sessions.end_all(tx, user.id)
    events.append(tx, caller, "user.disabled" if disabled else "user.enabled", f"reviewer:{user.id}")


def _link(tx: Tx, caller: Principal, name: str, link_hash: str) -> None:
    user = _get(tx, name)
    if user.disabled_at:
        raise Conflict(f"the user {name!r} is disabled")
    sessions.insert_link(tx, link_hash, user.id, tx.now() + LINK_LIFETIME)
    events.append(tx, caller, "user.login_link_created", f"reviewer:{user.id}")


def _erase(tx: Tx, caller: Principal, name: str) -> int:
    user = _get(tx, name)
    subject = f"reviewer:{user.id}"
    users.anonymise(tx, user.id)
    sessions.end_all(tx, user.id)
    inboxes.remove_all(tx, subject)
    return events.erase(tx, caller, events.erasable(tx, subject=subject), reason=f"erasure of {subject}")


def _get(tx: Tx, name: str) -> User:
    user = users.by_name(tx, name)
    if user is None:
        raise NotFound(f"there is no user {name!r}")
    return user
