"""The sign-ins of this process: where tokens are kept, and which links wait for a person.

The command that serves sets the place. Without one nobody can sign in, and a server that needs it refuses its calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assent.assistant.mcp.login.flow import SignIn
from assent.assistant.mcp.login.tokens import Tokens
from assent.kernel.cipher import Cipher

if TYPE_CHECKING:
    from assent.assistant.mcp.login.credentials import Credentials

START = "/inbox/assistant/sign-in"
CALLBACK = "/assistant/sign-in"
_PURPOSE = b"assent MCP logins 1"


@dataclass(frozen=True, slots=True)
class Place:
    """`address` is this server's, to which authorization servers send people back."""

    address: str
    folder: Path
    secret: Callable[[], bytes]

    @property
    def callback(self) -> str:
        return self._at(CALLBACK)

    def link_of(self, sign_in: SignIn) -> str:
        return self._at(f"{START}/{sign_in.id}")

    def tokens_of(self, server_url: str) -> Tokens:
        return Tokens(self.folder, server_url, Cipher(self.secret, _PURPOSE))

    def _at(self, path: str) -> str:
        return f"{self.address.rstrip('/')}{path}"


_place: Place | None = None
_open: dict[str, SignIn] = {}


def keep_logins(place: Place | None) -> None:
    global _place
    _place = place


def credentials(server_url: str) -> Credentials:
    """The authentication of a connection to this server."""
    from assent.assistant.mcp.login.credentials import Credentials  # slow to import

    if _place is None:
        return Credentials(server_url)
    return Credentials(server_url, _place.callback, _place.tokens_of(server_url))


async def link_to(server_url: str) -> str | None:
    """The link of the pending sign-in at this server, or of a new one. None if the server offers none. It leads to a
    page of ours: agents read the question too, and must not get the address at which a person signs in."""
    if _place is None:
        return None
    known = _open.get(server_url)
    if known is None or not known.is_open or known.loop is not asyncio.get_running_loop():
        known = _open[server_url] = SignIn(server_url, _place.callback, _place.tokens_of(server_url))
    return _place.link_of(known) if await known.has_page() else None


def begin(id: str, person: str) -> str | None:
    """The page where this person signs in; None if the link is too old."""
    known = next((sign_in for sign_in in _open.values() if sign_in.is_open and sign_in.id == id), None)
    if known is None:
        return None
    known.people.add(person)
    return known.page


async def complete(state: str, code: str, issuer: str | None, person: str) -> bool:
    """Ends the sign-in with this state, which the person has begun. Returns whether it succeeded."""
    known = next((sign_in for sign_in in _open.values() if sign_in.is_open and sign_in.state == state), None)
    if known is None or person not in known.people:
        return False
    ending = asyncio.run_coroutine_threadsafe(known.complete(code, state, issuer), known.loop)
    return await asyncio.wrap_future(ending)


async def close_all() -> None:
    """Ends the sign-ins that wait in the running event loop."""
    here = [url for url, sign_in in _open.items() if sign_in.loop is asyncio.get_running_loop()]
    for url in here:
        await _open.pop(url).close()
