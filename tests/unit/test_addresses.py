"""Which addresses anyone may name: a table of every class there is, also of those that carry another inside."""

from ipaddress import ip_address

import pytest

from assent.errors import Invalid
from assent.outbox.addresses import EVERYWHERE, LOOPBACK, Allowed, is_host, is_loopback_name, is_public, literal

PRIVATE = {
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "private": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12:3456::1"],
    "link-local": ["169.254.0.1", "fe80::1", "fe80::1%eth0", "fec0::1"],
    "cloud metadata": ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"],
    "shared with a carrier": ["100.64.0.1", "100.127.255.255"],
    "unspecified": ["0.0.0.0", "0.1.2.3", "::"],  # noqa: S104 - judged, not bound
    "multicast": ["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"],
    "broadcast and reserved": ["255.255.255.255", "240.0.0.1", "4000::1", "100::1", "5f00::1"],
    "documentation and benchmarks": [
        "192.0.2.1",
        "198.51.100.1",
        "203.0.113.1",
        "198.18.0.1",
        "2001:db8::1",
        "3fff::1",
    ],
    "tunnels": ["2002:7f00:1::", "2001::1", "192.88.99.1"],
    "IPv4 mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:0"],
    "IPv4 compatible": ["::127.0.0.1", "::10.0.0.1"],
    "IPv4 translated": ["64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808"],
}
PUBLIC = ["8.8.8.8", "1.1.1.1", "100.63.255.255", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]


@pytest.mark.parametrize(("kind", "address"), [(kind, one) for kind, addresses in PRIVATE.items() for one in addresses])
def test_private_address_is_not_public(kind: str, address: str) -> None:
    assert not is_public(ip_address(address)), kind
    assert not Allowed().admits("any.example", ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_is_public(address: str) -> None:
    assert is_public(ip_address(address))
    assert Allowed().admits("any.example", ip_address(address))


@pytest.mark.parametrize("address", [one for private_parts in PRIVATE.values() for one in private_parts])
def test_control_with_every_network_allowed_every_address_is_admitted(address: str) -> None:
    assert Allowed.named(EVERYWHERE).admits("any.example", ip_address(address))


@pytest.mark.parametrize(
    ("named", "host", "address", "admitted"),
    [
        ("10.0.0.0/8", "x.example", "10.1.2.3", True),
        ("10.0.0.0/8", "x.example", "::ffff:10.1.2.3", True),
        ("10.0.0.0/8", "x.example", "64:ff9b::10.1.2.3", True),
        ("10.0.0.0/8", "x.example", "192.168.0.1", False),
        ("10.0.0.7", "x.example", "10.0.0.7", True),
        ("10.0.0.7", "x.example", "10.0.0.8", False),
        ("fd00::/8", "x.example", "fd00::1", True),
        ("[::1]", "x.example", "::1", True),
        ("hooks.internal", "hooks.internal", "10.9.9.9", True),
        ("Hooks.Internal.", "hooks.INTERNAL", "10.9.9.9", True),
        ("hooks.internal", "hooks.internal.", "10.9.9.9", True),
        ("hooks.internal", "evil.hooks.internal", "10.9.9.9", False),
        ("hooks.internal", "hooks.internal.evil.example", "10.9.9.9", False),
    ],
)
def test_only_networks_and_hosts_allowed_by_the_operator_are_admitted(
    named: str, host: str, address: str, admitted: bool
) -> None:
    assert Allowed.named([named]).admits(host, ip_address(address)) is admitted


def test_allowing_loopback_does_not_admit_the_unspecified_address() -> None:
    allowed = Allowed.named(LOOPBACK)
    assert allowed.admits("x", ip_address("127.0.0.1"))
    assert allowed.admits("x", ip_address("::1"))
    assert not allowed.admits("x", ip_address("0.0.0.0"))  # noqa: S104 - judged, not bound
    assert not allowed.admits("x", ip_address("10.0.0.1"))


@pytest.mark.parametrize("entry", ["", "10.0.0.0/33", "a b", "http://x", "x:80", "*.x", "0x7f.1", "2130706433", "10.0"])
def test_entry_that_is_neither_a_network_nor_a_host_is_refused(entry: str) -> None:
    with pytest.raises(Invalid):
        Allowed.named([entry])


@pytest.mark.parametrize(
    "host", ["example.com", "EXAMPLE.com.", "a_b.c-d.e", "xn--bcher-kva.example", "localhost", "1x"]
)
def test_host_name_is_a_host_and_not_an_address(host: str) -> None:
    assert is_host(host)
    assert literal(host) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "::1", "fe80::1%eth0"])
def test_address_literal_is_a_host(host: str) -> None:
    assert is_host(host)
    assert literal(host) is not None


@pytest.mark.parametrize(
    "host",
    [
        *("", ".", "a..b", "-a", "a-", "a b", "a%00b", "é.example", "x" * 254),
        *(
            "0x7f.1",
            "0X7F.1",
            "2130706433",
            "127.1",
            "0177.0.0.1",
            "017700000001",
            "0x7f000001",
            "1.2.3.4.5",
            "a.1",
            "a.0x1",
        ),
    ],
)
def test_ambiguous_or_malformed_host_is_refused(host: str) -> None:
    assert not is_host(host)


@pytest.mark.parametrize(
    ("host", "loopback"), [("localhost", True), ("a.LOCALHOST.", True), ("localhost.example", False)]
)
def test_loopback_names_are_recognised(host: str, loopback: bool) -> None:
    assert is_loopback_name(host) is loopback
