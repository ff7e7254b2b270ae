"""The tokens of one MCP server, encrypted in a file of their own beside the database."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assent.kernel import private_file
from assent.kernel.cipher import Cipher, Undecipherable

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

log = logging.getLogger(__name__)


class Tokens:
    """A `TokenStorage` of the MCP library."""

    def __init__(self, folder: Path, server_url: str, cipher: Cipher) -> None:
        self._file = folder / hashlib.sha256(server_url.encode()).hexdigest()[:32]
        self._place = server_url.encode()
        self._cipher = cipher

    async def get_tokens(self) -> OAuthToken | None:
        from mcp.shared.auth import OAuthToken

        tokens = self._read().get("tokens")
        return None if tokens is None else OAuthToken.model_validate(tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        ends = time.time() + tokens.expires_in if tokens.expires_in is not None else None
        self._write({"tokens": tokens.model_dump(mode="json", exclude_none=True), "ends": ends})

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        from mcp.shared.auth import OAuthClientInformationFull

        client = self._read().get("client")
        return None if client is None else OAuthClientInformationFull.model_validate(client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write({"client": client_info.model_dump(mode="json", exclude_none=True)})

    @property
    def end(self) -> float | None:
        """When the access token expires, in seconds since the epoch."""
        return self._read().get("ends")

    def _read(self) -> dict[str, Any]:
        try:
            read: dict[str, Any] = json.loads(self._cipher.open(self._file.read_bytes(), self._place))
        except FileNotFoundError:
            return {}
        except Undecipherable:
            log.warning("decrypt login of MCP server failed: it was stored with another secret_key")
            return {}
        return read

    def _write(self, changes: dict[str, Any]) -> None:
        with private_file.locked(self._file.parent):
            sealed = self._cipher.seal(json.dumps(self._read() | changes).encode(), self._place)
            private_file.replace(self._file, sealed)
