"""Event streaming over web sockets: who may open one, subscriptions, commands, and credentials that are revoked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.e2e.eventing import ALL, ENDED, HELLO, Event, new_id, of, read_until, started
from tests.servers import ServerProcess

pytestmark = pytest.mark.promise("SERVE-01")


class Socket:
    """One connection. `events` are those so far, `answers` those to commands by their id."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._number = 0
        self.events: list[Event] = []
        self.answers: dict[Any, Any] = {}

    async def send(self, method: str, **params: Any) -> Any:
        self._number += 1
        await self.raw(json.dumps({"id": self._number, "method": method, "params": params}))
        await self.until(lambda: self._number in self.answers)
        return self.answers[self._number]

    async def raw(self, text: str) -> None:
        await self._connection.send(text)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(90):
            while not condition():
                message = json.loads(await self._connection.recv())
                if message["type"] == "event":
                    self.events.append(message)
                else:
                    self.answers[message["id"]] = message

    async def until_ended(self, times: int = 1) -> None:
        await self.until(lambda: sum(map(ENDED, self.events)) >= times)

    async def closed(self) -> int:
        """The code with which the server closes it."""
        with suppress(ConnectionClosed):
            async with asyncio.timeout(90):
                while True:
                    await self._connection.recv()
        assert self._connection.close_code is not None
        return self._connection.close_code


@asynccontextmanager
async def socket(server: ServerProcess, thread: str, **headers: str) -> AsyncIterator[Socket]:
    address = server.url.replace("http", "ws", 1)
    async with connect(f"{address}/threads/{thread}/stream/events", additional_headers=headers) as connection:
        yield Socket(connection)


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as made:
        yield made


# Who may open one


@pytest.fixture(scope="module")
def signed_in(server: ServerProcess) -> str:
    """The cookie of a person in a browser."""
    with httpx.Client(base_url=server.url) as browser:
        answer = browser.post("/api/session", json={"credential": server.printed("reviewer key")})
        assert answer.status_code == 200, answer.text
        return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


async def test_a_cookie_opens_a_socket_from_our_own_page(server: ServerProcess, signed_in: str) -> None:
    async with socket(server, new_id(), Cookie=signed_in, Origin=server.url) as opened:
        assert (await opened.send("subscription.subscribe", channels=ALL))["type"] == "success"


@pytest.mark.parametrize("origin", [None, "https://evil.example", "http://127.0.0.1:1", "null"])
async def test_a_cookie_opens_no_socket_from_elsewhere(
    server: ServerProcess, signed_in: str, origin: str | None
) -> None:
    headers = {"Cookie": signed_in} | ({"Origin": origin} if origin else {})
    with pytest.raises(InvalidStatus) as refused:
        async with socket(server, new_id(), **headers):
            raise AssertionError("the socket was opened")
    assert refused.value.response.status_code == 403


async def test_a_page_of_another_host_opens_no_socket_without_a_key(server: ServerProcess) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with socket(server, new_id(), Origin="https://evil.example"):
            raise AssertionError("the socket was opened")
    assert refused.value.response.status_code == 401


async def test_a_wrong_key_opens_no_socket(server: ServerProcess) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with socket(server, new_id(), **{"x-api-key": "asnt_wrong"}):
            raise AssertionError("the socket was opened")
    assert refused.value.response.status_code == 401


@pytest.mark.parametrize("header", ["x-api-key", "authorization"])
async def test_a_key_opens_a_socket_from_anywhere(server: ServerProcess, header: str) -> None:
    key = server.printed("agent key")
    headers = {header: key if header == "x-api-key" else f"Bearer {key}", "Origin": "https://chat.example"}
    async with socket(server, new_id(), **headers) as opened:
        assert (await opened.send("subscription.subscribe", channels=ALL))["type"] == "success"


async def test_a_revoked_key_ends_its_socket_and_commands(server: ServerProcess, http: httpx.AsyncClient) -> None:
    admin = {"x-api-key": server.printed("reviewer key")}
    made = (await http.post("/api/keys", json={"kind": "agent", "name": new_id()}, headers=admin)).json()
    thread = await started(http, "echo", {"text": "x"})
    key = {"x-api-key": made["secret"]}
    async with (
        socket(server, thread, **key) as reading,
        socket(server, thread, **key) as acting,
        http.stream("POST", f"/threads/{thread}/stream/events", json={"channels": ALL}, headers=key) as stream,
    ):
        await reading.send("subscription.subscribe", channels=ALL)
        await reading.until_ended()
        gone = await http.delete(f"/api/keys/{made['key']['id']}", headers=admin)
        assert gone.status_code < 300, gone.text
        given = {"assistant_id": "echo", "input": {"text": "too late"}}
        await acting.raw(json.dumps({"id": 1, "method": "run.start", "params": given}))
        assert await acting.closed() == 4401
        assert await reading.closed() == 4403
        async with asyncio.timeout(90):
            assert "your access to this thread has ended" in (await stream.aread()).decode()
    assert len((await http.get(f"/threads/{thread}/runs")).json()) == 1


