"""A deployment that repeats its key, or sends too much: failures and facts hold neither."""

import json
import ssl
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

import pytest

from assent.errors import DeploymentFailed
from assent.federation.connection import Connection
from assent.federation.failures import not_reached
from assent.outbox.addresses import LOOPBACK, Allowed
from assent.outbox.client import Outbound
from assent.outbox.targets import Targets
from tests.api.house import Builder
from tests.receiver import Receiver, receiving

SECRET = "lsv2_very_secret"


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
async def connection(receiver: Receiver) -> AsyncIterator[Connection]:
    outbound = Outbound(Targets(Allowed.named(LOOPBACK)))
    yield Connection(outbound, receiver.url, {"x-api-key": SECRET, "Authorization": "Bearer second"})
    await outbound.close()


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("500 Oops", "answered 500 to GET /threads/{id}/runs"),
        ("422 No", "answered 422 to GET /threads/{id}/runs"),
        ("401 No", "refused the key of this deployment: 401 to GET /threads/{id}/runs"),
        ("200 OK", "does not answer GET /threads/{id}/runs as a LangGraph server"),
        (f"disconnect {SECRET}", "broke: RemoteProtocolError"),
        (f"307 Go\r\nlocation: http://{SECRET}.invalid/", "cannot be reached: ConnectError"),
        (f"307 Go\r\nlocation: http://10.0.0.1/{SECRET}", "10.0.0.1 is not at a public address"),
    ],
)
async def test_failure_does_not_repeat_the_answer(
    receiver: Receiver, connection: Connection, head: str, message: str
) -> None:
    """The id of the thread is the deployment's choice, too."""
    receiver.body, receiver.answers = f"bad x-api-key {SECRET}".encode(), deque([head])
    with pytest.raises(DeploymentFailed) as failure:
        await connection.runs(SECRET)
    assert failure.value.message.endswith(message)
    assert SECRET not in failure.value.message


@pytest.mark.parametrize(
    ("version", "kept"),
    [
        ("0.4.2", "0.4.2"),
        ("a\x00\n" + "x" * 1000, "a" + "x" * 99),
        (f"v {SECRET}", None),
        (f"v {SECRET[:5]}\x00{SECRET[5:].upper()}", None),
        ("x" * 90 + SECRET, None),
        ("the second part", None),
        ({"a": 1}, None),
    ],
)
async def test_version_is_short_and_without_credentials(
    receiver: Receiver, connection: Connection, version: Any, kept: str | None
) -> None:
    receiver.body = json.dumps({"version": version}).encode()
    assert (await connection.info()).get("version") == kept


async def test_flags_and_host_are_bounded(receiver: Receiver, connection: Connection) -> None:
    many = {f"f{place}": "z" * 500 for place in range(60)}
    host = {"tenant_id": "t1", "project_id": SECRET, "deep": {"a": "b"}}
    receiver.body = json.dumps({"flags": {"crons": True, SECRET: True, "y" * 101: True, **many}, "host": host}).encode()
    info = await connection.info()
    assert info["flags"] == {"crons": True, **{f"f{place}": "z" * 100 for place in range(47)}}
    assert info["host"] == {"tenant_id": "t1"}
    receiver.body = json.dumps({"flags": [1], "host": "h"}).encode()
    assert await connection.info() == {"flags": {}, "host": {}}


async def test_large_info_is_not_read(receiver: Receiver, connection: Connection) -> None:
    receiver.body = json.dumps({"version": "1", "padding": "x" * 100_000}).encode()
    with pytest.raises(DeploymentFailed, match="the answer to GET /info has more than 65536 bytes"):
        await connection.info()


async def test_answer_of_many_values_is_not_parsed(receiver: Receiver, connection: Connection) -> None:
    """Its ten million lists would hold up everybody for seconds."""
    receiver.body = b"[" + b"[]," * 10_000_000 + b"[]]"
    with pytest.raises(DeploymentFailed, match="has more than 500000 values"):
        await connection.state("t1")


async def test_large_answer_with_few_values_is_read(receiver: Receiver, connection: Connection) -> None:
    receiver.body = json.dumps({"values": {"text": "x" * 1_000_000}}).encode()
    state = await connection.state("t1")
    assert state is not None
    assert len(state["values"]["text"]) == 1_000_000


@pytest.mark.parametrize("size", [1, 50_000])
async def test_answer_that_is_not_text_is_a_failure(receiver: Receiver, connection: Connection, size: int) -> None:
    receiver.body = b"\xff" * size
    with pytest.raises(DeploymentFailed, match="as a LangGraph server"):
        await connection.state("t1")


@pytest.mark.parametrize("innermost", ["1", "1234567890123456789012"])
async def test_answer_that_is_nested_too_deep_is_a_failure(
    receiver: Receiver, connection: Connection, innermost: str
) -> None:
    """Two parsers read answers: only one of them reads integers of this size exactly."""
    receiver.body = ("[" * 100_000 + innermost + "]" * 100_000).encode()
    with pytest.raises(DeploymentFailed, match="as a LangGraph server"):
        await connection.pending("thread")


async def test_agent_does_not_read_the_key_of_a_deployment(receiver: Receiver, build: Builder) -> None:
    house = await build(outbound_allow=("127.0.0.1",), secret_key="s" * 32)
    receiver.body = json.dumps({"version": f"1 {SECRET}", "detail": SECRET}).encode()
    added = await (await house.admin()).post("/api/deployments", json={"url": receiver.url, "key": SECRET})
    assert added.status_code == 201, added.text
    agent = house.client(await house.key())
    shown = [await agent.get(path) for path in ("/api/deployments", f"/api/deployments/{added.json()['id']}")]
    assert [response.status_code for response in shown] == [200, 200]
    assert SECRET not in "".join(response.text for response in shown)


@pytest.mark.parametrize(("listed", "requests"), [([3, 2], 1), ([1, 2], 2), ([1], 1), ([], 1)])
async def test_latest_run_is_one_request_where_the_newest_is_first(
    receiver: Receiver, connection: Connection, listed: list[int], requests: int
) -> None:
    runs = [{"run_id": f"run {second}", "created_at": f"2026-01-01T00:00:0{second}Z"} for second in listed]
    receiver.body = json.dumps(runs).encode()
    latest = await connection.latest_run("t1")
    assert latest.get("run_id") == (f"run {max(listed)}" if listed else None)
    assert len(receiver.calls) == requests


async def test_path_without_a_search_is_no_langgraph_server(receiver: Receiver, connection: Connection) -> None:
    receiver.answers = deque(["404 Not Found"])
    with pytest.raises(DeploymentFailed, match="no LangGraph server is at this path") as failure:
        await connection.threads("interrupted", {}, limit=1, offset=0)
    assert failure.value.problem == "not_langgraph"


def test_server_without_tls_is_told_from_a_bad_certificate() -> None:
    plain, expired = ssl.SSLError(1, "[SSL: …]"), ssl.SSLError(1, "[SSL: …]")
    plain.reason, expired.reason = "WRONG_VERSION_NUMBER", "CERTIFICATE_VERIFY_FAILED"
    told = [not_reached("https://a.example", error, 10, "expired") for error in (plain, expired)]
    assert [failure.problem for failure in told] == ["tls", "tls"]
    assert "use http://" in told[0].message
    assert told[1].message.endswith("expired")
