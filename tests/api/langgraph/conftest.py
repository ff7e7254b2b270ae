"""The LangGraph API without a socket, over the example graphs, with real keys. `database` chooses what is below it."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest

from assent.runs.project.graphs import GraphSpec
from assent.runs.project.loader import load_graphs
from assent.runs.project.manifest import read_manifest
from tests.api.langgraph.server import Server
from tests.contract.stores import AnyStore, database, folder, opened

__all__ = ["database", "folder"]

EXAMPLES = Path(__file__).parents[2] / "graphs" / "langgraph.json"


@pytest.fixture(scope="session")
def graphs() -> Mapping[str, GraphSpec]:
    loaded = load_graphs(read_manifest(EXAMPLES))
    assert loaded.failures == {}
    return loaded.graphs


@pytest.fixture
async def store(database: str) -> AsyncIterator[AnyStore]:
    async with opened(database) as store:
        yield store


@pytest.fixture
def server(store: AnyStore, graphs: Mapping[str, GraphSpec]) -> Server:
    return Server(store, graphs)


@pytest.fixture
async def client(server: Server) -> httpx.AsyncClient:
    return await server.client()
