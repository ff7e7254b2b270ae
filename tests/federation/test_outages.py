"""Deployments that fail: killed while decisions are on their way, with lost responses, or restored to an earlier state.
No decision is lost, none takes effect twice, and an answer that nobody can account for is in doubt."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from assent.federation import answers
from assent.federation.connection import Connection
from assent.settings import Mode
from tests.api.house import Builder
from tests.e2e.cutting import CuttingProxy
from tests.federation.desk import Desk, answered, ask, settled
from tests.federation.servers import langgraph_dev, langgraphjs, second_assent
from tests.listening import listening
from tests.scoreboard import Count, RecordScore
from tests.servers import ServerProcess, running
from tests.waiting import until

Json = dict[str, Any]


class Loss:
    """A proxy that loses the responses to runs, although the server gets the requests."""

    def __init__(self, upstream: str) -> None:
        address = urlsplit(upstream)
        self._upstream = (address.hostname or "", address.port or 0)
        self.lost = 0
        self.loses = 1

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(*self._upstream)
        losing = False

        async def back() -> None:
            while data := await far_reader.read(65536):
                if losing:
                    self.lost += 1
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()

        returning = asyncio.create_task(back())
        try:
            while data := await reader.read(65536):
                if b"/runs HTTP" in data and data.startswith(b"POST") and self.lost < self.loses:
                    losing = True
                far_writer.write(data)
                await far_writer.drain()
        except ConnectionError:
            pass
        finally:
            far_writer.close()
            writer.close()
            await asyncio.gather(returning, return_exceptions=True)


@pytest.fixture
async def lossy(assent_url: str) -> AsyncIterator[tuple[Loss, str]]:
    loss = Loss(assent_url)
    async with listening(loss.serve) as port:
        yield loss, f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("looks", [True, False])
async def test_answer_whose_response_was_lost_is_looked_up(
    build: Builder,
    lossy: tuple[Loss, str],
    assent_url: str,
    looks: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The control does not look: it takes its own answer for somebody else's."""
    if not looks:

        def never(*_: Any) -> bool:
            return False

        monkeypatch.setattr(answers, "_was_received", never)
    loss, url = lossy
    desk, log = await Desk.at(await build(Mode.DEV)), tmp_path / "effects"
    thread_id = await ask(assent_url, "once?", log=str(log))
    item = await desk.item_of(await desk.add(url), thread_id)
    await desk.decide(item, verb="respond", message="yes")
    after = await settled(desk, item["id"])
    assert loss.lost == 1
    assert await answered(assent_url, thread_id) == ["yes"]
    assert log.read_text().splitlines() == ["once?"]
    assert after["delivery"]["status"] == ("delivered" if looks else "failed")
    assert (after["resolution"] == "answered_elsewhere") is not looks


