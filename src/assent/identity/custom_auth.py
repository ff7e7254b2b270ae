"""LangGraph's `Auth` handlers, unchanged: `@auth.authenticate` identifies the caller, `@auth.on` limits access.

A user is an agent, or a reviewer where the handler gives the permission `assent:decide`; the permission
`assent:tenant:<id>` selects the tenant. The handler vouches for the identity, which rules and the timeline name; the
display name is only shown. `@auth.on` handlers apply to users of `@auth.authenticate`; other callers are
limited by the scopes of their credential. Where no handler is registered nothing is refused, as on LangGraph's own
server, and the log lists these resources at the start.

An HTTP exception of a handler keeps its status and text. Any other exception refuses the request, and its details go
only to the log. Imported only where a project has an auth file.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import httpx
from langgraph_sdk import Auth
from starlette.exceptions import HTTPException

from assent.errors import AssentError, HandlerRefused, Invalid, Unauthenticated
from assent.identity import names
from assent.identity.auth_users import AUTH_PARAMETERS, AuthUser, BadUser, is_authenticated, read_user
from assent.identity.model import visibility
from assent.identity.model.access import DEFAULT_SCOPES, DEFAULT_TENANT, ROLE_SCOPES, Kind, Principal, Role
from assent.identity.model.visibility import BadFilter, Visible
from assent.identity.upstream import handlers_of

log = logging.getLogger(__name__)

DECIDE = "assent:decide"
TENANT = "assent:tenant:"

_ON_PURPOSE = (Auth.exceptions.HTTPException, HTTPException)
_FAILURES = (OSError, RuntimeError, NameError, ImportError, MemoryError, httpx.HTTPError, BadUser)
"""Failures that do not depend on the credential. Any other exception means a missing or unreadable credential."""

_ACTIONS = {
    "assistants": ("create", "read", "update", "delete", "search"),
    "threads": ("create", "read", "update", "delete", "search", "create_run"),
    "crons": ("create", "read", "update", "delete", "search"),
    "store": ("put", "get", "delete", "search", "list_namespaces"),
}


class CustomAuth:
    def __init__(self, auth: Auth) -> None:
        handlers = handlers_of(auth)
        assert handlers.authenticate is not None  # the loader has seen to it
        self._authenticate = handlers.authenticate
        self._handlers = handlers
        self.parameters = AUTH_PARAMETERS.intersection(inspect.signature(self._authenticate).parameters)
        self._warn_of_open_resources()

    async def authenticate(self, arguments: Mapping[str, Any]) -> Principal:
        try:
            returned = await _call(self._authenticate, arguments)
            if returned is None or not is_authenticated(returned):
                raise Unauthenticated()
            return _principal(read_user(returned))
        except _ON_PURPOSE as error:
            raise HandlerRefused(str(error.detail), status=error.status_code) from error
        except AssentError:
            raise
        except _FAILURES as error:
            raise _failed(error) from error
        except Exception as error:
            log.warning("authenticate caller failed", extra={"error": type(error).__name__}, exc_info=error)
            raise Unauthenticated("the credential was not accepted") from error

    async def authorize(self, caller: Principal, resource: str, action: str, value: dict[str, Any]) -> Visible | None:
        handler = self._handler(resource, action)
        if handler is None or caller.user is None:
            return None
        try:
            context = Auth.types.AuthContext(
                permissions=caller.user["permissions"],
                user=caller.user,  # type: ignore[arg-type]  # implements the protocol by __getattr__
                resource=resource,  # type: ignore[arg-type]
                action=action,  # type: ignore[arg-type]
            )
            return _allowed(await handler(ctx=context, value=value), value)
        except _ON_PURPOSE as error:
            raise HandlerRefused(str(error.detail), status=error.status_code) from error
        except AssentError:
            raise
        except AssertionError as error:
            raise HandlerRefused("Forbidden") from error
        except Exception as error:
            raise _failed(error) from error

    def governs(self, caller: Principal, resource: str, action: str) -> bool:
        return caller.user is not None and self._handler(resource, action) is not None

    def _handler(self, resource: str, action: str) -> Callable[..., Any] | None:
        """The most specific handler, and of several the last."""
        for key in ((resource, action), (resource, "*"), ("*", action), ("*", "*")):
            if key in self._handlers.on:
                return self._handlers.on[key][-1]
        return self._handlers.on_everything[-1] if self._handlers.on_everything else None

    def _warn_of_open_resources(self) -> None:
        asked = [(resource, action) for resource, actions in _ACTIONS.items() for action in actions]
        missing = [f"{resource}.{action}" for resource, action in asked if self._handler(resource, action) is None]
        if missing and len(missing) < len(asked):
            log.warning("auth file has no handler for some resources", extra={"open": ", ".join(missing)})


async def _call(handler: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    if inspect.iscoroutinefunction(handler):
        return await handler(**arguments)
    return await asyncio.to_thread(handler, **arguments)


def _principal(user: AuthUser) -> Principal:
    permissions: Sequence[str] = user["permissions"]
    decides = DECIDE in permissions
    return Principal(
        kind=Kind.REVIEWER if decides else Kind.AGENT,
        id=user["identity"],
        name=user["display_name"],
        tenant=_tenant(permissions),
        scopes=ROLE_SCOPES[Role.REVIEWER] if decides else DEFAULT_SCOPES[Kind.AGENT],
        user=user,
    )


def _tenant(permissions: Sequence[str]) -> str:
    named = {permission.removeprefix(TENANT) for permission in permissions if permission.startswith(TENANT)}
    if len(named) > 1:
        raise BadUser("a user can belong to one tenant only")
    tenant = named.pop() if named else DEFAULT_TENANT
    with suppress(Invalid):
        if names.checked(tenant) == tenant:
            return tenant
    raise BadUser(f"{tenant[:80]!r} cannot be a tenant")


def _allowed(returned: Any, value: dict[str, Any]) -> Visible | None:
    if not isinstance(value.get("metadata"), dict | None):
        raise BadFilter("value['metadata'] must be a dict")
    if returned is False:
        raise HandlerRefused("Forbidden")
    return None if returned is None or returned is True else visibility.read(returned)


def _failed(error: Exception) -> AssentError:
    log.error("run auth handler failed", exc_info=error)
    return AssentError("the project's auth handler failed")
