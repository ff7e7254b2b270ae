"""The one client that calls what somebody named, over real sockets: where it goes, and where nobody can send it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address

import httpx
import pytest

from assent.errors import TargetRefused
from assent.outbox import client as outbound
from assent.outbox.addresses import EVERYWHERE, LOOPBACK, Allowed
from assent.outbox.client import Outbound
from assent.outbox.network import PinnedNetwork, Resolve, ask_system
from assent.outbox.targets import Targets
from tests.receiver import Receiver, receiving

SPELLINGS_OF_LOOPBACK = [
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "0.0.0.0",  # noqa: S104 - called, not bound
    "0",
    "[::]",
    "127.0.0.1%00.example.com",
    "１２７.０.０.１",
    "127。0。0。1",
]


def answering(*answers: Sequence[str]) -> Resolve:
    """A name server that gives these answers one after the other, and the last one for ever."""
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


@asynccontextmanager
async def calling(*allowed: str, resolve: Resolve | None = None) -> AsyncIterator[Outbound]:
    nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the usual certificates takes a while
    client = Outbound(Targets(Allowed.named(allowed)), resolve=resolve, trust=nobody)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as webhook_receiver:
        yield webhook_receiver


async def test_a_call_arrives_as_it_was_made(receiver: Receiver) -> None:
    receiver.body = b"fine"
    async with calling(*LOOPBACK) as client:
        answer = await client.send("POST", f"{receiver.url}/a?b=c#d", headers={"x-one": "1"}, content=b"hello")
    (call,) = receiver.calls
    assert (call.method, call.path, call.content, call.headers["x-one"]) == ("POST", "/a?b=c", b"hello", "1")
    assert (answer.status, answer.body, answer.complete) == (200, b"fine", True)
    assert call.headers["host"] == f"127.0.0.1:{receiver.port}"


class TestPrivateAddresses:
    @pytest.mark.parametrize("host", SPELLINGS_OF_LOOPBACK)
    async def test_any_spelling_of_a_loopback_address_is_refused(self, receiver: Receiver, host: str) -> None:
        async with calling() as client:
            with pytest.raises(TargetRefused):
                await client.send("GET", f"http://{host}:{receiver.port}/")
        assert receiver.calls == []

    @pytest.mark.parametrize(
        "address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fd00::1"]
    )
    async def test_name_that_resolves_to_a_private_address_is_refused(self, receiver: Receiver, address: str) -> None:
        async with calling(resolve=answering([address])) as client:
            with pytest.raises(TargetRefused) as refused:
                await client.send("GET", f"http://hooks.example:{receiver.port}/")
        assert receiver.calls == []
        assert address not in refused.value.message, "where a name leads inside is nothing to tell"

    async def test_name_with_a_private_address_among_public_ones_is_refused(self, receiver: Receiver) -> None:
        for answer in (["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"]):
            async with calling(resolve=answering(answer)) as client:
                with pytest.raises(TargetRefused):
                    await client.send("GET", f"http://hooks.example:{receiver.port}/")
        assert receiver.calls == []

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
    async def test_control_with_the_guard_off_the_same_call_arrives(self, receiver: Receiver, host: str) -> None:
        async with calling(*EVERYWHERE) as client:
            assert (await client.send("GET", f"http://{host}:{receiver.port}/")).status == 200
        assert len(receiver.calls) == 1

    async def test_control_a_plain_client_calls_loopback_by_numeric_spellings(self, receiver: Receiver) -> None:
        async with httpx.AsyncClient(trust_env=False) as client:
            for host in ("2130706433", "0x7f.1", "127.1"):
                await client.get(f"http://{host}:{receiver.port}/")
        assert len(receiver.calls) == 3

    async def test_host_allowed_by_the_operator_is_called(self, receiver: Receiver) -> None:
        there = answering(["127.0.0.1"])
        for allowed in ("127.0.0.0/8", "127.0.0.1", "hooks.internal"):
            async with calling(allowed, resolve=there) as client:
                assert (await client.send("GET", f"http://hooks.internal:{receiver.port}/")).status == 200
        assert [call.headers["host"] for call in receiver.calls] == [f"hooks.internal:{receiver.port}"] * 3
        async with calling("other.internal", resolve=there) as client:
            with pytest.raises(TargetRefused):
                await client.send("GET", f"http://hooks.internal:{receiver.port}/")


class TestNamesThatChange:
    """127.0.0.2 stands for a public address: it is allowed and nobody listens there. The receiver's is not allowed."""

    async def test_the_connection_goes_to_the_address_that_was_checked(self, receiver: Receiver) -> None:
        async with calling("127.0.0.2", resolve=answering(["127.0.0.2"], ["127.0.0.1"])) as client:
            with pytest.raises(httpx.ConnectError):
                await client.send("GET", f"http://rebinding.example:{receiver.port}/")
            with pytest.raises(TargetRefused):
                await client.send("GET", f"http://rebinding.example:{receiver.port}/")
        assert receiver.calls == []

    async def test_control_resolving_again_after_the_check_reaches_another_address(self, receiver: Receiver) -> None:
        resolve, targets = answering(["127.0.0.2"], ["127.0.0.1"]), Targets(Allowed.named(["127.0.0.2"]))
        checked = [ip_address(address) for address in await resolve("rebinding.example", receiver.port)]
        targets.check_addresses("rebinding.example", checked)
        (again,) = await resolve("rebinding.example", receiver.port)
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.get(f"http://{again}:{receiver.port}/")
        assert len(receiver.calls) == 1

    async def test_next_address_is_tried_when_the_first_does_not_answer(self, receiver: Receiver) -> None:
        async with calling(*LOOPBACK, resolve=answering(["127.0.0.2", "127.0.0.1"])) as client:
            assert (await client.send("GET", f"http://two.example:{receiver.port}/")).status == 200

    async def test_name_without_addresses_is_a_connect_error(self) -> None:
        async with calling(resolve=answering([])) as client:
            with pytest.raises(httpx.ConnectError):
                await client.send("GET", "http://nowhere.example/")


