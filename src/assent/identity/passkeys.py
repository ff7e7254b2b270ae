"""Passkeys of people: registered by their owner in a browser, after a fresh sign-in, and removed again.

Only the person adds one. An API key may have leaked, so neither a key nor a session that depends on a key registers or
removes a passkey; an administrator removes those of a person who has lost the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assent.errors import AlreadyExists, ConfirmationRefused, Conflict, Forbidden, FreshSignInRequired, NotFound
from assent.identity import assertions, names
from assent.identity.access import require_person, session_of
from assent.identity.model.access import Principal, Scope
from assent.identity.model.passkeys import (
    FRESH,
    LIFETIME,
    MOST_PASSKEYS,
    Party,
    Passkey,
    Proof,
    bound,
    creation_options,
)
from assent.identity.model.users import User
from assent.identity.rows import challenges, passkeys, sessions, users
from assent.kernel import events
from assent.kernel.ids import new_id
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx


class Passkeys:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def own(self, caller: Principal) -> list[Passkey]:
        return await self._store.read(caller.tenant, passkeys.of_person, caller.id)

    async def fresh(self, caller: Principal) -> bool:
        """Whether the caller could add or remove a passkey now."""
        return await self._store.read(caller.tenant, _is_fresh, caller)

    async def start(self, caller: Principal, party: Party | None) -> dict[str, Any]:
        """The browser's options for registering a passkey."""
        return await self._store.write(caller.tenant, _start, caller, party)

    async def add(self, caller: Principal, name: str, proof: Proof) -> Passkey:
        await assertions.load()
        return await self._store.write(caller.tenant, _add, caller, names.checked(name), proof)

    async def rename(self, caller: Principal, passkey_id: str, name: str) -> Passkey:
        return await self._store.write(caller.tenant, _rename, caller, passkey_id, names.checked(name))

    async def remove(self, caller: Principal, passkey_id: str) -> None:
        """Removes one of the caller's own."""
        await self._store.write(caller.tenant, _remove, caller, passkey_id)

    async def of_person(self, caller: Principal, name: str) -> list[Passkey]:
        caller.require(Scope.ADMIN)
        return await self._store.read(caller.tenant, lambda tx: passkeys.of_person(tx, _user(tx, name).id))

    async def of_everyone(self, caller: Principal) -> list[tuple[str, Passkey]]:
        """With the names of their owners."""
        caller.require(Scope.ADMIN)
        return await self._store.read(caller.tenant, _of_everyone)

    async def remove_of(self, caller: Principal, name: str, passkey_id: str) -> None:
        """Removes a passkey of another person, who has lost the device."""
        caller.require(Scope.ADMIN)
        require_person(caller)
        await self._store.write(caller.tenant, _remove_of, caller, name, passkey_id)


def require_own_hand(tx: Tx, caller: Principal) -> str:
    """The caller's browser session, which must not depend on an API key."""
    hashed = session_of(caller)
    opened = sessions.opened(tx, hashed) if hashed else None
    if hashed is None or opened is None:
        raise Forbidden("only a person in a browser can do this", hint="open the inbox: Settings, Account")
    if opened.by_key:
        raise FreshSignInRequired("this session was opened with an API key, which is not enough for passkeys")
    return hashed


def require_fresh(tx: Tx, caller: Principal) -> str:
    """The same session, if it began in the last few minutes: an open browser is not enough to add a device."""
    hashed = require_own_hand(tx, caller)
    opened = sessions.opened(tx, hashed)
    if opened is None or tx.now() - opened.at > FRESH:
        raise FreshSignInRequired()
    return hashed


def _is_fresh(tx: Tx, caller: Principal) -> bool:
    try:
        require_fresh(tx, caller)
    except Forbidden:
        return False
    return True


