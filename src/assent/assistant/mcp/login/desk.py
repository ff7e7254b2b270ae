"""The sign-ins at MCP servers: which links wait for a person, and where the tokens are kept.

A process that serves or executes runs has one `Logins`, which belongs to the extension. Without it nobody can sign in,
and a server that needs it refuses its calls.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from assent.assistant.mcp.login.flow import SignIn
from assent.assistant.mcp.login.records import Records
from assent.assistant.mcp.login.tokens import Tokens

if TYPE_CHECKING:
    from assent.assistant.mcp.login.credentials import Credentials

START = "/inbox/assistant/sign-in"
CALLBACK = "/assistant/sign-in"
PURPOSE = b"assent MCP logins 1"
_LOOK_EVERY = 0.2
_ENDS_WITHIN = 30.0


class Logins:
    """`address` is that of the servers, to which authorization servers send people back."""

    def __init__(self, address: str, records: Records) -> None:
        self._address = address.rstrip("/")
        self._records = records
        self._open: dict[str, SignIn] = {}

    def credentials(self, server_url: str) -> Credentials:
        """The authentication of a connection to this server."""
        from assent.assistant.mcp.login.credentials import Credentials  # slow to import

        return Credentials(server_url, f"{self._address}{CALLBACK}", Tokens(self._records, server_url))

    async def link_to(self, server_url: str) -> str | None:
        """The link of the pending sign-in at this server, of any process, or of a new one. None if the server offers
        none. It leads to a page of ours: agents read the question too, and must not get the address at which a person
        signs in."""
        known = self._open.get(server_url)
        if known is None or not known.is_open or known.page is not None:
            if (offered := await self._records.offered(server_url)) is not None:
                return self._link_of(offered)
            if known is not None and known.is_open:
                await known.close()
            known = self._open[server_url] = SignIn(server_url, f"{self._address}{CALLBACK}", self._records)
        return self._link_of(known.id) if await known.has_page() else None

    async def begin(self, id: str, person: str) -> str | None:
        """The page where this person signs in; None if the link is too old."""
        return await self._records.begin(id, person)

    async def complete(self, state: str, code: str, issuer: str | None, person: str) -> bool:
        """Ends the sign-in with this state, which the person has begun, in the process that waits for it. Returns
        whether it succeeded."""
        if not await self._records.answer(state, code, issuer, person):
            return False
        own = next((known for known in self._open.values() if known.is_open and known.state == state), None)
        if own is not None:
            return await own.complete(code, state, issuer)
        try:
            async with asyncio.timeout(_ENDS_WITHIN):
                while (done := await self._records.ended(state)) is None:  # noqa: ASYNC110 - in another process
                    await asyncio.sleep(_LOOK_EVERY)
                return done
        except TimeoutError:  # its process is gone
            await self._records.end(state, done=False)
            return False

    def _link_of(self, id: str) -> str:
        return f"{self._address}{START}/{id}"

    async def close(self) -> None:
        """Ends the sign-ins that wait in this process."""
        waiting, self._open = self._open, {}
        for sign_in in waiting.values():
            await sign_in.close()


_logins: Logins | None = None


def use(logins: Logins | None) -> None:
    """For the graphs of this process: they are built from the settings, without services."""
    global _logins
    _logins = logins


def leave(logins: Logins) -> None:
    """Its store is about to close."""
    if _logins is logins:
        use(None)


def credentials(server_url: str) -> Credentials:
    """The authentication of a connection to this server, with a login if people can sign in."""
    from assent.assistant.mcp.login.credentials import Credentials  # slow to import

    return _logins.credentials(server_url) if _logins is not None else Credentials(server_url)


async def link_to(server_url: str) -> str | None:
    """The page where a person can sign in at this server; None without one."""
    return await _logins.link_to(server_url) if _logins is not None else None
