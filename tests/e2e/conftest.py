"""One server process per test worker, shared by its tests: each uses threads of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient, SyncLangGraphClient

from tests.postgres import Cluster
from tests.servers import ServerProcess, dev_server, running


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            database = f"sqlite:///{fast_folder(tmp_path_factory)}/assent.db"
        else:
            cluster: Cluster = request.getfixturevalue("postgres")
            database = stack.enter_context(cluster.database())
        yield stack.enter_context(running(dev_server(database)))


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[LangGraphClient]:
    made = get_client(url=server.url)
    yield made
    async with asyncio.timeout(10):  # a test must not hang in its teardown, where no time-out reaches it
        await made.aclose()


@pytest.fixture
def sync_client(server: ServerProcess) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=server.url) as made:
        yield made


def fast_folder(factory: pytest.TempPathFactory) -> Path:
    """In memory where the system has such a folder: fsync is what these tests would mostly wait for."""
    made = factory.mktemp("server")
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        return made
    folder = shared / f"assent-{os.getpid()}-{made.name}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
