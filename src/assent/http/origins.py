"""Where a request comes from: which host it asked for, which page sent it, whether it was made on this machine."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from assent.errors import OriginRefused
from assent.settings import LOOPBACK_ORIGIN, is_loopback

_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::(?P<port>\d*))?")
_RELAYED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""Headers of a proxy or tunnel: whoever is behind it is not on this machine, though the connection is."""

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def host_of(connection: HTTPConnection) -> str:
    """The host that was asked for, without its port: `[::1]:2024` → `::1`. Empty where the header is anything else."""
    found = _HOST.fullmatch(connection.headers.get("host", ""))
    return (found["v6"] or found["name"]).lower() if found else ""


def port_of(connection: HTTPConnection) -> str:
    """The port that was asked for, empty where it is the scheme's own."""
    found = _HOST.fullmatch(connection.headers.get("host", ""))
    return (found["port"] or "") if found else ""


def is_local(connection: HTTPConnection) -> bool:
    """Made on this machine, by name and by address, with nobody in between."""
    peer = connection.client.host if connection.client else ""
    relayed = any(name in connection.headers for name in _RELAYED)
    return is_loopback(peer) and is_loopback(host_of(connection)) and not relayed


def is_loopback_origin(origin: str) -> bool:
    return re.fullmatch(LOOPBACK_ORIGIN, origin) is not None


def require_same_origin(connection: HTTPConnection) -> None:
    """A cookie travels by itself, so what it changes must come from a page of ours."""
    if connection.scope.get("method", "GET") in _SAFE_METHODS:
        return
    origin = connection.headers.get("origin")
    cross_site = connection.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    if cross_site or (origin is not None and urlsplit(origin).netloc != connection.headers.get("host")):
        raise OriginRefused()


def address_of(connection: HTTPConnection) -> str | None:
    """The address by which this server was reached: a host that it answers for, or the request were not here."""
    host = connection.headers.get("host", "")
    return f"{connection.url.scheme}://{host}" if _HOST.fullmatch(host) else None
