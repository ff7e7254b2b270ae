"""The user that an auth handler returns, in any of the forms that LangGraph allows, as one class.

Handlers read it in both ways, `ctx.user.identity` and `ctx.user["identity"]`; graphs get it as plain JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assent.kernel import jsonable

AUTH_PARAMETERS = frozenset(
    {
        *("request", "body", "path", "method", "path_params", "query_params", "headers", "authorization"),
        *("scope", "scopes", "user"),
    }
)
"""The parameters that an `@auth.authenticate` handler may declare."""

_LONGEST = 500
_METHODS = ("model_dump", "dict")


class BadUser(Exception):
    """The handler returned a value that is not a user."""


class AuthUser(Mapping[str, Any]):
    """Its items are JSON; other attributes are those of the original object."""

    def __init__(self, facts: Mapping[str, Any], original: Any) -> None:
        self._facts = facts
        self._original = original

    def __getitem__(self, key: str) -> Any:
        return self._facts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_facts", ()):
            return self._facts[name]
        return getattr(self.__dict__["_original"], name)


def read_user(returned: Any) -> AuthUser:
    """A name, a dict, an object with an `identity`, or a pair of permissions and one of these."""
    permissions: Any = None
    if isinstance(returned, tuple) and len(returned) == 2:
        permissions, returned = returned
    facts = {"identity": returned} if isinstance(returned, str) else _facts(returned)
    identity = _text(facts.get("identity"))
    required = {
        "identity": identity,
        "display_name": _text(facts.get("display_name") or identity),
        "is_authenticated": True,
        "permissions": _permissions(facts.get("permissions") if permissions is None else permissions),
    }
    return AuthUser({**jsonable.plain(facts), **required}, returned)


def is_authenticated(returned: Any) -> bool:
    """Whether the handler authenticated the user: it may return `is_authenticated: False`."""
    user = returned[1] if isinstance(returned, tuple) and len(returned) == 2 else returned
    flag = user.get("is_authenticated") if isinstance(user, Mapping) else getattr(user, "is_authenticated", None)
    return flag is None or bool(flag)


def _facts(user: Any) -> dict[str, Any]:
    if isinstance(user, Mapping):
        return dict(user)
    names = ("identity", "display_name", "permissions")
    facts = {name: getattr(user, name) for name in names if hasattr(user, name)}
    for method in _METHODS:
        if callable(getattr(user, method, None)):
            return {**getattr(user, method)(), **facts}
    return facts


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST or not value.isprintable():
        raise BadUser("a user needs an identity: a line of text")
    return value


def _permissions(value: Any) -> list[str]:
    listed = [value] if isinstance(value, str) else list(value or ())
    if not all(isinstance(permission, str) for permission in listed):
        raise BadUser("permissions must be a list of strings")
    return listed
