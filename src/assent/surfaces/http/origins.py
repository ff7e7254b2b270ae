"""The origin of a request: its Host header, the page that sent it, and whether it comes from this machine."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from assent.errors import OriginRefused
from assent.settings import LOOPBACK_ORIGIN, is_loopback

_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>\d*))?")
_RELAYED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""Headers of a proxy or tunnel: the client behind it is not on this machine, though the connection is."""

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def host_of(connection: HTTPConnection) -> str:
    """The requested host without its port: `[::1]:2024` → `::1`. Empty if the header is malformed."""
    match = _HOST.fullmatch(connection.headers.get("host", ""))
    return (match["v6"] or match["name"]).lower() if match else ""


def port_of(connection: HTTPConnection) -> str:
    """The requested port; empty for the scheme's default."""
    match = _HOST.fullmatch(connection.headers.get("host", ""))
    return (match["port"] or "") if match else ""


def is_local(connection: HTTPConnection) -> bool:
    """Whether the request was made on this machine, by name and by address, without a proxy."""
    peer = connection.client.host if connection.client else ""
    relayed = any(name in connection.headers for name in _RELAYED)
    return is_loopback(peer) and is_loopback(host_of(connection)) and not relayed


def is_loopback_origin(origin: str) -> bool:
    return re.fullmatch(LOOPBACK_ORIGIN, origin) is not None


def require_same_origin(connection: HTTPConnection) -> None:
    """Browsers send cookies from any page, so changes must come from a page of ours. Browsers send no preflight for a
    web socket, and a page can read from it: there the Origin header is required."""
    origin = connection.headers.get("origin")
    if connection.scope["type"] == "websocket":
        if origin is None or not is_own_origin(connection, origin):
            raise OriginRefused()
        return
    if origin is not None and not is_own_origin(connection, origin):
        raise OriginRefused()
    cross_site = connection.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    if cross_site and connection.scope.get("method", "GET") not in _SAFE_METHODS:
        raise OriginRefused()


def is_own_origin(connection: HTTPConnection, origin: str) -> bool:
    """Whether the origin is the address that the client requested."""
    return urlsplit(origin).netloc == connection.headers.get("host")


def peer_of(connection: HTTPConnection) -> str:
    """The client's address; behind a trusted proxy, the one that the proxy names."""
    return connection.client.host if connection.client else ""


def address_of(connection: HTTPConnection) -> str | None:
    """The address of this server as the client requested it; the host check has accepted its host."""
    host = connection.headers.get("host", "")
    return f"{connection.url.scheme}://{host}" if _HOST.fullmatch(host) else None


def public_address(public_url: str | None, connection: HTTPConnection) -> str:
    """The address of this server for others: the setting, or the address that the client requested."""
    return public_url or address_of(connection) or ""