class TestUrls:
    @pytest.mark.parametrize(
        "url",
        [
            "",
            "/relative",
            "//example.com",
            "example.com",
            "ftp://example.com",
            "file:///etc/passwd",
            "gopher://127.0.0.1:6379/_x",
            "unix:///run/docker.sock",
            "http://",
            "http:///x",
            "http://exa mple/",
            "http://example.com:0/",
            "http://example.com:99999/",
            "http://user@example.com/",
            "http://user:password@example.com/",
            "http://example.com@127.0.0.1/",
            "http://example.com\\@127.0.0.1/",
            "http://xn--/",
            "http://example.com\r\nx: y/",
            "http://" + "a" * 300 + ".example/",
        ],
    )
    async def test_url_that_is_not_plain_http_or_https_is_refused(self, url: str) -> None:
        async with calling() as client:
            with pytest.raises(TargetRefused):
                await client.send("GET", url)

    @pytest.mark.parametrize(
        "url", ["https://example.com/x", "HTTP://EXAMPLE.com", "https://bücher.example:8443/?a=b@c"]
    )
    def test_plain_http_and_https_urls_are_accepted(self, url: str) -> None:
        assert Targets().check_url(url).scheme in ("http", "https")


class TestRedirects:
    @pytest.mark.parametrize(
        "location",
        [
            "http://127.0.0.1:{port}/inside",
            "http://[::1]:{port}/inside",
            "http://169.254.169.254/latest/meta-data",
            "http://inside.example/",
            "//2130706433/",
            "ftp://example.com/",
            "http://user:password@front.example:{port}/",
        ],
    )
    async def test_redirect_to_a_refused_target_is_refused(self, receiver: Receiver, location: str) -> None:
        async def resolve(host: str, port: int) -> list[str]:
            return {"front.example": ["127.0.0.1"], "inside.example": ["10.0.0.1"]}[host]

        receiver.answers.append(f"307 Over there\r\nlocation: {location.format(port=receiver.port)}")
        async with calling("front.example", resolve=resolve) as client:
            with pytest.raises((TargetRefused, httpx.UnsupportedProtocol)):
                await client.send("POST", f"http://front.example:{receiver.port}/", content=b"x")
        assert len(receiver.calls) == 1

    @pytest.mark.parametrize("status", [307, 308])
    async def test_redirect_to_an_allowed_target_keeps_method_and_body(self, receiver: Receiver, status: int) -> None:
        receiver.answers.append(f"{status} Over there\r\nlocation: /there")
        async with calling(*LOOPBACK) as client:
            answer = await client.send("POST", f"{receiver.url}/here", content=b"x")
        assert answer.status == 200
        assert [(call.method, call.path, call.content) for call in receiver.calls] == [
            ("POST", "/here", b"x"),
            ("POST", "/there", b"x"),
        ]

    @pytest.mark.parametrize("status", [301, 302, 303])
    async def test_redirect_that_would_drop_the_body_is_returned_as_the_answer(
        self, receiver: Receiver, status: int
    ) -> None:
        receiver.answers.append(f"{status} Over there\r\nlocation: /there")
        async with calling(*LOOPBACK) as client:
            assert (await client.send("POST", receiver.url, content=b"x")).status == status
        assert len(receiver.calls) == 1

    async def test_endless_redirects_end_with_an_error(self, receiver: Receiver) -> None:
        receiver.answers.extend(["307 Round\r\nlocation: /round"] * 10)
        async with calling(*LOOPBACK) as client:
            with pytest.raises(httpx.TooManyRedirects):
                await client.send("POST", receiver.url)
        assert len(receiver.calls) == outbound.REDIRECTS + 1


