"""The identity of a run's user, in the config keys where graphs expect it on LangGraph's own server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from assent.identity.model.access import Principal

Identity: TypeAlias = dict[str, Any]

_KEYS = ("user_id", "langgraph_auth_user", "langgraph_auth_user_id", "langgraph_auth_permissions")


def identity_of(caller: Principal) -> Identity:
    """Of the caller who starts a run. A user of the project's auth handler is passed on unchanged."""
    if caller.user is not None:
        return _identity(caller.id, dict(caller.user), caller.user["permissions"])
    permissions = sorted(caller.scopes)
    return _identity(caller.id, _user(caller.id, caller.name, permissions), permissions)


def identity_in(kwargs: Mapping[str, Any]) -> Identity:
    """Of the user of an earlier run."""
    named = kwargs["config"]["configurable"]
    return {name: named[name] for name in _KEYS if name in named}


def stand_in(actor: str) -> Identity:
    """Of an actor of whom only the name is recorded, so without permissions."""
    _, _, id = actor.partition(":")
    return _identity(id, _user(id, id, []), [])


def _identity(id: str, user: Mapping[str, Any], permissions: Sequence[str]) -> Identity:
    return dict(zip(_KEYS, (id, user, id, permissions), strict=True))


def _user(id: str, name: str, permissions: Sequence[str]) -> dict[str, Any]:
    return {"identity": id, "display_name": name, "is_authenticated": True, "permissions": permissions}
