"""Live changes of items: what happens is heard, once, in order, by those who may see it, and by who comes back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx
import pytest
from sqlalchemy import update
from starlette.types import Message, Scope

from assent.identity.model.access import DEFAULT_SCOPES, Kind, Principal, Role, operator
from assent.kernel import events
from assent.kernel.store.tables import api_keys
from assent.kernel.store.transaction import Tx
from assent.review import watchers
from assent.review.watchers import CHECK_EVERY
from tests.api.house import LOCAL, LOOPBACK, Builder, House
from tests.api.reviewing import PATIENCE, Office, open_office, problem, staff


@pytest.fixture
async def office(build: Builder) -> Office:
    return await open_office(build)


class Listener:
    """A browser on the line: the app is driven as a server drives it, and what it sends is read as it comes."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[bytes] = asyncio.Queue()
        self.head: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.gone = asyncio.Event()
        self.closed = asyncio.Event()
        self.rest = b""
        self.asked = False

    async def receive(self) -> Message:
        if not self.asked:
            self.asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.head.set_result(message)
        else:
            await self.sent.put(message.get("body", b""))
            if not message.get("more_body"):
                self.closed.set()

    async def next(self) -> dict[str, Any]:
        """The next change; comments that keep the line open are passed over."""
        while True:
            while b"\n\n" not in self.rest:
                self.rest += await asyncio.wait_for(self.sent.get(), PATIENCE)
            frame, _, self.rest = self.rest.partition(b"\n\n")
            if not frame.startswith(b":"):
                fields = dict(line.split(": ", 1) for line in frame.decode().split("\n"))
                return {"id": int(fields["id"]), "event": fields["event"], "data": json.loads(fields["data"])}

    async def several(self, count: int) -> list[dict[str, Any]]:
        return [await self.next() for _ in range(count)]


@asynccontextmanager
async def listening(
    house: House, client: httpx.AsyncClient, after: int | None = None, query: str = ""
) -> AsyncIterator[Listener]:
    credentials = {name: client.headers[name] for name in ("x-api-key", "authorization") if name in client.headers}
    if client.cookies:
        credentials["cookie"] = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    headers = {**LOCAL, **credentials, **({"last-event-id": str(after)} if after is not None else {})}
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/inbox/events",
        "raw_path": b"/api/inbox/events",
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", 2024),
    }
    listener = Listener()
    line = asyncio.create_task(house.app(scope, listener.receive, listener.send))
    try:
        assert (await asyncio.wait_for(listener.head, PATIENCE))["status"] == 200
        listener.rest += await asyncio.wait_for(listener.sent.get(), PATIENCE)
        yield listener
    finally:
        listener.gone.set()
        await asyncio.wait({line}, timeout=PATIENCE)
        assert line.done(), "who leaves is let go"


async def test_changes_of_items_are_streamed(office: Office) -> None:
    async with listening(office.house, office.ana) as line:
        head = await line.head
        assert dict(head["headers"])[b"content-type"].startswith(b"text/event-stream")
        item = await office.request()
        created = await line.next()
        assert (created["event"], created["data"]["item"]["id"]) == ("item.created", item["id"])
        await office.post(item, "comments", text="hm")
        await office.decided(item, "approve", grace_seconds=60)
        await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")
        await office.decided(item, "reject")
        heard = await line.several(4)
        assert [event["event"] for event in heard] == [
            "item.commented",
            "item.approved",
            "item.undone",
            "item.rejected",
        ]
        assert heard[-1]["data"]["item"]["status"] == "REJECTED"
        assert heard[-1]["data"]["actor"].startswith("reviewer:")
        assert [item["id"] for item in heard] == sorted(item["id"] for item in heard)


async def test_reconnect_loses_and_repeats_no_event(office: Office) -> None:
    async with listening(office.house, office.ana) as line:
        first = await office.request(title="first")
        last = (await line.next())["id"]
    away = [(await office.request(title=f"away {number}"))["id"] for number in range(5)]
    async with listening(office.house, office.ana, after=last) as line:
        heard = await line.several(5)
        assert [one["data"]["item"]["id"] for one in heard] == away
        await office.decided(first, "approve")
        now = await line.next()
        assert (now["event"], now["data"]["item"]["id"]) == ("item.approved", first["id"])
    async with listening(office.house, office.ana, after=0) as line:
        everything = await line.several(7)
        assert len({item["id"] for item in everything}) == 7