@pytest.mark.scoreboard
async def test_second_assent_killed_during_decisions(
    build: Builder, tmp_path: Path, count: Count, record_score: RecordScore
) -> None:
    decisions, kills = count(full=200, quick=8), count(full=10, quick=1)
    folder, log = tmp_path / "second", tmp_path / "effects"
    folder.mkdir()
    desk = await Desk.at(await build(Mode.DEV))
    with running(second_assent(folder)) as server:
        proxy = CuttingProxy(server.url)
        serving = asyncio.create_task(asyncio.to_thread(proxy.serve_forever, 0.05))
        try:
            threads = [await ask(server.url, f"question {number}", log=str(log)) for number in range(decisions)]
            added = await desk.add(proxy.url)
            items = [await desk.item_of(added, thread_id) for thread_id in threads]
            for number, item in enumerate(items):
                await desk.decide(item, verb="respond", message=f"answer {number}")
                if kills and number % max(decisions // kills, 1) == decisions // kills // 2:
                    await restart(server, proxy)
                    kills -= 1
            for item in items:
                await settled(desk, item["id"])
            given = [await answered(server.url, thread_id) for thread_id in threads]
        finally:
            proxy.shutdown()
            await serving
            proxy.server_close()
    effects = Counter(log.read_text().splitlines())
    lost = sum(given[number] != [f"answer {number}"] for number in range(decisions))
    doubled = sum(number > 1 for number in effects.values())
    assert (lost, doubled, len(effects)) == (0, 0, decisions)
    record_score(
        f"decisions to a second Assent that is killed ({decisions} decisions)",
        "0 lost, 0 doubled",
        f"{lost} lost, {doubled} doubled",
    )


async def restart(server: ServerProcess, proxy: CuttingProxy) -> None:
    await asyncio.to_thread(server.kill)
    proxy.cut()
    await asyncio.to_thread(server.start)
    address = urlsplit(server.url)
    proxy.upstream = (address.hostname or "", address.port or 0)


@contextmanager
def started_assent(folder: Path) -> Iterator[str]:
    with running(second_assent(folder)) as server:
        yield server.url


STARTED: dict[str, Callable[[Path], AbstractContextManager[str]]] = {
    "assent": started_assent,
    "langgraph": langgraph_dev,
    "langgraphjs": langgraphjs,
}


@asynccontextmanager
async def served(kind: str, folder: Path, proxy: CuttingProxy) -> AsyncIterator[None]:
    """A server behind the proxy, with the state that its folder has. It is stopped cleanly."""
    server = STARTED[kind](folder)
    address = urlsplit(await asyncio.to_thread(server.__enter__))
    proxy.upstream = (address.hostname or "", address.port or 0)
    try:
        yield
    finally:
        proxy.cut()
        await asyncio.to_thread(server.__exit__, None, None, None)


@asynccontextmanager
async def proxied() -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy("http://127.0.0.1:9")
    serving = asyncio.create_task(asyncio.to_thread(proxy.serve_forever, 0.05))
    try:
        yield proxy
    finally:
        proxy.shutdown()
        await serving
        proxy.server_close()


@pytest.mark.parametrize("kind", STARTED)
async def test_accepted_answer_that_its_server_forgot_is_in_doubt(build: Builder, tmp_path: Path, kind: str) -> None:
    folder, log = tmp_path / "second", tmp_path / "effects"
    folder.mkdir()
    desk = await Desk.at(await build(Mode.DEV))
    async with proxied() as proxy:
        async with served(kind, folder, proxy):
            thread_id = await ask(proxy.url, "remember?", log=str(log))
            item = await desk.item_of(await desk.add(proxy.url), thread_id)
        shutil.copytree(folder, tmp_path / "saved", symlinks=True)
        async with served(kind, folder, proxy):
            await desk.decide(item, verb="respond", message="yes")
            assert (await settled(desk, item["id"]))["delivery"]["status"] == "delivered"
            assert await answered(proxy.url, thread_id) == ["yes"]
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "saved", folder, symlinks=True)
        async with served(kind, folder, proxy):

            async def doubted() -> bool:
                return bool((await desk.item(item["id"]))["execution"] == "in_doubt")

            await until(doubted, "the item is not in doubt", patience=120)
            assert await desk.items("is:pending") == []
            assert log.read_text().splitlines() == ["remember?"], "it was not sent again by itself"
            again = await desk.admin.post(f"/api/inbox/items/{item['id']}/in-doubt", json={"outcome": "run_again"})
            assert again.status_code == 200, again.text
            assert await answered(proxy.url, thread_id) == ["yes"]


@pytest.mark.scoreboard
async def test_many_questions_appear_soon(
    build: Builder,
    langgraph_url: str,
    count: Count,
    record_score: RecordScore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The targets are asserted at the full count only: other runs share their machine."""
    number, clock = count(full=1000, quick=20), asyncio.get_running_loop().time
    desk = await Desk.at(await build(Mode.DEV))
    for start in range(0, number, 20):
        some = range(start, min(start + 20, number))
        await asyncio.gather(*(ask(langgraph_url, f"question {each}", graph="many") for each in some))
    begun = clock()
    added = await desk.add(langgraph_url, graphs=["many"])

    async def all_listed() -> bool:
        return await desk.pending(added) >= number

    await until(all_listed, "some questions do not appear", patience=120)
    listing = clock() - begun
    threads = [item["source"]["remote"]["thread_id"] for item in await desk.items(f"deployment:{added['id']}")]
    assert len(threads) == len(set(threads)) >= number
    begun = clock()
    thread_id = await ask(langgraph_url, "a new one?", graph="many")
    asked = clock() - begun

    async def appeared() -> Json | None:
        newest = await desk.newest(added)
        return newest if newest["source"]["remote"]["thread_id"] == thread_id else None

    item = await until(appeared, "the new question does not appear")
    appearing = clock() - begun - asked
    far = time_of(monkeypatch, Connection, "runs", "pending", "start")
    begun = clock()
    await desk.decide(item, verb="respond", message="yes")
    await settled(desk, item["id"])
    sending = clock() - begun
    own = sending - sum(far)
    record_score(f"{number} interrupted threads of langgraph dev become items", "within 10 s", f"{listing:.1f} s")
    record_score("a new interrupt of langgraph dev becomes an item", "within 2 s", f"{appearing:.2f} s")
    told = f"{1000 * own:.0f} ms, and {1000 * sum(far):.0f} ms of the deployment"
    record_score("a decision reaches langgraph dev", "under 300 ms of our own time", told)
    if number == 1000:
        assert listing < 10
        assert appearing < 2
        assert own < 0.3


def time_of(monkeypatch: pytest.MonkeyPatch, owner: type, *names: str) -> list[float]:
    """The seconds of each call of these methods from now on."""
    spent = list[float]()

    def timed(method: Any) -> Any:
        async def call(*args: Any, **named: Any) -> Any:
            begun = asyncio.get_running_loop().time()
            try:
                return await method(*args, **named)
            finally:
                spent.append(asyncio.get_running_loop().time() - begun)

        return call

    for name in names:
        monkeypatch.setattr(owner, name, timed(getattr(owner, name)))
    return spent
