"""The database grows with what is said and done, not with its square: a soak of runs, and one long conversation."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from bench.bench_growth import HALF_A_TURN, said
from bench.served import GRAPHS
from tests.postgres import Cluster
from tests.scoreboard import Count, RecordScore
from tests.servers import dev_server, running

Size = Callable[[], int]
CONVERSATIONS = 50  # of the soak, each of which becomes long enough that a square would show
PARTS = 4
PAGES = 1_000_000  # bytes that tables, indexes and catalogues take for few rows, too
"""The soak grows in so many parts of equal numbers of runs."""

pytestmark = pytest.mark.scoreboard


@pytest.fixture(params=["SQLite", "Postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, SyncLangGraphClient, Size]]:
    if request.param == "SQLite":
        file = tmp_path / "assent.db"
        yield from served(request.param, f"sqlite:///{file}", lambda: used_bytes(file))
        return
    cluster: Cluster = request.getfixturevalue("postgres")
    with cluster.database() as url:
        yield from served(request.param, url, lambda: bytes_of_tables(url))


def served(name: str, database: str, size: Size) -> Iterator[tuple[str, SyncLangGraphClient, Size]]:
    server = dev_server(database, config=GRAPHS / "langgraph.json")
    with running(server), get_sync_client(url=server.url) as client:
        yield name, client, size


def used_bytes(file: Path) -> int:
    """As it is without the journal beside it, and without free pages."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        pages, free, size = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_count", "freelist_count", "page_size")
        )
    return (pages - free) * size


def bytes_of_tables(url: str) -> int:
    """With indexes, and without the space of old versions of rows, which Postgres reuses after a while."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM FULL")
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(row[0])


def say(client: SyncLangGraphClient, thread_id: str, number: int) -> None:
    message: Any = said(number)
    values: Any = client.runs.wait(thread_id, "chat", input=message)
    assert values["messages"][-2]["content"] == message["messages"][0]["content"]


@pytest.mark.parametrize("place", ["SQLite"], indirect=True)
def test_disk_grows_with_the_number_of_runs(
    place: tuple[str, SyncLangGraphClient, Size], count: Count, record_score: RecordScore
) -> None:
    """Every second run is a turn of a conversation; the others are runs of one node, each in a thread of its own."""
    name, client, size = place
    runs = count(full=10_000, quick=400)
    threads = [client.threads.create()["thread_id"] for _ in range(CONVERSATIONS)]
    sizes = [size()]
    for part in range(PARTS):
        for number in range(part * runs // PARTS, (part + 1) * runs // PARTS):
            if number % 2:
                client.runs.wait(client.threads.create()["thread_id"], "echo", input={"text": f"run {number}"})
            else:
                say(client, threads[number // 2 % CONVERSATIONS], number)
        sizes.append(size())
    grown = [after - before for before, after in itertools.pairwise(sizes)]
    per_thousand = [f"{bytes * PARTS / runs / 1000:.2f}" for bytes in grown]
    result = f"{runs:,} runs, MB for 1,000 runs by quarter: {', '.join(per_thousand)}"
    measure = f"disk of a soak of runs in {CONVERSATIONS} conversations and in new threads, {name}"
    record_score(measure, "the last quarter takes ≤ 1.25 × the second", result)
    assert grown[-1] <= 1.25 * grown[1]


def test_long_conversation_stays_small(
    place: tuple[str, SyncLangGraphClient, Size], count: Count, record_score: RecordScore
) -> None:
    name, client, size = place
    turns = count(full=1000, quick=24)
    thread_id, before = client.threads.create()["thread_id"], size()
    for number in range(turns):
        say(client, thread_id, number)
    grown, content = size() - before, turns * 2 * HALF_A_TURN
    result = f"{turns:,} turns of {2 * HALF_A_TURN} bytes: {grown / 1e6:.1f} MB, {grown / content:.1f} × the content"
    record_score(f"database of a long conversation, {name}", "≤ 15 × the content", result)
    assert grown <= 15 * content + PAGES
