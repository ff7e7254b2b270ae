"""What the surroundings do to a store: kill it, lock it, fill its disk, restart its database."""

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from assent.review import thread_items
from assent.settings import Mode
from tests.contract.stores import database, folder, store
from tests.faults import probe
from tests.faults.arena import Arena, open_arena, swept
from tests.faults.far import Far, serving
from tests.faults.held import Held
from tests.postgres import Cluster

__all__ = ["database", "folder", "store"]


@pytest.fixture
def most_ms(pytestconfig: pytest.Config) -> float:
    """How long an attack may hold up others. `make test` also runs on machines that hold them up by themselves."""
    return probe.MOST_MS if pytestconfig.getoption("scoreboard") else 10 * probe.MOST_MS


@pytest.fixture
def longest_takeover(pytestconfig: pytest.Config) -> float:
    """Seconds until another worker continues a run: the lease, then the rescue. Longer on a busy machine, as above."""
    return 5.0 if pytestconfig.getoption("scoreboard") else 50.0


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def module_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One empty database for all tests of a module."""
    if request.param == "sqlite":
        file = tmp_path_factory.mktemp("arena") / "assent.db"
        shutil.copy(request.getfixturevalue("migrated_file"), file)
        yield f"sqlite:///{file}"
    else:
        cluster: Cluster = request.getfixturevalue("postgres")
        with cluster.database() as url:
            yield url


@pytest.fixture(scope="module")
async def served(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    async with open_arena(tmp_path_factory.mktemp("served"), module_database) as arena:
        yield arena


@pytest.fixture
async def arena(served: Arena, folder: Path) -> Arena:
    return await swept(served, folder)


@pytest.fixture(scope="module")
async def developed(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    folder = tmp_path_factory.mktemp("developed")
    shutil.copy(migrated_file, folder / "assent.db")
    async with open_arena(folder, f"sqlite:///{folder}/assent.db", Mode.DEV) as arena:
        yield arena


@pytest.fixture
async def dev_arena(developed: Arena, folder: Path) -> Arena:
    """The control: breakpoints are advice there, and threads are shared."""
    return await swept(developed, folder)


@pytest.fixture(scope="module")
async def following(module_database: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Arena, Far]]:
    """A server that follows a hostile deployment."""
    folder = tmp_path_factory.mktemp("following")
    async with serving() as far, open_arena(folder, module_database, outbound_allow=("127.0.0.1",)) as arena:
        admin = await arena.house.admin()
        added = await admin.post("/api/deployments", json={"url": far.url, "name": "far"})
        assert added.json()["problem"] is None, added.text
        yield arena, far


@pytest.fixture
async def held(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Held]:
    """In place of the check of every question."""
    held = Held()
    monkeypatch.setattr(thread_items, "flaw", held.flaw)
    yield held
    held.release.set()
