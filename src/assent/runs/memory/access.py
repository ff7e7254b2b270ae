"""Which items of the store a caller may use through the API.

The project's auth handlers for the resource `store` see each request, with the names of `langgraph_sdk.auth.types`.
They may refuse it, may change its namespace, key and other fields, and may return a filter on the values of items.
Without such a handler, a program uses the items that it stored and those that are shared, as for threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assent.errors import BadRequest, Invalid
from assent.identity.authorization import AllowAll, Authorizer, owned_by
from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import Visible, both
from assent.threads.rows.memory.items import Namespace

_RESERVED = "langgraph"
_NAMESPACES = frozenset({"namespace", "suffix"})


class StoreAccess:
    def __init__(self, authorizer: Authorizer | None = None) -> None:
        self._authorizer = authorizer or AllowAll()

    async def __call__(
        self, caller: Principal, action: str, asked: Mapping[str, Any]
    ) -> tuple[Visible | None, dict[str, Any]]:
        """The condition on items, and the request as a handler left it."""
        caller.require(Scope.RUNS_WRITE)
        value = _checked(asked)
        visible = await self._authorizer.authorize(caller, "store", action, value)
        governed = self._authorizer.governs(caller, "store", action)
        value = _checked(value)
        return (visible if governed else both(visible, owned_by(caller))), value


def _checked(value: Mapping[str, Any]) -> dict[str, Any]:
    if "\x00" in str(value.get("key")):
        raise Invalid("a key cannot contain the character U+0000")
    return {**value, **{name: _labels(value[name]) for name in _NAMESPACES & value.keys()}}


def _labels(namespace: Any) -> Namespace | None:
    if namespace is None:
        return None
    if not isinstance(namespace, list | tuple):
        raise Invalid("Namespace must be a list of labels")
    for label in namespace:
        if not isinstance(label, str) or not label or "." in label or "\x00" in label:
            raise Invalid(f"Namespace label {label!r} must be a non-empty string without periods")
    return tuple(namespace)


def require_writable(namespace: Namespace) -> None:
    if not namespace:
        raise BadRequest("Namespace cannot be empty.")
    if namespace[0] == _RESERVED:
        raise BadRequest(f'Root label for namespace cannot be "{_RESERVED}". Got: {namespace}')