class TestLimits:
    async def test_answer_is_read_up_to_the_limit(self, receiver: Receiver) -> None:
        receiver.body = b"x" * 1_000_000
        async with calling(*LOOPBACK) as client:
            answer = await client.send("GET", receiver.url, limit=1000)
            assert (answer.status, len(answer.body), answer.complete) == (200, 1000, False)
            assert (await client.send("GET", receiver.url, limit=1_000_000)).complete

    async def test_compressed_answer_is_not_decompressed(self, receiver: Receiver) -> None:
        receiver.body = b"\x1f\x8b"
        receiver.answers.append("200 OK\r\ncontent-encoding: gzip")
        async with calling(*LOOPBACK) as client:
            assert (await client.send("GET", receiver.url)).body == b"\x1f\x8b"
        assert receiver.calls[0].headers["accept-encoding"] == "identity"

    async def test_receiver_that_does_not_answer_times_out(self, receiver: Receiver) -> None:
        receiver.hold.clear()
        async with calling(*LOOPBACK) as client:
            with pytest.raises(TimeoutError):
                await client.send("GET", receiver.url, timeout=0.05)

    async def test_name_server_that_does_not_answer_times_out(self) -> None:
        async def silent(host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return []

        async with calling(resolve=silent) as client:
            with pytest.raises(TimeoutError):
                await client.send("GET", "http://slow.example", timeout=0.05)

    @pytest.mark.parametrize("answer", ["", "nonsense"])
    async def test_malformed_answer_is_a_transport_error(self, receiver: Receiver, answer: str) -> None:
        receiver.answers.append(answer)
        async with calling(*LOOPBACK) as client:
            with pytest.raises(httpx.TransportError):
                await client.send("GET", receiver.url)

    async def test_closed_port_is_a_connect_error(self, receiver: Receiver) -> None:
        async with calling(*LOOPBACK) as client:
            with pytest.raises(httpx.ConnectError):
                await client.send("GET", f"http://127.0.0.2:{receiver.port}")


async def test_a_proxy_in_the_environment_is_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, receiver.url)
    async with calling("127.0.0.2", resolve=answering(["127.0.0.2"])) as client:
        with pytest.raises(httpx.ConnectError):
            await client.send("GET", f"http://hooks.example:{receiver.port}/")
    assert receiver.calls == []


async def test_unix_socket_is_not_called() -> None:
    network = PinnedNetwork(Targets(Allowed.named(EVERYWHERE)), ask_system)
    with pytest.raises(TargetRefused):
        await network.connect_unix_socket("/run/docker.sock")


async def test_system_resolver_is_used_by_default(receiver: Receiver) -> None:
    assert "127.0.0.1" in await ask_system("localhost", receiver.port)
    async with calling() as client:
        with pytest.raises(httpx.ConnectError, match="not known"):
            await client.send("GET", "http://no-such-host.invalid/")
