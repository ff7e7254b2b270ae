"""What every test stands on: the suite's own plugins, the event loop, the number of workers.

An `async def test_…` runs by itself on asyncio (anyio's plugin in auto mode); async fixtures likewise.
"""

import faulthandler
import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from tests import forking

# Read once, when langgraph is first imported: it has to stand before any test module is.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

# Even with PYTHONDONTWRITEBYTECODE: to compile the modules takes half of the time in which a worker collects the tests.
sys.dont_write_bytecode = False

_HANGS = 240.0
_STDERR = pytest.StashKey[int]()

pytest_plugins = (
    "pytester",
    "tests.missing",  # before those that import it
    "tests.browser",
    "tests.certificates",
    "tests.endpoints",
    "tests.javascript",
    "tests.once",
    "tests.postgres",
    "tests.promises",
    "tests.scoreboard",
    "tests.statements",
)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_STDERR] = os.dup(2)  # before tests have theirs captured
    settings.register_profile("quick", deadline=None, derandomize=True, max_examples=50)
    settings.register_profile("scoreboard", deadline=None, max_examples=1000, print_blob=True)
    if config.getoption("scoreboard"):
        settings.load_profile("scoreboard")
    else:
        settings.load_profile("quick")
        _keep_examples_of_a_seed()


def _keep_examples_of_a_seed() -> None:
    """Hypothesis mixes in constants of every module that is imported. Without them a seed gives the same examples
    whatever else a worker has collected, and a worker starts two seconds sooner."""
    providers._get_local_constants = lambda: providers._local_constants


def pytest_sessionfinish() -> None:
    forking.end()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The modules stay until the end. To look for garbage in them again and again took a third of the suite's time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 10, 10)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """A test that ran into its time-out has none left for its teardown. A worker that hangs there ends, and says
    where it hung, instead of holding up the whole run."""
    if not item.config.getoption("scoreboard"):
        faulthandler.dump_traceback_later(_HANGS, exit=True, file=item.config.stash[_STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two per core, because tests wait for processes, disks and browsers; at most eight, which share one Postgres. One
    per core with `-n logical`, for tests that do not wait: each worker imports and collects everything."""
    cores = os.cpu_count() or 1
    return min(cores if config.option.numprocesses == "logical" else 2 * cores, 8)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Asyncio only, and for the whole session, so that fixtures of any scope may be async."""
    return "asyncio"
