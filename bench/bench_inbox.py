"""The inbox: what a reviewer waits for. How long the first page takes among few items and among very many, and how long
it is from the click on Approve until the approved call begins.

The floor of the list is our own time with few items. A decision has none: it is judged by the clock.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from assent.app import open_services
from assent.domain.access import DEFAULT_TENANT, Kind, Role, operator
from assent.domain.ids import new_id
from assent.settings import Settings
from assent.store import asking, migrations
from assent.store.sqlite import SqliteStore
from assent.store.tables import item_revisions, items
from assent.store.transaction import Tx
from bench.rows import Row, at_most, ratio_at_most
from bench.served import serving

GRAPHS = Path(__file__).parents[1] / "tests" / "graphs_gated" / "langgraph.json"
FEW, MANY, BATCH = 1_000, 1_000_000, 50_000
LISTS = 50
ROUNDS, DECISIONS, WARM_UP = 5, 40, 20
FILTER = "/api/inbox/items?filter=is%3Apending"
_MICROSECONDS = 1_000_000


def run() -> list[Row]:
    return [*_lists(), *_decisions()]


# The list


def _lists() -> list[Row]:
    taken: dict[int, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        callers = {count: stack.enter_context(_filled(count)) for count in (FEW, MANY)}
        for caller in callers.values():
            caller.get(FILTER)
        for _ in range(LISTS):
            for count, caller in callers.items():
                began = time.perf_counter()
                found = caller.get(FILTER)
                taken[count].append((time.perf_counter() - began) * 1000)
                assert len(found["items"]) == 50
    few, many = median(taken[FEW]), median(taken[MANY])
    return [ratio_at_most(f"inbox, first page, {MANY:,} items / {FEW:,}", many, "ms", peer=few, target=3)]


@contextmanager
def _filled(count: int) -> Iterator[Caller]:
    with _on_disk() as folder:
        began = time.perf_counter()
        asyncio.run(_fill(folder / "assent.db", count))
        print(f"{count:,} items made in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        with serving(_gated, folder) as served, closing(Caller(served.port)) as caller:
            yield caller


async def _fill(file: Path, count: int) -> None:
    """One item is made as a run makes it, all others are copies of it: half of them still wait."""
    url = f"sqlite:///{file}"
    migrations.upgrade(url)
    store = SqliteStore(url)
    await store.open()
    await store.write(DEFAULT_TENANT, _ask)
    await store.close()
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA cache_size=-400000")
        for first in range(0, count, BATCH):
            _copy(connection, first, min(first + BATCH, count))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _ask(tx: Tx) -> None:
    value = {
        "type": "tool_approval",
        "gate": "assent",
        "tool_call_id": "call",
        "name": "send_email",
        "args": {"to": "someone@example.org", "body": "A text of an everyday length, as agents write them."},
        "description": "Tool execution requires approval",
    }
    pending = [{"id": new_id().replace("-", ""), "value": value}]
    asking.follow(tx, asking.Waiting(new_id(), pending, graph_id="gated", assistant_id=new_id(), gated=True))


def _copy(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Seconds apart, the last one the newest. Those with an odd number are resolved."""
    id = "substr(item_id, 1, 24) || printf('%012d', n)"
    at = f"created_at - ({MANY} - n) * {_MICROSECONDS}"
    resolved = {"status": "'APPROVED'", "open": "0", "resolution": "'accepted'", "due_at": "NULL", "due": "NULL"}
    changed = {name: f"CASE n % 2 WHEN 1 THEN {value} ELSE {name} END" for name, value in resolved.items()}
    for table, new in (
        (items, {"item_id": id, "thread_id": id, "created_at": at, "updated_at": at, **changed}),
        (item_revisions, {"item_id": id, "created_at": at}),
    ):
        names = [column.name for column in table.columns]
        chosen = ", ".join(new.get(name, f'"{name}"') for name in names)
        columns = ", ".join(f'"{name}"' for name in names)
        connection.execute(
            f"WITH RECURSIVE number(n) AS (SELECT ? UNION ALL SELECT n + 1 FROM number WHERE n + 1 < ?) "
            f"INSERT INTO {table.name} ({columns}) SELECT {chosen} "
            f"FROM (SELECT * FROM {table.name} WHERE item_id NOT LIKE '%-000%' LIMIT 1), number",
            (first, last),
        )