def _start(tx: Tx, caller: Principal, party: Party | None) -> dict[str, Any]:
    session = require_fresh(tx, caller)
    if party is None:
        raise assertions.nowhere()
    present = passkeys.of_person(tx, caller.id)
    _require_room(present)
    challenge = assertions.new_challenge()
    purpose = _registration(caller, session)
    challenges.give(tx, challenge, user_id=caller.id, subject=_subject(session), bound=purpose, lifetime=LIFETIME)
    handle = assertions.encoded(caller.id.encode())
    return creation_options(party, challenge, name=caller.name, handle=handle, known=present)


def _add(tx: Tx, caller: Principal, name: str, proof: Proof) -> Passkey:
    session = require_fresh(tx, caller)
    _require_room(passkeys.of_person(tx, caller.id))
    if proof.party is None:
        raise assertions.nowhere()
    challenge = assertions.challenge_in(proof.answer)
    if challenges.spend(tx, challenge, user_id=caller.id) != _registration(caller, session):
        raise ConfirmationRefused("this registration was used before, has expired, or was begun elsewhere")
    made = assertions.registered(proof.answer, challenge, proof.party)
    passkey = Passkey(
        id=new_id(),
        user_id=caller.id,
        credential_id=made.credential_id,
        public_key=made.public_key,
        sign_count=made.sign_count,
        party=proof.party.id,
        name=name,
        transports=assertions.transports_in(proof.answer),
        created_at=tx.now(),
        last_used_at=None,
    )
    if not passkeys.insert(tx, passkey):
        raise AlreadyExists("this passkey is registered already")
    payload = {"passkey": passkey.id, "name": name, "party": passkey.party}
    events.append(tx, caller, "passkey.added", caller.actor, payload)
    return passkey


def _rename(tx: Tx, caller: Principal, passkey_id: str, name: str) -> Passkey:
    require_own_hand(tx, caller)
    before = _own(tx, caller, passkey_id)
    if before.name != name:
        passkeys.rename(tx, passkey_id, name)
        payload = {"passkey": passkey_id, "from": before.name, "to": name}
        events.append(tx, caller, "passkey.renamed", caller.actor, payload)
    return _own(tx, caller, passkey_id)


def _remove(tx: Tx, caller: Principal, passkey_id: str) -> None:
    require_fresh(tx, caller)
    _removed(tx, caller, _own(tx, caller, passkey_id))


def _remove_of(tx: Tx, caller: Principal, name: str, passkey_id: str) -> None:
    user = _user(tx, name)
    if user.id == caller.id:
        return _remove(tx, caller, passkey_id)
    passkey = passkeys.get(tx, passkey_id)
    if passkey is None or passkey.user_id != user.id:
        raise NotFound(f"{name!r} has no passkey {passkey_id!r}")
    _removed(tx, caller, passkey)


def _removed(tx: Tx, caller: Principal, passkey: Passkey) -> None:
    passkeys.remove(tx, passkey.id)
    payload = {"passkey": passkey.id, "name": passkey.name}
    events.append(tx, caller, "passkey.removed", f"reviewer:{passkey.user_id}", payload)


def _own(tx: Tx, caller: Principal, passkey_id: str) -> Passkey:
    passkey = passkeys.get(tx, passkey_id)
    if passkey is None or passkey.user_id != caller.id:
        raise NotFound(f"you have no passkey {passkey_id!r}")
    return passkey


def _user(tx: Tx, name: str) -> User:
    user = users.by_name(tx, name)
    if user is None:
        raise NotFound(f"there is no user {name!r}")
    return user


def _of_everyone(tx: Tx) -> list[tuple[str, Passkey]]:
    everyone = passkeys.of_everyone(tx)
    people = {passkey.user_id: users.by_id(tx, passkey.user_id) for passkey in everyone}
    return [(person.name, passkey) for passkey in everyone if (person := people[passkey.user_id])]


def _require_room(present: Sequence[Passkey]) -> None:
    if len(present) >= MOST_PASSKEYS:
        raise Conflict(f"a person has at most {MOST_PASSKEYS} passkeys", hint="remove one that you do not use")


def _registration(caller: Principal, session: str) -> str:
    return bound(act="register", user=caller.id, session=session)


def _subject(session: str) -> str:
    return f"session:{session}"
