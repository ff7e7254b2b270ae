"""`assent import` at the command line: what it refuses, what it says, and that it can be run again."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.importing.conftest import Place, copy_graphs, finished, pending_items
from tests.importing.test_from_tables import UNNAMED, talks
from tests.once import once
from tests.servers import running


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return once(tmp_path_factory, "checkpoints", _talk) / "checkpoints.db"


def _talk(folder: Path) -> None:
    said = (f"tea {number}{'?' if number == 0 else ''}" for number in range(5))
    Place(copy_graphs(folder)).python(UNNAMED, str(folder / "checkpoints.db"), talks(*said))


@pytest.fixture
def source(checkpoints: Path, tmp_path: Path) -> str:
    """A checkpointer's file with five threads, one of which waits."""
    return str(shutil.copy(checkpoints, tmp_path))


def rows(place: Place, table: str) -> int:
    with sqlite3.connect(place.folder / "assent.db") as database:
        row_count: int = database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return row_count


@pytest.mark.parametrize(
    ("wrong", "code", "said"),
    [
        ("missing.db", 5, "missing.db cannot be opened"),
        ("postgresql://127.0.0.1:1/x", 7, "cannot be reached"),
        ("ftp://127.0.0.1/x", 2, "ftp:// is not a supported source"),
        ("empty.db", 3, "has no table `checkpoints`"),
    ],
)
def test_invalid_source_is_refused_with_a_hint(place: Place, wrong: str, code: int, said: str) -> None:
    sqlite3.connect(place.folder / "empty.db").close()
    result = place.run("import", wrong)
    assert (result.code, said in result.err) == (code, True), result.err
    assert not (place.folder / "missing.db").exists()


def test_refused_key_is_reported_with_a_hint(place: Place) -> None:
    with refusing() as (url, keys):
        result = place.run("import", url, "--api-key", "wrong")
        place.run("import", url, LANGGRAPH_API_KEY="from the environment")
    assert (result.code, "--api-key" in result.err) == (4, True), result.err
    assert keys == ["wrong", "from the environment"]


@contextmanager
def refusing() -> Iterator[tuple[str, list[str | None]]]:
    """A server that knows nobody, and the keys that it was shown."""
    keys: list[str | None] = []

    class Refusal(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            keys.append(self.headers["x-api-key"])
            self.send_error(401)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusal) as server:
        serving = Thread(target=server.serve_forever, daemon=True)
        serving.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", keys
        server.shutdown()
        serving.join()


def test_dry_run_gives_the_same_report_and_writes_nothing(place: Place, source: str) -> None:
    tried = place.imported(source, "--graph", "chat", "--dry-run")
    assert not (place.folder / "assent.db").exists(), "a dry run makes no database"
    taken = place.imported(source, "--graph", "chat")
    assert tried == taken | {"dry_run": True}
    assert rows(place, "threads") == 5
    again = place.imported(source, "--graph", "chat", "--dry-run")
    assert (again["threads"]["present"], rows(place, "threads"), rows(place, "runs")) == (5, 5, 5)


def test_interrupted_import_continues_where_it_stopped(place: Place, source: str) -> None:
    cut = place.run("import", source, "--graph", "chat", "--json", ASSENT_QUOTA_THREADS="2")
    assert (cut.code, cut.json["threads"]) == (1, {"taken": 2, "present": 0, "refused": 3})
    assert place.imported(source, "--graph", "chat")["threads"] == {"taken": 3, "present": 2, "refused": 0}
    assert (rows(place, "threads"), rows(place, "items")) == (5, 1)


def test_unknown_graph_is_named_with_a_hint(place: Place, source: str) -> None:
    unknown = place.run("import", source, "--graph", "gone")
    assert (unknown.code, "the graph 'gone' is not served here" in unknown.err) == (5, True)
    with sqlite3.connect(source) as database:
        database.execute("""UPDATE checkpoints SET metadata = json_set(CAST(metadata AS TEXT), '$.graph_id', 'old')""")
    refused = place.run("import", source)
    assert refused.code == 1
    assert "--graph old=NAME" in refused.out
    assert place.imported(source, "--graph", "old=chat")["threads"]["taken"] == 5


def test_threads_without_any_graph_named_are_refused(place: Place, source: str) -> None:
    refused = place.run("import", source)
    assert refused.code == 1
    assert "--graph" in refused.out
    assert rows(place, "threads") == 0


def test_threads_are_imported_when_store_items_cannot_be_read(place: Place, source: str) -> None:
    with sqlite3.connect(source) as database:
        database.execute("CREATE TABLE store (prefix TEXT, key TEXT)")
    result = place.run("import", source, "--graph", "chat", "--json")
    assert (result.code, result.json["threads"]["taken"], result.json["store_items"]["refused"]) == (1, 5, 1)
    assert "no such column" in result.json["problems"][0]["text"]


def test_threads_belong_to_the_agent_that_is_named(place: Place, source: str) -> None:
    unknown = place.run("import", source, "--graph", "chat", "--owner", "nobody")
    assert (unknown.code, "assent keys create NAME --kind agent" in unknown.err) == (5, True)
    made = place.run("keys", "create", "billing", "--kind", "agent", "--json").json
    place.imported(source, "--graph", "chat", "--owner", "billing")
    with sqlite3.connect(place.folder / "assent.db") as database:
        owners = set(database.execute("SELECT owner, visibility FROM threads"))
        requesters = set(database.execute("SELECT requester FROM items"))
    assert (owners, requesters) == ({(f"agent:{made['agent']}", "private")}, {(f"agent:{made['agent']}",)})


def test_progress_and_report_use_separate_outputs(place: Place, source: str) -> None:
    result = place.run("import", source, "--graph", "chat")
    assert "threads: 5 of 5" in result.err
    assert "threads: 5 taken, 0 here already, 0 not taken" in result.out
    assert "threads that wait for a person: 1" in result.out


def test_import_into_postgres_gives_the_same_result(place: Place, source: str, postgres_url: str) -> None:
    there = Place(place.folder, postgres_url)
    reports = [there.imported(source, "--graph", "chat") for _ in range(2)]
    assert [(report["threads"]["taken"], report["threads"]["present"]) for report in reports] == [(5, 0), (0, 5)]
    with running(there.dev()) as server:
        [item] = pending_items(server.url)
        there.decided(server, "respond", item["id"], "--message", "yes")
        assert finished(server.url, item["source"]["thread_id"])["answer"] == "tea 0? 6 human,ai yes small"
