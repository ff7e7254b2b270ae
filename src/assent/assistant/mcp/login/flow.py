"""One sign-in of a person at an MCP server: from the link to the stored tokens.

The MCP library drives it, with a request of its own to the server. It waits for the person in this process; the person
may come back to another one. If this process ends, the next link starts another sign-in.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from assent.assistant.mcp.login.records import Records
from assent.assistant.mcp.login.tokens import Tokens
from assent.errors import Unavailable
from assent.kernel.ids import new_id

if TYPE_CHECKING:
    from mcp.client.auth import AuthorizationCodeResult
    from mcp.shared.auth import OAuthClientMetadata

log = logging.getLogger(__name__)

LINK_SECONDS = 30.0
WAIT_SECONDS = 3600.0
"""How long a link is good for; then the next request gets a new one."""
_LOOK_EVERY = 2.0
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


def metadata_of(callback: str) -> OAuthClientMetadata:
    from mcp.shared.auth import OAuthClientMetadata

    return OAuthClientMetadata.model_validate(
        {
            "client_name": "Assent",
            "redirect_uris": [callback],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        }
    )


class SignIn:
    """`page` is that of the authorization server, and `state` the secret that it sends back with the code: both are
    None at first."""

    def __init__(self, server_url: str, callback: str, records: Records) -> None:
        self._url = server_url
        self._callback = callback
        self._records = records
        self.id = new_id()
        self.page: str | None = None
        self.state: str | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self._work = asyncio.create_task(self._recorded())

    @property
    def is_open(self) -> bool:
        return not self._work.done()

    async def has_page(self) -> bool:
        """Whether the server leads to an authorization server."""
        first: set[asyncio.Future[Any]] = {self._opened, self._work}
        await asyncio.wait(first, timeout=LINK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        return self.page is not None

    async def complete(self, code: str, state: str, issuer: str | None) -> bool:
        """Exchanges the code for tokens and stores them. Returns whether that succeeded."""
        from mcp.client.auth import AuthorizationCodeResult

        if not self._answer.done():
            self._answer.set_result(AuthorizationCodeResult(code=code, state=state, iss=issuer))
        return await asyncio.shield(self._work)

    async def close(self) -> None:
        """Its link signs nobody in any more."""
        self._work.cancel()
        await asyncio.wait([self._work])

    async def _recorded(self) -> bool:
        """Whether it succeeded, also for the process that the person has come back to."""
        done = False
        try:
            done = await self._signed_in()
        finally:
            if self.state is not None:
                with suppress(Unavailable):  # the store may close first; the next link replaces this one
                    await self._records.end(self.state, done=done)
        return done

    async def _signed_in(self) -> bool:
        import httpx2
        from mcp.client.auth import OAuthClientProvider

        tokens = Tokens(self._records, self._url)
        provider = OAuthClientProvider(self._url, metadata_of(self._callback), tokens, self._send_to, self._await_code)
        try:
            async with (
                httpx2.AsyncClient(auth=provider, timeout=LINK_SECONDS) as http,
                http.stream("POST", self._url, json=_PING, headers=_HEADERS) as response,
            ):
                return response.status_code not in (401, 403)
        except Exception as error:  # noqa: BLE001 - the library and the server raise whatever they like
            log.warning("sign in at MCP server failed: %s", type(error).__name__)
            return False

    async def _send_to(self, url: str) -> None:
        [state] = parse_qs(urlsplit(url).query)["state"]
        await self._records.offer(self._url, self.id, state, url)
        self.state, self.page = state, url
        self._opened.set_result(None)

    async def _await_code(self) -> AuthorizationCodeResult:
        async with asyncio.timeout(WAIT_SECONDS):
            while not self._answer.done():
                await self._look()
                await asyncio.wait([self._answer], timeout=_LOOK_EVERY)
            return self._answer.result()

    async def _look(self) -> None:
        """For the answer of a person who has come back to another process."""
        from mcp.client.auth import AuthorizationCodeResult

        assert self.state is not None
        wanted, answer = await self._records.look(self._url, self.state)
        if not wanted:
            raise SignInReplaced
        if answer is not None and not self._answer.done():
            code, issuer = answer
            self._answer.set_result(AuthorizationCodeResult(code=code, state=self.state, iss=issuer))


class SignInReplaced(RuntimeError):
    """Another process has begun a sign-in at the same server."""
