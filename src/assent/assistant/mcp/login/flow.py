"""One sign-in of a person at an MCP server: from the link to the stored tokens.

The MCP library drives it, with a request of its own to the server. It waits for the person here, in this process; if
the process ends, the next link starts another one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from assent.assistant.mcp.login.tokens import Tokens
from assent.kernel.ids import new_id

if TYPE_CHECKING:
    from mcp.client.auth import AuthorizationCodeResult
    from mcp.shared.auth import OAuthClientMetadata

log = logging.getLogger(__name__)

LINK_SECONDS = 30.0
WAIT_SECONDS = 3600.0
"""How long a link is good for; then the next request gets a new one."""
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
    None at first. `people` have opened the page."""

    def __init__(self, server_url: str, callback: str, tokens: Tokens) -> None:
        self._url = server_url
        self._callback = callback
        self._tokens = tokens
        self.id = new_id()
        self.page: str | None = None
        self.state: str | None = None
        self.people = set[str]()
        self.loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self.loop.create_future()
        self._answer: asyncio.Future[Any] = self.loop.create_future()
        self._work = asyncio.create_task(self._signed_in())

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

    async def _signed_in(self) -> bool:
        import httpx2
        from mcp.client.auth import OAuthClientProvider

        provider = OAuthClientProvider(
            self._url, metadata_of(self._callback), self._tokens, self._send_to, self._await_code
        )
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
        [self.state] = parse_qs(urlsplit(url).query)["state"]
        self.page = url
        self._opened.set_result(None)

    async def _await_code(self) -> AuthorizationCodeResult:
        async with asyncio.timeout(WAIT_SECONDS):
            result: AuthorizationCodeResult = await self._answer
            return result
