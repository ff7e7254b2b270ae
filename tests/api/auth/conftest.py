"""Assent over a project with an auth file: the real app on a fresh database, with runs executed."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from assent.app import create_app, load_project, open_engine, open_services
from assent.engine.loader import LoadedGraphs
from assent.settings import Mode, Settings
from tests.api.house import House

PROJECT = Path(__file__).parents[2] / "graphs_auth" / "langgraph.json"


class Guarded(House):
    """`Bearer` tokens are those of tests/graphs_auth/guard.py."""

    def user(self, token: str, **headers: str) -> httpx.AsyncClient:
        return self.client(headers={"authorization": f"Bearer {token}", **headers})


@pytest.fixture(scope="session")
def loaded() -> LoadedGraphs:
    return load_project(Settings(mode=Mode.SERVE, config=PROJECT))


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


async def open_house(stack: AsyncExitStack, file: Path, loaded: LoadedGraphs, mode: Mode) -> Guarded:
    settings = Settings(mode=mode, database=f"sqlite:///{file}", config=PROJECT)
    services = await stack.enter_async_context(open_services(settings))
    engine = await stack.enter_async_context(open_engine(services.store, loaded, settings))
    return Guarded(services, settings, create_app(services, engine, settings))


@pytest.fixture
async def guarded(tmp_path: Path, empty_database: Path, stack: AsyncExitStack, loaded: LoadedGraphs) -> Guarded:
    file = shutil.copy(empty_database, tmp_path / "assent.db")
    return await open_house(stack, Path(file), loaded, Mode.SERVE)


@pytest.fixture
async def guarded_dev(tmp_path: Path, empty_database: Path, stack: AsyncExitStack, loaded: LoadedGraphs) -> Guarded:
    file = shutil.copy(empty_database, tmp_path / "dev.db")
    return await open_house(stack, Path(file), loaded, Mode.DEV)
