"""Authenticates the caller before any route runs. Only routes marked as public need no credential.

Order: an API key of ours (`x-api-key` or bearer), the session cookie, then, in `dev` and `demo` only, the keyless
caller on loopback, who is the principal `local-agent` and can never decide. Only in `demo`, only on the assistant's
routes, and never from a browser, the keyless caller is the person at this machine. A project with an auth file has no
keyless callers: its handler authenticates requests without a credential of ours. `x-auth-scheme: langsmith` is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from assent.errors import AssentError, Unauthenticated
from assent.identity.access import Access, came_by_key, is_key
from assent.identity.model.access import Principal, local_agent
from assent.kernel import fair_threads
from assent.settings import Mode, Settings
from assent.surfaces.http import errors
from assent.surfaces.http.limits.admission import Admission
from assent.surfaces.http.limits.execution import Execution
from assent.surfaces.http.origins import is_local, is_loopback_origin, peer_of, port_of, require_same_origin
from assent.surfaces.http.public import PublicRoutes
from assent.surfaces.http.streams import send_handed_over

if TYPE_CHECKING:
    from assent.identity.custom_auth import CustomAuth

_CREDENTIALS = ("x-api-key", "authorization")
_PAGES = re.compile(r"/inbox(/.*)?|/assistant/sign-in")
"""Paths for people: without a session they redirect to the sign-in page, even where a program needs no key."""


PROBE = "/ok"
_TALKS = frozenset({"/run", "/resume", "/cancel"})
"""The assistant's routes: in the demo the person at this machine needs no key for them."""

_BROWSERS = ("origin", "sec-fetch-site")
"""Headers that browsers add by themselves. A page must not act as the person who views it."""


def session_cookie(connection: HTTPConnection) -> str:
    """Browsers send a cookie to every port of a host, so the name contains the port: two servers on one machine do not
    overwrite each other's sessions."""
    return "_".join(filter(None, ("assent_session", port_of(connection))))


