"""Other servers for an inbox to follow, one of each kind for all tests of a worker, which use threads of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.api.conftest import build_on_both as build_on_both
from tests.api.house import Builder
from tests.federation.servers import aegra, langgraph_dev, langgraphjs, second_assent
from tests.postgres import Cluster
from tests.servers import running

KINDS = ("langgraph", "langgraphjs", "aegra", "assent")


@pytest.fixture(scope="session")
def langgraph_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with langgraph_dev(tmp_path_factory.mktemp("langgraph")) as url:
        yield url


@pytest.fixture(scope="session")
def langgraphjs_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with langgraphjs(tmp_path_factory.mktemp("langgraphjs")) as url:
        yield url


@pytest.fixture(scope="session")
def aegra_url(tmp_path_factory: pytest.TempPathFactory, postgres: Cluster) -> Iterator[str]:
    with postgres.database() as database, aegra(tmp_path_factory.mktemp("aegra"), database) as url:
        yield url


@pytest.fixture(scope="session")
def assent_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(second_assent(tmp_path_factory.mktemp("second"))) as server:
        yield server.url


@pytest.fixture(params=KINDS)
def server_url(request: pytest.FixtureRequest) -> str:
    """Each kind of server in turn."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.fixture
async def build(tmp_path: Path, migrated_file: Path) -> AsyncIterator[Builder]:
    async with AsyncExitStack() as stack:
        yield Builder(tmp_path, migrated_file, stack)