async def test_reconnect_during_changes_loses_and_repeats_no_event(office: Office) -> None:
    """The end of what was missed and the beginning of what is live fit together without a seam."""
    made: list[str] = []

    async def work() -> None:
        for number in range(30):
            made.append((await office.request(title=str(number)))["id"])

    async with listening(office.house, office.ana) as line:
        start = await office.request(title="start")
        last = (await line.next())["id"]
    working = asyncio.create_task(work())
    async with listening(office.house, office.ana, after=last) as line:
        heard = [event["data"]["item"]["id"] for event in await line.several(30)]
    await working
    assert heard == made
    assert start["id"] not in heard


async def test_questions_of_runs_are_streamed(office: Office) -> None:
    async with listening(office.house, office.ben) as line:
        item = await office.asked("hitl", {"text": "x"})
        assert (await line.next())["data"]["item"]["id"] == item["id"]
        await office.agent.delete(f"/threads/{item['source']['thread_id']}")
        ended = await line.next()
        assert (ended["event"], ended["data"]["item"]["resolution"]) == ("item.cancelled", "thread_ended")


@pytest.mark.promise("P10")
async def test_events_of_other_tenants_are_not_streamed(office: Office) -> None:
    acme = await staff(office.house, tenant="acme")
    async with listening(office.house, office.ana) as ours, listening(office.house, acme.ana, after=0) as theirs:
        mine = await office.request(title="ours")
        other = await acme.request(title="theirs")
        last = await office.request(title="last")
        assert [event["data"]["item"]["id"] for event in await ours.several(2)] == [mine["id"], last["id"]]
        assert (await theirs.next())["data"]["item"]["id"] == other["id"]
        await acme.decided(other, "approve")
        assert (await theirs.next())["event"] == "item.approved"
        assert ours.sent.empty()


async def test_stream_begins_after_a_number_unless_it_is_resumed(office: Office) -> None:
    async with listening(office.house, office.ana) as line:
        await office.request(title="first")
        first = (await line.next())["id"]
    for title in ("second", "third"):
        await office.request(title=title)
    async with listening(office.house, office.ana, query=f"after={first}") as line:
        assert [event["data"]["item"]["title"] for event in await line.several(2)] == ["second", "third"]
        second = first + 1
    async with listening(office.house, office.ana, after=second, query=f"after={first}") as line:
        assert (await line.next())["data"]["item"]["title"] == "third"


async def test_stream_without_the_read_scope_is_refused(office: Office) -> None:
    problem(await office.house.client().get("/api/inbox/events"), 401, "unauthenticated")
    await office.house.person("vera", Role.VIEWER)
    commenter = office.house.client(await office.house.key_of("ana", "comments:write"))
    response = await commenter.get("/api/inbox/events")
    assert response.status_code == 403, response.text
    for wrong in ("x", "-1", "1.5", "9" * 30):
        response = await office.ana.get("/api/inbox/events", headers={"Last-Event-ID": wrong})
        problem(response, 422, "invalid_request")
        problem(await office.ana.get("/api/inbox/events", params={"after": wrong}), 422, "invalid_request")


async def closes(line: Listener) -> None:
    await asyncio.wait_for(line.closed.wait(), PATIENCE)


async def revoke(office: Office, client: httpx.AsyncClient) -> None:
    keys = office.house.services.keys
    held = await office.house.services.access.by_key(client.headers["x-api-key"])
    await keys.revoke(operator(), held.via or held.id)