class Authentication:
    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        settings: Settings,
        public: PublicRoutes,
        admission: Admission,
        custom_auth: CustomAuth | None = None,
        local_person: Callable[[], Awaitable[Principal | None]] | None = None,
    ) -> None:
        self.app = app
        self._local_person = local_person
        self._access = access
        self._settings = settings
        self._public = public
        self._admission = admission
        self._custom_auth = custom_auth

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        connection = HTTPConnection(scope)
        with ExitStack() as stack:
            try:
                receive = await self._admitted(stack, connection, receive)
            except AssentError as error:
                return await _refuse(connection, error)(scope, receive, send)
            await self.app(scope, receive, send)
            await send_handed_over(scope, receive, send)

    async def _admitted(self, stack: ExitStack, connection: HTTPConnection, receive: Receive) -> Receive:
        """Authenticates and admits the request until the stack closes. Returns the `receive` to continue with."""
        scope, address = connection.scope, peer_of(connection)
        if self._public.match(scope):
            if scope["path"] == PROBE and not scope["query_string"]:
                return receive  # a plain probe is always answered
            self._admission.count_anonymous(address)
            stack.enter_context(self._admission.anonymous(address))
            return self._executing(stack, scope, self._admission.anonymous_execution(address), receive)
        with self._admission.arriving(address, reads=self._reads_first()):
            principal, receive = await self._authenticated(connection, receive)
        stack.enter_context(self._admission.caller(principal))
        fair_threads.caller.set(principal.actor)
        scope.setdefault("state", {}).update(principal=principal, by_key=_by_key(principal, connection.headers))
        return self._executing(stack, scope, self._admission.execution(principal), receive)

    def _executing(self, stack: ExitStack, scope: Scope, execution: Execution, receive: Receive) -> Receive:
        """The route begins the execution once it has the body. It ends with the request or earlier."""
        scope.setdefault("state", {})["execution"] = execution
        stack.callback(execution.end)
        return execution.reading(receive)

    def _reads_first(self) -> bool:
        """Whether the project's handler reads the body before the caller is authenticated."""
        return self._custom_auth is not None and not self._custom_auth.parameters.isdisjoint({"request", "body"})

    async def _authenticated(self, connection: HTTPConnection, receive: Receive) -> tuple[Principal, Receive]:
        try:
            return await self._identify(connection, receive)
        except Unauthenticated:
            self._admission.count_refused(peer_of(connection))
            raise

    async def _identify(self, connection: HTTPConnection, receive: Receive) -> tuple[Principal, Receive]:
        """Returns the caller and the `receive` to continue with."""
        if self._custom_auth is None or _PAGES.fullmatch(connection.scope["path"]) or _is_ours(connection):
            return await self._principal(connection), receive
        from assent.surfaces.http.custom_auth import Replay, principal

        body = self._admission.unclaimed_body(peer_of(connection))
        replay = Replay(body.counting(receive), receive)
        try:
            user = await principal(self._custom_auth, connection, replay)
            return await self._access.by_handler(user), replay.read_again
        finally:
            body.forget()  # from here on it counts for its caller

    async def _principal(self, connection: HTTPConnection) -> Principal:
        key = _key(connection.headers)
        if key and (is_key(key) or not self._keyless_allowed(connection)):
            return await self._access.by_key(key)
        if session := connection.cookies.get(session_cookie(connection)):
            require_same_origin(connection)
            return await self._access.by_session(session)
        if self._keyless_allowed(connection):
            return await self._keyless(connection)
        raise Unauthenticated()

    async def _keyless(self, connection: HTTPConnection) -> Principal:
        if self._settings.mode is not Mode.DEMO or connection.scope["path"] not in _TALKS:
            return local_agent()
        if any(name in connection.headers for name in _CREDENTIALS):
            return local_agent()  # a caller with a credential, even a wrong one, is not the keyless person
        if any(name in connection.headers for name in _BROWSERS):
            raise Unauthenticated("a page in a browser needs a key for this route")
        person = await self._local_person() if self._local_person else None
        return person or local_agent()

    def _keyless_allowed(self, connection: HTTPConnection) -> bool:
        """Whether the mode allows it and the peer, the Host header and the origin are all loopback."""
        if self._settings.mode is Mode.SERVE or _PAGES.fullmatch(connection.scope["path"]):
            return False
        origin = connection.headers.get("origin")
        return is_local(connection) and (origin is None or is_loopback_origin(origin))


def _is_ours(connection: HTTPConnection) -> bool:
    """Whether the request has a credential of ours: a key, or a session and no other key."""
    key = _key(connection.headers)
    other = key is not None or "authorization" in connection.headers
    return is_key(key) if key else session_cookie(connection) in connection.cookies and not other


def _by_key(principal: Principal, headers: Headers) -> bool:
    """Whether a header authenticated this request: no page can make a browser send one."""
    if principal.user is not None:
        return any(name in headers for name in _CREDENTIALS)
    return came_by_key(principal)


def _key(headers: Headers) -> str | None:
    """The API key of a request. One of ours precedes one that a client sends for another service."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    sent = [headers.get("x-api-key", ""), token.strip() if scheme.lower() == "bearer" else ""]
    return next((key for key in sent if is_key(key)), sent[0] or sent[1] or None)


def _refuse(connection: HTTPConnection, error: AssentError) -> Response:
    """Redirects a person who opens a page to sign in; a program gets the error."""
    path, query = connection.scope["path"], connection.url.query
    if isinstance(error, Unauthenticated) and _PAGES.fullmatch(path) and _opens_page(connection):
        target = path if connection.scope.get("method") == "GET" else path.rpartition("/")[0]
        return RedirectResponse(f"/login?next={quote(f'{target}?{query}' if query else target)}", 303)
    return errors.refuse(connection.scope, error)


def _opens_page(connection: HTTPConnection) -> bool:
    """Whether a browser requests a page, also by a form or by the page's own script."""
    return "text/html" in connection.headers.get("accept", "") or "assent-part" in connection.headers


async def _caller(request: Request) -> Principal:  # async: FastAPI would run a sync one in a thread
    principal: Principal = request.state.principal
    return principal


Caller = Annotated[Principal, Depends(_caller)]
"""The authenticated principal, as a route parameter."""
