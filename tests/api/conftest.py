"""A house is the whole app on a fresh database: `house` in production mode, `dev_house` as `assent dev` makes it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from assent.settings import Mode
from tests.api.house import Builder, House, builder, make_empty_database


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_empty_database(tmp_path_factory.mktemp("empty"))


@pytest.fixture
async def build(tmp_path: Path, empty_database: Path) -> AsyncIterator[Builder]:
    async for found in builder(tmp_path, empty_database):
        yield found


@pytest.fixture
async def house(build: Builder) -> House:
    return await build(Mode.SERVE)


@pytest.fixture
async def dev_house(build: Builder) -> House:
    return await build(Mode.DEV)
