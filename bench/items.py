"""A server with items to decide, for the benchmarks of the inbox: made quickly, whatever their number."""

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assent.app import open_services
from assent.identity.model.access import DEFAULT_TENANT, Kind, Role, operator
from assent.kernel.ids import new_id
from assent.kernel.store import migrations
from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.tables import item_revisions, item_texts, items
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.settings import Settings

GRAPHS = Path(__file__).parents[1] / "tests" / "graphs_gated" / "langgraph.json"
MANY, BATCH = 1_000_000, 50_000
_MICROSECONDS = 1_000_000


async def fill(file: Path, count: int) -> None:
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
    os.sync()  # or the first flush of what is measured would have to write all of this as well


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
    thread_items.follow(
        tx, thread_items.Waiting(new_id(), pending, graph_id="gated", assistant_id=new_id(), gated=True)
    )


def _copy(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Seconds apart, the last one the newest. Those with an odd number are resolved."""
    id = "substr(item_id, 1, 24) || printf('%012d', n)"
    at = f"created_at - ({MANY} - n) * {_MICROSECONDS}"
    resolved = {"status": "'APPROVED'", "open": "0", "resolution": "'accepted'", "due_at": "NULL", "due": "NULL"}
    changed = {name: f"CASE n % 2 WHEN 1 THEN {value} ELSE {name} END" for name, value in resolved.items()}
    for table, new in (
        (items, {"item_id": id, "thread_id": id, "of_thread": id, "created_at": at, "updated_at": at, **changed}),
        (item_revisions, {"item_id": id, "created_at": at}),
        (item_texts, {"item_id": id, "text_id": "NULL", "lexemes": "lexemes || ' ' || n"}),
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


async def reviewer(file: Path) -> str:
    async with open_services(Settings(database=f"sqlite:///{file}")) as services:
        await services.users.create(operator(), name="ana", role=Role.REVIEWER)
        made = await services.keys.create(operator(), kind=Kind.REVIEWER, name="ana's", user="ana")
        return made.secret


async def agent(file: Path) -> str:
    async with open_services(Settings(database=f"sqlite:///{file}")) as services:
        return (await services.keys.create(operator(), kind=Kind.AGENT, name="agent")).secret


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
def on_disk() -> Iterator[Path]:
    """In the working directory: a temporary folder is often in memory, where a flush costs nothing."""
    with TemporaryDirectory(prefix=".bench-", dir=Path.cwd()) as folder:
        yield Path(folder)


def gated(folder: Path, port: int) -> list[str]:
    database = f"sqlite:///{folder / 'assent.db'}"
    return [sys.executable, "-m", "assent", "dev", "--port", str(port), "--config", str(GRAPHS), "--database", database]