@pytest.mark.promise("P10")
async def test_stream_closes_when_its_key_is_revoked(office: Office) -> None:
    """And only that line: who still may look hears on."""
    assert CHECK_EVERY <= 1
    async with (
        listening(office.house, office.ana) as ended,
        listening(office.house, office.agent) as program,
        listening(office.house, office.ben) as other,
    ):
        await revoke(office, office.ana)
        await closes(ended)
        item = await office.request(client=office.agent)
        assert (await other.next())["data"]["item"]["id"] == item["id"]
        assert (await program.next())["data"]["item"]["id"] == item["id"]
        await revoke(office, office.agent)
        await closes(program)
        assert not other.closed.is_set()
    told = [ended.sent.get_nowait() for _ in range(ended.sent.qsize())]
    assert b"item.created" not in b"".join(told), "nothing is told after it"


async def test_stream_closes_when_its_session_ends(office: Office) -> None:
    browser = await office.house.signed_in("cleo")
    async with listening(office.house, browser) as line:
        item = await office.request()
        assert (await line.next())["data"]["item"]["id"] == item["id"]
        assert (await browser.delete("/api/session", headers={"origin": LOOPBACK})).status_code in (200, 204)
        await closes(line)


async def test_stream_closes_when_its_person_is_disabled(office: Office) -> None:
    browser = await office.house.signed_in("cleo")
    key = office.house.client(await office.house.key_of("cleo"))
    async with listening(office.house, browser) as signed_in, listening(office.house, key) as by_key:
        await office.house.services.users.change(operator(), "cleo", disabled=True)
        await closes(signed_in)
        await closes(by_key)


async def test_stream_closes_when_its_key_expires(office: Office) -> None:
    brief = office.house.client(await office.house.key_of("ana", lifetime=timedelta(hours=1)))
    async with listening(office.house, brief) as line, listening(office.house, office.ana) as other:
        office.house.pass_time(timedelta(hours=2))
        await closes(line)
        assert not other.closed.is_set()


async def test_stream_closes_when_its_key_loses_the_read_scope(office: Office) -> None:
    def narrow(tx: Tx) -> None:
        tx.change(update(api_keys).values(scopes=["comments:write"]).where(api_keys.c.kind == Kind.AGENT))

    async with listening(office.house, office.agent) as line, listening(office.house, office.ana) as other:
        await office.house.services.store.write(None, narrow)
        await closes(line)
        assert not other.closed.is_set()


async def test_events_of_deleted_items_do_not_delay_later_events(office: Office) -> None:
    """More events in a row than are read at once, all of items that are not there any more."""
    store = office.house.services.store

    def tell_of_the_gone(tx: Tx) -> None:
        for number in range(450):
            events.append(tx, "system", "item.cancelled", f"item:gone-{number}")

    async with listening(office.house, office.ana) as line:
        await store.write("default", tell_of_the_gone)
        item = await office.request()
        assert (await line.next())["data"]["item"]["id"] == item["id"]
    async with listening(office.house, office.ana, after=0) as line:
        assert (await line.next())["data"]["item"]["id"] == item["id"]


async def test_stream_of_an_auth_handler_user_ends_and_reconnects_through_the_handler(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their handler is not asked every second: instead, the line ends after a while."""
    theirs = Principal(Kind.AGENT, "u", "u", "default", DEFAULT_SCOPES[Kind.AGENT], user={"identity": "u"})
    ours = await office.house.services.access.by_key(office.ana.headers["x-api-key"])
    follow = office.house.engine.live.follow
    monkeypatch.setattr(watchers, "HANDLED_FOR", 0.0)
    monkeypatch.setattr(watchers, "HEARTBEAT", 0.1)

    async def end(caller: Principal) -> None:
        async for _ in follow(caller):
            pass

    staying = asyncio.create_task(end(ours))
    await asyncio.wait_for(end(theirs), PATIENCE)
    assert not staying.done(), "the control: a key of ours is asked for instead"
    staying.cancel()


async def test_stream_that_begins_while_the_server_stops_ends(office: Office) -> None:
    """Its request was accepted before the stop, which would wait for it."""
    live, ours = office.house.engine.live, await office.house.services.access.by_key(office.ana.headers["x-api-key"])
    await live.close()
    try:
        async with asyncio.timeout(PATIENCE):
            assert [change async for change in live.follow(ours)] == []
    finally:
        live.open()
