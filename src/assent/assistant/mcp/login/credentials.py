"""Authenticates the requests of a connection with the stored login, if a person can sign in, and refreshes it. It never
asks a person, and remembers whether the server refused: the client reports only that the request failed.

This module imports the HTTP library of the MCP client.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthToken

from assent.assistant.mcp.login.flow import metadata_of
from assent.assistant.mcp.login.tokens import Tokens

_UNKNOWN, _FORBIDDEN = 401, 403


class Credentials(httpx2.Auth):
    """`status` is the status with which the server refused the last request; None if it did not. Without `tokens`,
    requests have the headers of the settings only."""

    def __init__(self, server_url: str, callback: str = "", tokens: Tokens | None = None) -> None:
        self.status: int | None = None
        self._url = server_url
        self._callback = callback
        self._tokens = tokens
        self._of: str | None = None
        self._provider: OAuthClientProvider | None = None

    @property
    def login_required(self) -> bool:
        return self._tokens is not None and self.status == _UNKNOWN

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """A refused request is made once more if another connection has stored new tokens meanwhile."""
        while True:
            used, ends = await self._stored()
            flow = self._provider_of(used, ends).async_auth_flow(request) if used else _plainly(request)
            async with aclosing(flow):  # in this task, which holds the lock of the flow
                sent = await anext(flow)
                while True:
                    response = yield sent
                    if sent.url == request.url and response.status_code == _UNKNOWN:
                        break
                    try:
                        sent = await flow.asend(response)
                    except StopAsyncIteration:
                        break
            self.status = response.status_code if response.status_code in (_UNKNOWN, _FORBIDDEN) else None
            stored, _ = await self._stored()
            if not self.login_required or stored is None or (used and stored.access_token == used.access_token):
                return

    def _provider_of(self, stored: OAuthToken, ends: float | None) -> OAuthClientProvider:
        assert self._tokens is not None
        if self._provider is None or self._of != stored.access_token:
            self._of = stored.access_token
            self._provider = OAuthClientProvider(self._url, metadata_of(self._callback), self._tokens)
            self._provider.context.token_expiry_time = ends
        return self._provider

    async def _stored(self) -> tuple[OAuthToken | None, float | None]:
        return await self._tokens.stored() if self._tokens is not None else (None, None)


async def _plainly(request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
    yield request
