"""Mandates: work that starts later, such as the runs of a cron, has the rights that its author has then.

A mandate records the author and the scopes of the credential that was used. It holds while that credential does: the
key is not revoked, the person is not disabled. A key that expired holds if the same agent, service or person has
another one, as after a rotation. The rights are those of the recorded scopes that the author still has.

Users of the project's auth handlers have no credential of Assent. Their recorded user is passed to the handlers again
whenever the work starts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assent.errors import Forbidden
from assent.identity.auth_users import AuthUser
from assent.identity.model.access import ROLE_SCOPES, Kind, Principal, Scope, known_scopes, local_agent, operator
from assent.identity.model.keys import ApiKey
from assent.identity.rows import keys, users
from assent.kernel.store.transaction import Tx

_KEY = "key"


class Mandates:
    def __init__(self, *, keyless: bool = False, handlers: bool = False) -> None:
        """`keyless`: whether callers without a key are accepted; `handlers`: whether the project has an auth file."""
        self._keyless = keyless
        self._handlers = handlers

    def holder(self, tx: Tx, mandate: dict[str, Any]) -> Principal:
        """The author with the current rights, except that nobody decides in absence; raises `Forbidden` with the reason
        where there are none."""
        principal = self._author(tx, mandate).without(Scope.DECIDE)
        principal = replace(principal, scopes=principal.scopes & known_scopes(mandate["scopes"]))
        if not principal.may(Scope.RUNS_WRITE):
            raise Forbidden("its author may no longer start runs")
        return principal

    def _author(self, tx: Tx, mandate: dict[str, Any]) -> Principal:
        kind, credential = Kind(mandate["kind"]), mandate.get("credential") or ""
        if mandate.get("user") is not None:
            return self._user(tx, kind, mandate)
        if credential.startswith(f"{_KEY}:"):
            return _of_key(tx, credential.removeprefix(f"{_KEY}:"))
        if kind is Kind.REVIEWER:
            return _person(tx, mandate["id"])
        actor, local = f"{kind}:{mandate['id']}", local_agent(tx.tenant)
        if actor == operator(tx.tenant).actor:
            return operator(tx.tenant)
        if actor != local.actor or not self._keyless:
            raise Forbidden("its author had no key, and this server does not accept callers without one")
        return local

    def _user(self, tx: Tx, kind: Kind, mandate: dict[str, Any]) -> Principal:
        if not self._handlers:
            raise Forbidden("its author is a user of an auth file that the project no longer has")
        user, scopes = AuthUser(mandate["user"], None), known_scopes(mandate["scopes"])
        return Principal(kind, mandate["id"], user["display_name"], tx.tenant, scopes, user=user)


def record(caller: Principal) -> dict[str, Any]:
    """The caller's mandate, as JSON. Names are looked up when they are needed, so that they can be erased."""
    return {
        "kind": caller.kind.value,
        "id": caller.id,
        "scopes": sorted(caller.scopes),
        "credential": caller.credential if (caller.credential or "").startswith(f"{_KEY}:") else None,
        "user": None if caller.user is None else dict(caller.user),
    }


def _of_key(tx: Tx, hashed: str) -> Principal:
    key = keys.held(tx, hashed)
    if key is None or key.revoked_at is not None:
        raise Forbidden("the API key of its author was revoked")
    if key.owner_disabled:
        raise Forbidden("its author was disabled")
    valid = key if key.usable(tx.now()) else _successor(tx, key)
    if valid is None:
        raise Forbidden("the API key of its author has expired")
    return valid.principal()


def _successor(tx: Tx, key: ApiKey) -> ApiKey | None:
    others = keys.of_principal(tx, key.kind, key.principal_id)
    return next((other for other in others if other.usable(tx.now())), None)


def _person(tx: Tx, user_id: str) -> Principal:
    user = users.by_id(tx, user_id)
    if user is None or user.disabled_at is not None:
        raise Forbidden("its author was disabled")
    return Principal(Kind.REVIEWER, user.id, user.name, tx.tenant, ROLE_SCOPES[user.role])
