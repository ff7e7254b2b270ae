"""A house is the whole app on a fresh database: `house` in production mode, `dev_house` as `assent dev` makes it.

These two are built once and swept for each test, because making the app costs more than most tests; `build` makes one
of the test's own, with other settings, or to take apart.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from assent.settings import Mode
from tests.api.house import Builder, House
from tests.contract.stores import migrated_database


@pytest.fixture(scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory, migrated_file: Path) -> AsyncIterator[dict[Mode, House]]:
    async with AsyncExitStack() as stack:
        builder = Builder(tmp_path_factory.mktemp("shared"), migrated_file, stack)
        yield {mode: await builder(mode) for mode in (Mode.SERVE, Mode.DEV)}


@pytest.fixture
async def house(shared: dict[Mode, House]) -> House:
    await shared[Mode.SERVE].sweep()
    return shared[Mode.SERVE]


@pytest.fixture
async def dev_house(shared: dict[Mode, House]) -> House:
    await shared[Mode.DEV].sweep()
    return shared[Mode.DEV]


@pytest.fixture
async def build(tmp_path: Path, migrated_file: Path) -> AsyncIterator[Builder]:
    async with AsyncExitStack() as stack:
        yield Builder(tmp_path, migrated_file, stack)


@pytest.fixture(params=["sqlite", "postgres"])
async def build_on_both(request: pytest.FixtureRequest, tmp_path: Path, migrated_file: Path) -> AsyncIterator[Builder]:
    """As `build`, on one database after the other."""
    async with AsyncExitStack() as stack:
        cluster = request.getfixturevalue("postgres") if request.param == "postgres" else None
        fresh = cluster and (lambda: stack.enter_context(migrated_database(cluster)))
        yield Builder(tmp_path, migrated_file, stack, fresh)


@pytest.fixture
async def own_house(build: Builder) -> House:
    """In production mode, for the test alone: routes may be added to it, its store may be closed."""
    return await build(Mode.SERVE)
