"""The addresses that this server may call. One rule for all targets that callers name: webhooks, deployments, OIDC.

Public addresses only, unless the operator's configuration names the network or the host. The URL itself is checked when
it is submitted; the addresses of its name are resolved and checked at every connection.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assent.errors import TargetRefused
from assent.outbox.addresses import Address, Allowed, embedded, is_host, is_loopback_name, literal
from assent.outbox.webhook_rules import WebhookRules

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
        """The URL, parsed by the library that will call it, or `TargetRefused`. Makes no DNS lookup."""
        parsed = _read(url)
        host = _host(parsed)
        self.rules.check(scheme=parsed.scheme, host=host, port=parsed.port, length=len(str(parsed)))
        address = _THIS_MACHINE if is_loopback_name(host) else literal(host)
        if address is not None:
            self.check_addresses(host, [address])
        return parsed

    def check_addresses(self, host: str, addresses: Sequence[Address]) -> None:
        """All addresses of a name must be allowed: any of them could be used."""
        refused = [address for address in addresses if not self._admits(host, address)]
        if refused:
            # Only the log has the address: callers must not learn about internal names.
            log.warning("call refused: private address", extra={"host": host, "address": str(refused[0])})
            raise TargetRefused(f"{host} is not at a public address", hint=_HINT)

    def _admits(self, host: str, address: Address) -> bool:
        if self.rules.refuses_loopback and embedded(address).is_loopback:
            return False
        return self.allowed.admits(host, address)


def _read(url: str | httpx.URL) -> httpx.URL:
    import httpx  # slow to import, and needed only where there is a URL

    try:
        parsed = httpx.URL(url)
        scheme, host, port = parsed.scheme, _host(parsed), parsed.port
    except (httpx.InvalidURL, UnicodeError) as error:
        raise TargetRefused(f"not a URL: {error}") from None
    if scheme not in ("http", "https"):
        raise TargetRefused("only http:// and https:// addresses can be called")
    if not is_host(host):
        raise TargetRefused("the URL has no valid host")
    if port is not None and not 0 < port < 65536:
        raise TargetRefused("the URL's port is not valid")
    if parsed.userinfo:
        raise TargetRefused("a URL with a user name or password cannot be called")
    return parsed


def _host(url: httpx.URL) -> str:
    """The host for the DNS lookup, as ASCII."""
    return url.raw_host.decode("ascii")
