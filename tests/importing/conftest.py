"""LangGraph's own server and checkpointers, with threads in them, and an empty Assent beside them to import into."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from bench.reference import ENVIRONMENT, reference
from bench.served import serving
from tests.cli.command import Result, environment, execute
from tests.missing import missing
from tests.servers import ServerProcess, dev_server
from tests.waiting import wait_until

GRAPHS = Path(__file__).parents[1] / "graphs_import"


@dataclass(frozen=True)
class Place:
    """A project with its own database."""

    folder: Path
    elsewhere: str | None = None
    """The address of its database, where that is not in its folder."""

    @property
    def database(self) -> str:
        return self.elsewhere or f"sqlite:///{self.folder / 'assent.db'}"

    def run(self, *arguments: str, **changes: str) -> Result:
        named = ("--config", str(self.folder / "langgraph.json"), "--database", self.database)
        return execute(self.folder, *arguments, *named, **changes)

    def imported(self, *arguments: str, **changes: str) -> Any:
        """The report of an import that took everything."""
        result = self.run("import", *arguments, "--json", **changes)
        assert result.code == 0, result.out + result.err
        return result.json

    def decided(self, server: ServerProcess, verb: str, item_id: str, *more: str) -> None:
        """A person decides in the inbox."""
        named = ("--url", server.url, "--key", server.printed("reviewer key"), "--yes")
        result = execute(self.folder, "inbox", verb, item_id, *more, *named)
        assert result.code == 0, result.err

    def dev(self) -> ServerProcess:
        return dev_server(self.database, config=self.folder / "langgraph.json")

    def python(self, program: str, *arguments: str) -> None:
        """Runs a program where the project's modules are, as its author would."""
        command = [sys.executable, "-c", program, *arguments]
        subprocess.run(command, cwd=self.folder, env=environment(), check=True, timeout=60)


def copy_graphs(folder: Path) -> Path:
    shutil.copytree(GRAPHS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(copy_graphs(tmp_path))


@contextmanager
def reference_server(folder: Path) -> Iterator[str]:
    """The address of LangGraph's own server, which has nothing but its graphs."""
    if not ENVIRONMENT.exists():
        missing("LangGraph's server: tools/setup reference")
    with serving(reference, copy_graphs(folder)) as served:
        yield f"http://127.0.0.1:{served.port}"


@pytest.fixture
def reference_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with reference_server(tmp_path_factory.mktemp("reference")) as url:
        yield url


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[LangGraphClient]:
    client = get_client(url=url, api_key=None)
    try:
        yield client
    finally:
        await client.aclose()


def pending_items(url: str, thread_id: str | None = None) -> list[Any]:
    """What waits for people, of one thread or of all."""
    query = "is:pending" + (f" thread:{thread_id}" if thread_id else "")
    found, cursor = list[Any](), dict[str, str]()
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        while True:
            page = client.get("/api/inbox/items", params={"filter": query, "limit": "100", **cursor}).json()
            found += page["items"]
            if page["next"] is None:
                return found
            cursor = {"cursor": page["next"]}


def item_of(url: str, item_id: str) -> Any:
    return httpx.get(f"{url}/api/inbox/items/{item_id}", trust_env=False, timeout=30).json()


def finished(url: str, thread_id: str) -> Any:
    """The values of a thread that has come to its end."""
    found: dict[str, Any] = {}

    def is_idle() -> bool:
        found.update(httpx.get(f"{url}/threads/{thread_id}", trust_env=False, timeout=30).json())
        return bool(found["status"] == "idle")

    wait_until(is_idle, f"the thread did not go on: {found}")
    return found["values"]
