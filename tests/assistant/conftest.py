"""An aviary, and desks at which people answer for the assistant that works with it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP

from assent import LocalInbox
from assent.assistant.mcp.login import desk as logins
from tests.assistant.caldav_server import Radicale, radicale
from tests.assistant.desk import Aviary, Desk, nodes_of
from tests.contract.stores import folder

__all__ = ["folder"]

Opener = Callable[..., Desk]


@pytest.fixture(scope="session")
def caldav_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Radicale]:
    with radicale(tmp_path_factory.mktemp("radicale")) as server:
        yield server


@pytest.fixture(autouse=True)
def no_logins() -> None:
    """Applications of earlier tests have left theirs, whose stores are closed."""
    logins.use(None)


@pytest.fixture
def aviary() -> Aviary:
    return Aviary()


@pytest.fixture
def inbox(folder: Path, migrated_file: Path) -> LocalInbox:
    shutil.copy(migrated_file, folder / "gate.db")
    return LocalInbox(folder / "gate.db")


@pytest.fixture
def desk(aviary: Aviary, inbox: LocalInbox, folder: Path) -> Opener:
    """A desk at which the model says what the test wrote down."""

    def opened(*script: Any, server: FastMCP | None = None, **options: Any) -> Desk:
        return Desk(folder / "gate.db", nodes_of(server or aviary.server, inbox, *script, **options))

    return opened
