"""Other servers for an inbox to follow: LangGraph's own, and a second Assent. They are shared by the tests of a module,
which use threads of their own."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bench.reference import ENVIRONMENT, reference
from bench.served import serving
from tests.api.conftest import empty_database as empty_database
from tests.api.house import Builder
from tests.missing import missing
from tests.servers import ServerProcess, dev_server, running

GRAPHS = Path(__file__).parents[1] / "graphs_remote"


def copy_graphs(folder: Path) -> Path:
    shutil.copytree(GRAPHS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def langgraph_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not ENVIRONMENT.exists():
        missing("LangGraph's server: tools/setup reference")
    with serving(reference, copy_graphs(tmp_path_factory.mktemp("reference"))) as served:
        yield f"http://127.0.0.1:{served.port}"


def second_assent(folder: Path, **environment: str) -> ServerProcess:
    copy_graphs(folder)
    return dev_server(f"sqlite:///{folder / 'assent.db'}", config=folder / "langgraph.json", **environment)


@pytest.fixture(scope="module")
def assent_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(second_assent(tmp_path_factory.mktemp("second"))) as server:
        yield server.url


@pytest.fixture(params=["langgraph", "assent"])
def server_url(request: pytest.FixtureRequest) -> str:
    """Each kind of server in turn."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def build(tmp_path: Path, empty_database: Path) -> AsyncIterator[Builder]:
    async with AsyncExitStack() as stack:
        yield Builder(tmp_path, empty_database, stack)