# From a decision to the call


def _decisions() -> list[Row]:
    """Decided by HTTP; the tool notes when it was called, by the clock that all processes of a machine share. Of some
    rounds the quietest counts: what else the machine does is not the inbox's."""
    with _on_disk() as folder:
        key = asyncio.run(_reviewer(folder / "assent.db"))
        with serving(_gated, folder) as served, closing(Caller(served.port, key)) as caller:
            for _ in range(WARM_UP):
                _decide(caller, folder)
            rounds = [[_decide(caller, folder) for _ in range(DECISIONS)] for _ in range(ROUNDS)]
    answered, started = (min((_figures(one, index) for one in rounds), key=median) for index in (0, 1))
    late = started[int(0.95 * len(started))]
    return [
        at_most("decide → approved call begins, p50", median(started), "ms", target=25),
        Row("decide → approved call begins, p95", late, "ms", "reported", True),
        Row("decide → answered, p50", median(answered), "ms", "reported", True),
    ]


def _figures(measured: list[tuple[float, float]], index: int) -> list[float]:
    return sorted(one[index] for one in measured)


def _decide(caller: Caller, folder: Path) -> tuple[float, float]:
    """Milliseconds until the decision was answered, and until its call was made."""
    tag, log = new_id(), folder / "effects"
    call = [{"name": "act", "args": {"log": str(log), "tag": tag}}]
    thread = caller.post("/threads", {})["thread_id"]
    body = {"assistant_id": "gated", "input": {"messages": [{"role": "user", "content": json.dumps(call)}]}}
    caller.post(f"/threads/{thread}/runs/wait", body)
    [item] = caller.get(f"/api/inbox/items?filter=thread%3A{thread}")["items"]
    said = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
    sent = time.monotonic_ns()
    caller.post(f"/api/inbox/items/{item['id']}/decision", said)
    answered = time.monotonic_ns()
    return (answered - sent) / 1e6, (_called(Path(f"{log}.calls"), tag) - sent) / 1e6


def _called(calls: Path, tag: str) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for line in calls.read_text().splitlines() if calls.exists() else ():
            if line.startswith(tag) and line.count(" ") == 1:
                return int(line.split()[1])
        time.sleep(0.002)
    raise RuntimeError("the call was not made")


async def _reviewer(file: Path) -> str:
    async with open_services(Settings(database=f"sqlite:///{file}")) as services:
        await services.users.create(operator(), name="ana", role=Role.REVIEWER)
        made = await services.keys.create(operator(), kind=Kind.REVIEWER, name="ana's", user="ana")
        return made.secret


# What they share


@dataclass
class Caller:
    """One kept connection, in the name of whoever has the key."""

    port: int
    key: str = ""

    def __post_init__(self) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def get(self, path: str) -> Any:
        return self._request("GET", path, None)

    def post(self, path: str, body: object) -> Any:
        return self._request("POST", path, json.dumps(body))

    def close(self) -> None:
        self._connection.close()

    def _request(self, method: str, path: str, body: str | None) -> Any:
        headers = {"content-type": "application/json"} | ({"x-api-key": self.key} if self.key else {})
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        told = response.read()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {told!r}")
        return json.loads(told)


@contextmanager
def _on_disk() -> Iterator[Path]:
    """In the working directory: a temporary folder is often in memory, where a flush costs nothing."""
    with TemporaryDirectory(prefix=".bench-", dir=Path.cwd()) as folder:
        yield Path(folder)


def _gated(folder: Path, port: int) -> list[str]:
    database = f"sqlite:///{folder / 'assent.db'}"
    return [sys.executable, "-m", "assent", "dev", "--port", str(port), "--config", str(GRAPHS), "--database", database]
