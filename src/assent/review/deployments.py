"""The address of a deployment: this server, under any of its addresses, or another one."""

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


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server, normalised for comparison: all loopback names are equal."""

    host: str
    port: int


class Deployments:
    def __init__(self, own: Iterable[str] = ()) -> None:
        """`own` are the addresses of this server."""
        self._own = tuple(own)

    def is_own(self, url: str, here: str | None = None) -> bool:
        """Whether the URL is this server's. `here` is the address of the caller's request: always ours."""
        return parsed(url) in [parsed(address) for address in (*self._own, *([here] if here else []))]

    def this(self, here: str | None = None) -> str | None:
        address = here or next(iter(self._own), None)
        return None if address is None else origin(address)


def parsed(url: str) -> Address:
    parts = urlsplit(origin(url))
    return Address(_same_machine(parts.hostname or ""), parts.port or _PORTS[parts.scheme])


def origin(url: str) -> str:
    """`http://host:port` of a URL; raises `Invalid` for any other text."""
    wrong = Invalid("the deployment URL is not a valid server address", hint=_HINT)
    try:
        parts = urlsplit(url.strip())
        valid = parts.scheme in _PORTS and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise wrong from None
    if not valid:
        raise wrong
    if parts.username is not None or parts.password is not None:
        raise Invalid("the deployment URL must not contain credentials", hint=_HINT)
    return f"{parts.scheme}://{parts.netloc}"


def _same_machine(host: str) -> str:
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return _LOOPBACK
    try:
        # The C library and browsers also accept 127.1 and 0x7f000001.
        address = ip_address(name if ":" in name else socket.inet_ntoa(socket.inet_aton(name)))
    except (OSError, ValueError):
        return name
    mapped = getattr(address, "ipv4_mapped", None) or address
    return _LOOPBACK if mapped.is_loopback or mapped.is_unspecified else str(mapped)
