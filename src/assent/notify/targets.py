"""What this server may call. One rule for everything that is called on somebody's word: webhooks, deployments, OIDC.

Public addresses only, unless the operator's configuration names the network or the host. A URL is looked at when it is
given, which finds what it plainly says; where its name leads is found, and judged again, at every connection.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assent.domain.addresses import Address, Allowed, is_host, is_loopback_name, literal
from assent.domain.webhook_rules import WebhookRules
from assent.errors import TargetRefused

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

_THIS_MACHINE = ipaddress.IPv4Address("127.0.0.1")
_HINT = "the operator can name the network or the host in outbound_allow"


@dataclass(frozen=True, slots=True)
class Targets:
    allowed: Allowed = field(default_factory=Allowed)
    rules: WebhookRules = field(default_factory=WebhookRules)

    def check_url(self, url: str | httpx.URL) -> httpx.URL:
        """The URL, read by the same code that will call it, or `TargetRefused`. Asks no name server."""
        found = _read(url)
        host = _host(found)
        self.rules.check(scheme=found.scheme, host=host, port=found.port, length=len(str(found)))
        address = _THIS_MACHINE if is_loopback_name(host) else literal(host)
        if address is not None:
            self.check_addresses(host, [address])
        return found

    def check_addresses(self, host: str, addresses: Sequence[Address]) -> None:
        """All that a name leads to must be allowed: of a mixed answer nobody knows which one is meant."""
        refused = [address for address in addresses if not self.allowed.admits(host, address)]
        if refused:
            # Only the log says where the name leads: inside names of a network are nothing to tell a caller.
            log.warning("refused to call a private address", extra={"host": host, "address": str(refused[0])})
            raise TargetRefused(f"{host} is not at a public address", hint=_HINT)


def _read(url: str | httpx.URL) -> httpx.URL:
    import httpx  # slow to import, and needed only where there is a URL

    try:
        found = httpx.URL(url)
        scheme, host, port = found.scheme, _host(found), found.port
    except (httpx.InvalidURL, UnicodeError) as error:
        raise TargetRefused(f"not a URL: {error}") from None
    if scheme not in ("http", "https"):
        raise TargetRefused("only http:// and https:// addresses are called")
    if not is_host(host):
        raise TargetRefused("the URL names no host in the usual spelling")
    if port is not None and not 0 < port < 65536:
        raise TargetRefused("the URL's port is none")
    if found.userinfo:
        raise TargetRefused("a URL with a user name or password is not called")
    return found


def _host(url: httpx.URL) -> str:
    """The name as it is looked up: ASCII, whatever letters it was written in."""
    return url.raw_host.decode("ascii")
