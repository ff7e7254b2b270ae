"""The login at one MCP server, as the MCP library stores it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from assent.assistant.mcp.login.records import Records

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


class Tokens:
    """A `TokenStorage` of the MCP library."""

    def __init__(self, records: Records, server_url: str) -> None:
        self._records = records
        self._url = server_url

    async def stored(self) -> tuple[OAuthToken | None, float | None]:
        """The tokens, and when the access token expires, in seconds since the epoch."""
        from mcp.shared.auth import OAuthToken

        login = await self._records.login(self._url)
        tokens = login.get("tokens")
        return (None if tokens is None else OAuthToken.model_validate(tokens)), login.get("ends")

    async def get_tokens(self) -> OAuthToken | None:
        return (await self.stored())[0]

    async def set_tokens(self, tokens: OAuthToken) -> None:
        ends = time.time() + tokens.expires_in if tokens.expires_in is not None else None
        changes = {"tokens": tokens.model_dump(mode="json", exclude_none=True), "ends": ends}
        await self._records.change_login(self._url, changes)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        client = (await self._records.login(self._url)).get("client")
        return None if client is None else OAuthClientInformationFull.model_validate(client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        client = client_info.model_dump(mode="json", exclude_none=True)
        await self._records.change_login(self._url, {"client": client})
