"""LangGraph's `Auth` handlers, unchanged: `@auth.authenticate` says who calls, `@auth.on` what they may touch.

A user is an agent, or a reviewer where the handler gives the permission `assent:decide`; the permission
`assent:tenant:<id>` puts them into a tenant. `@auth.on` handlers are asked about the users that `@auth.authenticate`
made; whoever has a credential of ours is limited by its scopes. Where no handler is registered nothing is refused, as
on LangGraph's own server, and a line in the log says at the start where that is.

What a handler raises on purpose keeps its status and text. Whatever else goes wrong in it refuses the request, and
nothing of it is told but to the log. Imported only where a project has an auth file.
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

from assent.domain import visibility
from assent.domain.access import DEFAULT_SCOPES, DEFAULT_TENANT, ROLE_SCOPES, Kind, Principal, Role
from assent.domain.visibility import BadFilter, Visible
from assent.engine.loader import AUTH_PARAMETERS
from assent.errors import AssentError, HandlerRefused, Invalid, Unauthenticated
from assent.services import names
from assent.services.auth_users import AuthUser, BadUser, is_authenticated, read_user

log = logging.getLogger(__name__)

DECIDE = "assent:decide"
TENANT = "assent:tenant:"

_ON_PURPOSE = (Auth.exceptions.HTTPException, HTTPException)
_FAILURES = (OSError, RuntimeError, NameError, ImportError, MemoryError, httpx.HTTPError, BadUser)
"""What is no fault of the credential. Anything else is what code raises that finds none, or one it cannot read."""

_ACTIONS = {
    "assistants": ("create", "read", "update", "delete", "search"),
    "threads": ("create", "read", "update", "delete", "search", "create_run"),
}


class CustomAuth:
    def __init__(self, auth: Auth) -> None:
        assert auth._authenticate_handler is not None  # the loader has seen to it
        self._authenticate = auth._authenticate_handler
        self._handlers = auth._handlers
        self._global_handlers = auth._global_handlers
        self.parameters = AUTH_PARAMETERS.intersection(inspect.signature(self._authenticate).parameters)
        self._note_open_doors()

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
            log.warning("the auth handler raised %s; the request is refused", type(error).__name__, exc_info=error)
            raise Unauthenticated("the credential was not accepted") from error

    async def authorize(self, caller: Principal, resource: str, action: str, value: dict[str, Any]) -> Visible | None:
        handler = self._handler(resource, action)
        if caller.user is None or handler is None:
            return None
        try:
            context = Auth.types.AuthContext(
                permissions=caller.user["permissions"],
                user=caller.user,  # type: ignore[arg-type]  # it has what the protocol asks for, by __getattr__
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

    def _handler(self, resource: str, action: str) -> Callable[..., Any] | None:
        """The most specific one, and of several the last."""
        for key in ((resource, action), (resource, "*"), ("*", action), ("*", "*")):
            if key in self._handlers:
                return self._handlers[key][-1]
        return self._global_handlers[-1] if self._global_handlers else None

    def _note_open_doors(self) -> None:
        asked = [(resource, action) for resource, actions in _ACTIONS.items() for action in actions]
        missing = [f"{resource}.{action}" for resource, action in asked if self._handler(resource, action) is None]
        if missing and len(missing) < len(asked):
            log.warning("the auth file has no handler for %s: nothing is refused there", ", ".join(missing))


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
        raise BadUser("a user can be of one tenant only")
    tenant = named.pop() if named else DEFAULT_TENANT
    with suppress(Invalid):
        if names.checked(tenant) == tenant:
            return tenant
    raise BadUser(f"{tenant[:80]!r} cannot be a tenant")


def _allowed(returned: Any, value: dict[str, Any]) -> Visible | None:
    if not isinstance(value.get("metadata"), dict | None):
        raise BadFilter("value['metadata'] was made something else than a dict")
    if returned is False:
        raise HandlerRefused("Forbidden")
    return None if returned is None or returned is True else visibility.read(returned)


def _failed(error: Exception) -> AssentError:
    log.error("the auth handler failed; the request is refused", exc_info=error)
    return AssentError("the project's auth handler failed")
