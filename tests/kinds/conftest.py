"""One server for the whole matrix, and the callers around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.cli.conftest import Assent, assent, folder
from tests.e2e.conftest import fast_folder
from tests.kinds.office import Office
from tests.kinds.surfaces import CommandLine, Rest, Sdk, Surface, Web
from tests.postgres import Cluster
from tests.servers import ServerProcess, dev_server, running

__all__ = ["assent", "folder"]

GRAPHS = Path(__file__).parent / "graphs" / "langgraph.json"
POLICY = Path(__file__).parent / "policy.toml"


def _server(database: str) -> ServerProcess:
    """Where a person is asked about everything that approves something, and decisions take effect at once."""
    return dev_server(database, config=GRAPHS, ASSENT_POLICY=str(POLICY), ASSENT_UNDO_WINDOW="0s")


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(_server(f"sqlite:///{fast_folder(tmp_path_factory)}/assent.db")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server(postgres: Cluster) -> Iterator[ServerProcess]:
    with ExitStack() as stack:
        database = stack.enter_context(postgres.database())
        yield stack.enter_context(running(_server(database)))


@pytest.fixture(scope="session")
async def sqlite_office(sqlite_server: ServerProcess) -> AsyncIterator[Office]:
    async with Office(sqlite_server) as opened:
        yield opened


@pytest.fixture(scope="session")
async def postgres_office(postgres_server: ServerProcess) -> AsyncIterator[Office]:
    async with Office(postgres_server) as opened:
        yield opened


@pytest.fixture
def office(request: pytest.FixtureRequest, database: str) -> Office:
    """On the database that the test names."""
    found: Office = request.getfixturevalue(f"{database}_office")
    return found


@pytest.fixture
def answering(request: pytest.FixtureRequest, surface: str) -> Surface:
    """The surface that the test names."""
    found: Surface = request.getfixturevalue(surface)
    return found


@pytest.fixture
def rest(office: Office) -> Surface:
    return Rest(office)


@pytest.fixture
def sdk(office: Office) -> Surface:
    return Sdk(office)


@pytest.fixture
def cli(office: Office, assent: Assent) -> Surface:
    return CommandLine(office, assent)


@pytest.fixture(scope="session")
async def cookies(sqlite_server: ServerProcess, browser: Browser) -> Any:
    """Of a person who signed in on the page."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{sqlite_server.url}/login")
    await page.get_by_label("Sign-in token or reviewer key").fill(sqlite_server.printed("reviewer key"))
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url("**/inbox")
    found = await context.cookies()
    await context.close()
    return found


@pytest.fixture
async def web(office: Office, page: Page, cookies: Any) -> Surface:
    await page.context.add_cookies(cookies)
    return Web(office, page)
