"""Assent over a project with an auth file: the real app on a fresh database, with runs executed."""

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from assent.app import load_project, open_engine, open_services
from assent.runs.project.loader import LoadedGraphs
from assent.settings import Mode, Settings
from assent.surfaces.routes import create_app
from tests.api.house import House

PROJECT = Path(__file__).parents[2] / "graphs_auth" / "langgraph.json"


class Guarded(House):
    """`Bearer` tokens are those of tests/graphs_auth/guard.py."""

    def user(self, token: str, **headers: str) -> httpx.AsyncClient:
        return self.client(headers={"authorization": f"Bearer {token}", **headers})


@pytest.fixture(scope="session")
def loaded() -> LoadedGraphs:
    return load_project(Settings(mode=Mode.SERVE, config=PROJECT))


@pytest.fixture(scope="session")
async def shared_guarded(
    tmp_path_factory: pytest.TempPathFactory, migrated_file: Path, loaded: LoadedGraphs
) -> AsyncIterator[dict[Mode, Guarded]]:
    folder = tmp_path_factory.mktemp("guarded")
    async with AsyncExitStack() as stack:
        yield {mode: await _open(stack, folder / f"{mode}.db", migrated_file, loaded, mode) for mode in Mode}


async def _open(stack: AsyncExitStack, file: Path, empty: Path, loaded: LoadedGraphs, mode: Mode) -> Guarded:
    shutil.copy(empty, file)
    settings = Settings(
        mode=mode, database=f"sqlite:///{file}", config=PROJECT, policy=PROJECT.with_name("policy.toml")
    )
    services = await stack.enter_async_context(open_services(settings))
    engine = await stack.enter_async_context(open_engine(services.store, loaded, settings))
    return Guarded(services, settings, create_app(services, engine, settings), engine)


@pytest.fixture
async def guarded(shared_guarded: dict[Mode, Guarded]) -> Guarded:
    await shared_guarded[Mode.SERVE].sweep()
    return shared_guarded[Mode.SERVE]


@pytest.fixture
async def guarded_dev(shared_guarded: dict[Mode, Guarded]) -> Guarded:
    await shared_guarded[Mode.DEV].sweep()
    return shared_guarded[Mode.DEV]
