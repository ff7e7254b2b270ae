"""Which network addresses any caller may name as a target, and which only the operator may.

A caller's target must not reach networks that only this server can reach: its own machine, its local network, the
metadata service of its cloud. An IPv6 address that embeds an IPv4 address is judged by the embedded address, where
packets are sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from assent.errors import Invalid

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LOOPBACK = ("127.0.0.0/8", "::1/128")
EVERYWHERE = ("0.0.0.0/0", "::/0")

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_NUMBER = re.compile(r"0x[0-9a-f]*|\d+")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")

# Some Python releases that we support count these as global.
_NEVER_PUBLIC: tuple[Network, ...] = tuple(
    ip_network(network)
    for network in (
        "100.64.0.0/10",  # shared between carrier and customer; a cloud's metadata service is here
        "168.63.129.16/32",  # a cloud's metadata service at an address that looks public
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "64:ff9b:1::/48",  # translation inside a network
        "100::/64",
        "2001::/23",  # tunnels and protocol assignments
        "2001:db8::/32",
        "2002::/16",  # a tunnel to the IPv4 address inside
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fec0::/10",
    )
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The operator's exceptions: networks and hosts that may be called although they are not public."""

    networks: tuple[Network, ...] = ()
    hosts: frozenset[str] = frozenset()

    @classmethod
    def named(cls, entries: Iterable[str]) -> Allowed:
        """Parses `10.0.0.0/8`, `192.168.1.5` and `hooks.internal`."""
        networks, hosts = [], set()
        for entry in entries:
            network = _network(entry)
            if network is not None:
                networks.append(network)
            elif is_host(entry):
                hosts.add(plain_host(entry))
            else:
                raise Invalid(f"{entry!r} is neither a network nor a host", hint="such as 10.0.0.0/8 or hooks.internal")
        return cls(tuple(networks), frozenset(hosts))

    def admits(self, host: str, address: Address) -> bool:
        """Whether `host`, resolved to `address`, may be called."""
        judged = embedded(address)
        return is_public(judged) or plain_host(host) in self.hosts or self._names(judged) or self._names(address)

    def _names(self, address: Address) -> bool:
        return any(address in network for network in self.networks)


def is_public(address: Address) -> bool:
    judged = embedded(address)
    if judged.is_multicast or judged.is_reserved or judged.is_unspecified or not judged.is_global:
        return False
    return not any(judged in network for network in _NEVER_PUBLIC)


def embedded(address: Address) -> Address:
    """The IPv4 address inside a mapped, compatible or translated IPv6 address; otherwise the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    inside = IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return inside
    return address


def literal(host: str) -> Address | None:
    """The address in a literal host, or None for a name."""
    try:
        return ip_address(plain_host(host))
    except ValueError:
        return None


def plain_host(host: str) -> str:
    """The canonical form of a name: lower case, no final dot, no brackets."""
    return host.strip("[]").removesuffix(".").lower()


def is_host(host: str) -> bool:
    """Whether it is a name, or an address in canonical form. Some resolvers read a name whose last part is a number as
    an address (`0x7f.1`, `2130706433`), so that is refused as ambiguous."""
    text = plain_host(host)
    if literal(text) is not None:
        return True
    return len(text) <= 253 and _NAME.fullmatch(text) is not None and not _NUMBER.fullmatch(text.rpartition(".")[2])


def is_loopback_name(host: str) -> bool:
    """`localhost` and every name below it is this machine, whatever a name server answers."""
    return plain_host(host).rpartition(".")[2] == "localhost"


def _network(entry: str) -> Network | None:
    try:
        return ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None
