"""The origin of passkeys: browsers bind them to the domain of a page, and that page has to be secure.

The setting `public_url` names the address. Without it, it is the one that the browser requested, if this server answers
for it: a domain with https, or `localhost`. An IP address is not a domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from assent.identity.model.passkeys import Party
from assent.settings import is_ip_address, is_loopback
from assent.surfaces.http.origins import address_of, host_of, port_of

_LOCALHOST = "localhost"
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Site:
    """The relying party of the page that is shown. `elsewhere`: the address of this server where passkeys work, if that
    is another one."""

    party: Party | None = None
    elsewhere: str | None = None


class Relying:
    def __init__(self, public_url: str | None = None) -> None:
        self._public = public_url

    def party(self, connection: HTTPConnection) -> Party | None:
        """The relying party at this address; None if passkeys do not work here."""
        return _party(self._public or address_of(connection))

    def site(self, connection: HTTPConnection) -> Site:
        here, party = address_of(connection), _party(self._base(connection))
        same = party is not None and here is not None and party.origin == _origin(here)
        elsewhere = None if party is None or same else self._base(connection)
        return Site(None if elsewhere else self.party(connection), elsewhere)

    def page(self, connection: HTTPConnection, path: str) -> str:
        """The full URL of a page, at an address where passkeys work if there is one."""
        return f"{self._base(connection) or ''}{path}"

    def _base(self, connection: HTTPConnection) -> str | None:
        if self._public:
            return self._public
        if is_loopback(host_of(connection)):
            port = port_of(connection)
            return f"{connection.url.scheme}://{_LOCALHOST}{f':{port}' if port else ''}"
        return address_of(connection)


def _party(address: str | None) -> Party | None:
    url = urlsplit(address or "")
    host = (url.hostname or "").lower()
    secure = url.scheme == "https" or host == _LOCALHOST
    return Party(host, _origin(str(address))) if host and secure and not is_ip_address(host) else None


def _origin(address: str) -> str:
    """The origin as browsers write it: in lower case and without the scheme's default port."""
    url = urlsplit(address)
    host, port = url.hostname or "", url.port
    shown = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{shown}" + (f":{port}" if port and port != _USUAL_PORTS.get(url.scheme) else "")
