"""What every test stands on: the suite's own plugins, the event loop, the number of workers.

An `async def test_…` runs by itself on asyncio (anyio's plugin in auto mode); async fixtures likewise.
"""

import os

import pytest
from hypothesis import settings

# Read once, when langgraph is first imported: it has to stand before any test module is.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

pytest_plugins = (
    "pytester",
    "tests.missing",  # before those that import it
    "tests.browser",
    "tests.postgres",
    "tests.promises",
    "tests.scoreboard",
)


def pytest_configure(config: pytest.Config) -> None:
    settings.register_profile("quick", deadline=None, derandomize=True, max_examples=50)
    settings.register_profile("scoreboard", deadline=None, max_examples=1000, print_blob=True)
    settings.load_profile("scoreboard" if config.getoption("scoreboard") else "quick")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One per core; at least two because tests wait a lot, at most eight because one Postgres serves them all."""
    return min(max(os.cpu_count() or 2, 2), 8)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Asyncio only, and for the whole session, so that fixtures of any scope may be async."""
    return "asyncio"