# Subscriptions and commands


async def test_a_socket_opened_before_its_thread_gets_the_first_run(server: ServerProcess) -> None:
    async with socket(server, new_id()) as opened:
        await opened.send("subscription.subscribe", channels=["values", "lifecycle"])
        told = await opened.send("run.start", assistant_id="echo", input={"text": "x"})
        assert told["result"]["run_id"]
        await opened.until_ended()
        assert of("values", opened.events)[-1] == {"text": "x", "reply": "x"}


async def test_each_event_is_sent_once_for_all_subscriptions(server: ServerProcess, http: httpx.AsyncClient) -> None:
    async with socket(server, thread := new_id()) as opened:
        for channels in (["values", "lifecycle"], ["lifecycle", "input"], ALL):
            await opened.send("subscription.subscribe", channels=channels)
        await opened.send("run.start", assistant_id="streams", input=HELLO)
        await opened.until_ended()
    ids = [event["event_id"] for event in opened.events]
    assert ids == list(dict.fromkeys(ids))
    assert ids == [event["event_id"] for event in await read_until(http, thread, ENDED)]


async def test_a_late_subscription_gets_the_events_before_it(server: ServerProcess, http: httpx.AsyncClient) -> None:
    thread = await started(http, "streams", HELLO)
    whole = await read_until(http, thread, ENDED)
    async with socket(server, thread) as opened:
        await opened.send("subscription.subscribe", channels=["lifecycle"])
        await opened.until_ended()
        first = list(opened.events)
        await opened.send("subscription.subscribe", channels=["values", "lifecycle"])
        await opened.until_ended(times=2)
        later = opened.events[len(first) :]
    assert [event["event_id"] for event in later] == [
        event["event_id"] for event in whole if event["method"] in ("values", "lifecycle")
    ]


async def test_a_socket_goes_on_after_the_number_that_it_names(server: ServerProcess, http: httpx.AsyncClient) -> None:
    thread = await started(http, "streams", HELLO)
    whole = await read_until(http, thread, ENDED)
    async with socket(server, thread) as opened:
        given = {"channels": ALL, "since": whole[3]["seq"], "subscription_id": "mine"}
        assert (await opened.send("subscription.reconnect", **given))["result"]["subscription_id"] == "mine"
        await opened.until_ended()
        assert [event["event_id"] for event in opened.events] == [event["event_id"] for event in whole[4:]]
        tree = (await opened.send("agent.getTree"))["result"]["tree"]
        assert (tree["status"], tree["graph_name"]) == ("completed", "streams")
        assert [child["graph_name"] for child in tree["children"]] == ["child"]
        assert (await opened.send("subscription.unsubscribe", subscription_id="mine"))["type"] == "success"
        assert (await opened.send("subscription.unsubscribe", subscription_id="mine"))[
            "error"
        ] == "no_such_subscription"


async def test_a_question_is_answered_on_the_socket(server: ServerProcess) -> None:
    async with socket(server, new_id()) as opened:
        await opened.send("subscription.subscribe", channels=["values", "input", "lifecycle"])
        await opened.send("run.start", assistant_id="hitl", input={"text": "draft"})
        await opened.until_ended()
        [asked] = of("input.requested", opened.events)
        given = {"interrupt_id": asked["interrupt_id"], "response": [{"type": "accept", "args": None}]}
        assert (await opened.send("input.respond", **given))["type"] == "success"
        await opened.until_ended(times=2)
        assert of("values", opened.events)[-1]["answer"]["type"] == "accept"
        assert (await opened.send("input.respond", **given))["error"] == "no_such_interrupt"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"x"', '{"id": 1}', '{"id": 1, "id": 2, "method": "run.start"}', "NaN"]
)
async def test_a_message_that_is_no_command_is_answered_and_the_socket_stays_open(
    server: ServerProcess, text: str
) -> None:
    async with socket(server, new_id()) as opened:
        await opened.raw(text)
        await opened.until(lambda: opened.answers)
        [told] = opened.answers.values()
        assert (told["type"], told["error"]) == ("error", "invalid_argument")
        opened.answers.clear()
        assert (await opened.send("subscription.subscribe", channels=["debug"]))["error"] == "invalid_argument"
        assert (await opened.send("subscription.reconnect", channels=ALL))["error"] == "invalid_argument"
        assert (await opened.send("agent.getTree"))["error"] == "no_such_run"


async def test_socket_of_an_id_that_no_thread_can_have_is_closed(server: ServerProcess) -> None:
    async with socket(server, "mine") as opened:
        await opened.raw('{"id": 1, "method": "subscription.subscribe", "params": {"channels": ["values"]}}')
        assert await opened.closed() == 4422
