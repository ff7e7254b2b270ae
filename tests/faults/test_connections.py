"""A Postgres with fewer connections than its processes would like: they wait for each other, and nothing goes wrong.

Each thread's agent asks for one call, a person approves it, and the call is made. Requests that the server cannot
serve for a while are answered 503 and sent again, as clients do.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from assent.errors import Unavailable
from assent.kernel.store import capacity, faults, migrations
from assent.kernel.store.drivers import pool
from assent.kernel.store.drivers.pool import DirectPool, Line
from assent.kernel.store.drivers.postgres import PostgresStore
from assent.kernel.store.transaction import Tx
from assent.runs.queues import jobs
from tests.contract.stores import opened
from tests.faults.arena import doubted, open_arena
from tests.faults.test_decisions_killed import done
from tests.graphs_gated.serving import Site, make_keys, open_site
from tests.postgres import own_server
from tests.postgres_server import NOT_DURABLE, PostgresServer
from tests.scoreboard import Count, RecordScore
from tests.waiting import until

CONNECTIONS = 20
PEOPLE = 24
LOOK_EVERY = 0.05
STUCK_AFTER = 120.0


@pytest.fixture
def narrow_postgres(pytestconfig: pytest.Config) -> Iterator[PostgresServer]:
    with own_server(pytestconfig, {**NOT_DURABLE, "max_connections": str(CONNECTIONS)}) as server:
        yield server


@contextmanager
def taken(url: str) -> Iterator[list[psycopg.Connection]]:
    """Every connection that there is, held by others."""
    held: list[psycopg.Connection] = []
    with suppress(psycopg.OperationalError):
        while True:
            held.append(psycopg.connect(url))
    try:
        yield held
    finally:
        for connection in held:
            connection.close()


async def count_connections(url: str) -> int:
    query = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    async with await psycopg.AsyncConnection.connect(url) as connection:
        [number] = await (await connection.execute(query)).fetchone() or [0]
        return int(number)


def hold(tx: Tx) -> None:
    tx.sql("SELECT pg_sleep(0.05)")


async def test_exhausted_connections_are_unavailable_until_one_is_free(narrow_postgres: PostgresServer) -> None:
    async with opened(narrow_postgres.url) as store:
        with taken(narrow_postgres.url):
            for execute in (store.write, store.read):
                with pytest.raises(Unavailable, match=r"cannot be reached: .*(slots|too many clients)"):
                    await execute(None, hold)
        await store.write(None, hold)


@pytest.mark.parametrize("opens", [migrations.upgrade, lambda url: asyncio.run(jobs.install(url))])
def test_process_that_starts_waits_for_a_free_connection(
    narrow_postgres: PostgresServer, opens: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    migrations.upgrade(narrow_postgres.url)
    refused, is_full = threading.Event(), faults.has_no_connection_left

    def told(error: Exception) -> bool:
        refused.set()
        return is_full(error)

    for module in (faults, jobs):
        monkeypatch.setattr(module, "has_no_connection_left", told)
    with taken(narrow_postgres.url) as held, ThreadPoolExecutor(1) as process:
        opening = process.submit(opens, narrow_postgres.url)
        assert refused.wait(30)
        assert not opening.done()
        held.pop().close()
        opening.result(30)


async def test_pool_that_opens_waits_for_a_free_connection(
    narrow_postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Longer than it tries to replace a lost connection."""
    connections = DirectPool(narrow_postgres.url, min_size=1, max_size=1, open=False)
    with taken(narrow_postgres.url) as held:
        opening = asyncio.create_task(connections.open(wait=True))

        async def is_refused_twice() -> bool:
            return caplog.text.count("error connecting") == 2

        await until(is_refused_twice)
        held.pop().close()
        await opening
    await connections.close()


