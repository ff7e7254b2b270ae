"""Deployments: servers that run graphs. This one, by every address that leads to it; remote ones are not known yet."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from assent.errors import Invalid

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = "loopback"
_HINT = "such as http://127.0.0.1:2024"
_LATER = "remote deployments come with a later release; until then an inbox shows graphs of this server"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, as far as that tells two servers apart. Every way to say *this machine* is the same."""

    host: str
    port: int


class Deployments:
    def __init__(self, own: Iterable[str] = ()) -> None:
        """`own` are addresses that lead to this server."""
        self._own = tuple(own)

    def require_own(self, url: str, here: str | None = None) -> str:
        """The address without what follows its port. `here` is the one by which the caller has come: theirs is ours."""
        wanted, known = parsed(url), [parsed(one) for one in (*self._own, *([here] if here else []))]
        if wanted not in known:
            raise Invalid(f"{origin(url)} is another server than this one", hint=_LATER)
        return origin(url)

    def this(self, here: str | None = None) -> str | None:
        found = here or next(iter(self._own), None)
        return None if found is None else origin(found)


def parsed(url: str) -> Address:
    parts = urlsplit(origin(url))
    return Address(_same_machine(parts.hostname or ""), parts.port or _PORTS[parts.scheme])


def origin(url: str) -> str:
    """`http://host:port` of an address, or `Invalid` where there is none in it."""
    wrong = Invalid("the deployment URL is not an address of a server", hint=_HINT)
    try:
        parts = urlsplit(url.strip())
        valid = parts.scheme in _PORTS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise wrong from None
    if not valid:
        raise wrong
    if parts.username is not None or parts.password is not None:
        raise Invalid("the deployment URL must hold no password", hint=_HINT)
    return f"{parts.scheme}://{parts.netloc}"


def _same_machine(host: str) -> str:
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return _LOOPBACK
    try:
        # The C library reads 127.1 and 0x7f000001 as well, and so do browsers.
        found = ip_address(name if ":" in name else socket.inet_ntoa(socket.inet_aton(name)))
    except (OSError, ValueError):
        return name
    mapped = getattr(found, "ipv4_mapped", None) or found
    return _LOOPBACK if mapped.is_loopback or mapped.is_unspecified else str(mapped)