async def test_refused_connection_is_retried_without_an_error(
    narrow_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then one connection is enough for all who wait."""
    refused, refuse = asyncio.Event(), Line.refused

    def told(line: Line) -> None:
        refuse(line)
        refused.set()

    monkeypatch.setattr(Line, "refused", told)
    async with opened(narrow_postgres.url) as store:
        with taken(narrow_postgres.url) as held:
            waiting = [asyncio.create_task(store.write(None, hold)) for _ in range(20)]
            await asyncio.wait_for(refused.wait(), 30)
            held.pop().close()
            await asyncio.gather(*waiting)


@pytest.mark.parametrize("budget", [8, 20])
async def test_a_process_never_has_more_connections_than_its_budget(
    postgres_url: str, folder: Path, budget: int
) -> None:
    """The larger budget is the control: there the same load does open more than the smaller one allows."""
    async with open_arena(folder, postgres_url, database_connections=budget) as arena:
        store = arena.house.services.store
        load = [store.write(None, hold) for _ in range(60)]
        await asyncio.gather(*load, *(arena.stopped("asking") for _ in range(6)))
        most = await count_connections(postgres_url)  # what was opened is kept for a while
    assert most <= budget
    assert (most > 8) is (budget > 8)


async def test_idle_connections_are_closed(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = PostgresStore(postgres_url, connections=10)
    await store.open()
    await asyncio.gather(*(store.write(None, hold) for _ in range(30)))
    assert await count_connections(postgres_url) == 10
    await store.write(None, hold)
    assert await count_connections(postgres_url) == 10, "they are kept for a while"
    monkeypatch.setattr(pool, "_MOST_IDLE", -1)
    await store.write(None, hold)
    assert await count_connections(postgres_url) == 1
    await store.close()


@pytest.mark.parametrize(("budget", "told"), [(8, None), (12, "left"), (18, "allows fewer")])
async def test_budget_over_the_server_limit_is_reported_at_the_start(
    narrow_postgres: PostgresServer, budget: int, told: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(narrow_postgres.url) as store, AsyncExitStack() as others:
        for _ in range(6):
            await others.enter_async_context(await psycopg.AsyncConnection.connect(narrow_postgres.url))
        await capacity.warn_of_lack(store, budget)
    warnings = [record.getMessage() for record in caplog.records if record.name == capacity.__name__]
    assert [told in warning for warning in warnings if told] == ([True] if told else [])
    assert len(warnings) == (told is not None)


class Errand:
    """One gated thread, from its start to its end."""

    def __init__(self, site: Site, key: str, log: Path, number: int) -> None:
        self.tag = f"errand-{number}"
        self.status = "not started"
        self.items: list[dict[str, Any]] = []
        self.refused = 0
        self._thread = str(uuid.uuid4())
        self._log = log
        self._http = httpx.Client(base_url=site.url, headers={"x-api-key": key}, timeout=60)

    def run(self) -> Errand:
        self._deadline = time.monotonic() + STUCK_AFTER
        try:
            with self._http:
                self._go()
        except TimeoutError:
            pass
        return self

    def _go(self) -> None:
        self._ask("POST", "/threads", json={"thread_id": self._thread, "if_exists": "do_nothing"})
        script = json.dumps([{"name": "act", "args": {"log": str(self._log), "tag": self.tag}}])
        body = {"assistant_id": "gated", "input": {"messages": [{"role": "user", "content": script}]}}
        self._ask("POST", f"/threads/{self._thread}/runs", json=body, unless_there=True)
        while self.status != "idle":
            self._look()
            for item in self.items:
                if item["status"] == "PENDING":
                    self._approve(item)
                if item["execution"] == "in_doubt":
                    self._settle(item)
            time.sleep(LOOK_EVERY)

    def _look(self) -> None:
        listed = self._ask("GET", "/api/inbox/items", params={"filter": f"thread:{self._thread}"})["items"]
        self.items = [self._ask("GET", f"/api/inbox/items/{item['id']}") for item in listed]
        self.status = self._ask("GET", f"/threads/{self._thread}")["status"]

    def _approve(self, item: dict[str, Any]) -> None:
        seen = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
        headers = {"Idempotency-Key": item["id"]}
        self._ask("POST", f"/api/inbox/items/{item['id']}/decision", json=seen, headers=headers)

    def _settle(self, item: dict[str, Any]) -> None:
        outcome = "done" if done(self._log)[self.tag] else "run_again"
        body = {"outcome": outcome, "grant_id": doubted(item)}
        self._ask("POST", f"/api/inbox/items/{item['id']}/in-doubt", json=body, or_not=True)

    def _ask(self, method: str, path: str, *, unless_there: bool = False, or_not: bool = False, **sent: Any) -> Any:
        while True:
            if time.monotonic() > self._deadline:
                raise TimeoutError(path)
            if unless_there and self._ask("GET", path):
                return None
            response = self._http.request(method, path, **sent)
            if response.status_code < 500:
                assert or_not or response.status_code < 300, f"{method} {path}: {response.status_code} {response.text}"
                return response.json()
            assert "retry-after" in response.headers, response.text
            self.refused += 1
            time.sleep(float(response.headers["retry-after"]))

    def wrong(self, effects: Counter[str]) -> str | None:
        if effects[self.tag] > 1 or len(self.items) > 1:
            return "doubled"
        if self.status != "idle":
            return "stuck"
        return None if effects[self.tag] == 1 else "false success"


@pytest.mark.scoreboard
@pytest.mark.promise("P12")
@pytest.mark.timeout(1800)
def test_threads_finish_on_few_connections(
    narrow_postgres: PostgresServer, folder: Path, count: Count, record_score: RecordScore
) -> None:
    """A server and two workers with the default settings, which together want three times what there is."""
    database, log, total = narrow_postgres.url, folder / "effects", count(full=200, quick=20)
    [key] = make_keys(database, "ana").values()
    with open_site(folder, database, workers=2) as site, ThreadPoolExecutor(PEOPLE) as people:
        began = time.monotonic()
        errands = [Errand(site, key, log, number) for number in range(total)]
        ended = list(people.map(Errand.run, errands))
        took = time.monotonic() - began
    effects = done(log)
    tally = Counter(one.wrong(effects) for one in ended)
    record_score(
        f"gated threads on a Postgres with {CONNECTIONS} connections, a server and two workers",
        "0 stuck, 0 doubled, 0 false success",
        f"{total} threads in {took:.0f} s: {tally['stuck']} stuck, {tally['doubled']} doubled, "
        f"{tally['false success']} false success; {sum(one.refused for one in ended)} requests answered 503",
    )
    wrong = [(row.tag, row.status, [(i["title"], i["status"], i["execution"]) for i in row.items]) for row in ended]
    assert tally[None] == total, [one for one, errand in zip(wrong, ended, strict=True) if errand.wrong(effects)]
