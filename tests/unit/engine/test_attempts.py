"""Retries of an attempt during cancellations and database outages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest

from assent.errors import Unavailable
from assent.runs.engine.attempts import Attempts, is_lasting, retry_while_unavailable, uncancelled
from assent.runs.project.failures import SHOWN
from assent.threads.rows.state.checkpoints import Fenced
from tests.graphs_malformed.hostile import ERRORS

if TYPE_CHECKING:
    from assent import ports
    from assent.threads.model.runs import Run


class Database:
    """Away for some calls, then there."""

    def __init__(self, away: int, error: Exception | None = None) -> None:
        self.away = away
        self.error = error or Unavailable("gone fishing")
        self.calls = 0

    async def ask(self) -> str:
        self.calls += 1
        if self.calls <= self.away:
            raise self.error
        return "answer"


async def test_patient_call_succeeds_once_the_database_is_back() -> None:
    database = Database(away=2)
    assert await retry_while_unavailable(database.ask) == "answer"
    assert database.calls == 3


async def test_retries_end_when_the_process_stops() -> None:
    stopping = asyncio.Event()
    trying = asyncio.create_task(retry_while_unavailable(Database(away=1000).ask, stopping=stopping))
    await asyncio.sleep(0)
    stopping.set()
    with pytest.raises(Unavailable):
        await asyncio.wait_for(trying, 90)


async def test_retries_end_after_their_time_limit() -> None:
    with pytest.raises(Unavailable):
        await retry_while_unavailable(Database(away=1000).ask, most_seconds=0)


async def test_uncancelled_work_ends_when_its_caller_is_cancelled() -> None:
    gate, ended = asyncio.Event(), []

    async def record() -> str:
        await gate.wait()
        ended.append(True)
        return "recorded"

    task = asyncio.create_task(uncancelled(record()))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.wait_for(task, 90) == "recorded"
    assert ended


class Store(Database):
    """What `Attempts` needs of one: away for some writes, and it says what was written."""

    def __init__(self, away: int, answers: Any = None, error: Exception | None = None) -> None:
        super().__init__(away, error)
        self.answers = answers or {}
        self.written: list[str] = []

    async def write(self, tenant: str, function: Callable[..., Any], *args: Any) -> Any:
        await self.ask()
        self.written.append(function.__name__)
        return self.answers.get(function.__name__)


def attempts(store: Store, execute: Callable[..., Any]) -> Attempts:
    return Attempts(cast("ports.Store", store), execute)


@pytest.mark.parametrize("error", [Unavailable("gone fishing"), RuntimeError("unexpected")])
async def test_wake_up_write_that_fails_is_retried_until_the_store_takes_it(error: Exception) -> None:
    store = Store(away=3, error=error)
    await attempts(store, _never).wake("default", "r")
    assert (store.written, store.calls) == (["wake"], 4)


@pytest.mark.parametrize("error", [Unavailable("gone fishing"), RuntimeError("unexpected")])
async def test_wake_up_retries_end_when_the_process_stops(error: Exception) -> None:
    store = Store(away=1000, error=error)
    carriers = attempts(store, _never)
    waking = asyncio.create_task(carriers.wake("default", "r"))
    await asyncio.sleep(0)
    carriers.stop()
    with pytest.raises(type(error)):
        await asyncio.wait_for(waking, 90)


async def test_unexpected_error_is_not_retried_where_only_outages_are() -> None:
    """The control: an error that lasts must not hold a place among the runs for ever."""
    database = Database(away=1, error=RuntimeError("unexpected"))
    with pytest.raises(RuntimeError):
        await retry_while_unavailable(database.ask)


async def test_a_run_that_the_database_cut_off_is_attempted_again_also_when_it_is_cancelled_meanwhile() -> None:
    """Otherwise it would stay marked as running, with nobody at it who hears that it was cancelled."""
    second, store = cast("Run", Named("r", 2)), Store(away=1)
    store.answers = {"begin_again": second}
    executed, begun = list[Any](), asyncio.Event()

    async def execute(tenant: str, run: Any) -> None:
        executed.append(run)
        begun.set()
        if len(executed) == 1:
            raise Unavailable("gone fishing")

    carrying = asyncio.create_task(attempts(store, execute).execute("default", cast("Run", Named("r", 1))))
    await begun.wait()
    carrying.cancel()
    await asyncio.wait([carrying], timeout=90)
    assert executed[1:] == [second]


async def test_a_run_that_the_database_cut_off_is_handed_back_when_the_process_stops() -> None:
    store = Store(away=0)
    carriers = attempts(store, _unavailable)
    carriers.stop()
    await carriers.execute("default", cast("Run", Named("r", 1)))
    assert store.written == ["hand_back"]


async def test_error_is_lasting_unless_process_store_or_turn_caused_it() -> None:
    assert all(is_lasting(error()) for error in ERRORS.values())
    for error in (Unavailable(), Fenced(), SystemExit(), KeyboardInterrupt(), GeneratorExit()):
        assert not is_lasting(error)


async def test_cancellation_is_lasting_only_without_a_cancel_request() -> None:
    seen: list[bool] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            seen.append(is_lasting(error))
            raise

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert seen == [False]
    assert is_lasting(asyncio.CancelledError())


@pytest.mark.parametrize("kind", ERRORS)
def test_any_error_is_shown_with_name_and_message(kind: str) -> None:
    error = ERRORS[kind]()
    shown = SHOWN.of_run(error, "run")
    assert shown["error"] == type(error).__name__
    assert shown["message"].encode()


def test_error_without_a_text_is_shown_as_such() -> None:
    assert SHOWN.of_run(ERRORS["mute"](), "run")["message"] == "the error has no text: its __str__ raised RuntimeError"


@dataclass(frozen=True)
class Named:
    """As much of a run as is looked at."""

    id: str
    attempt: int


async def _never(tenant: str, run: Any) -> None:
    raise AssertionError("nothing is to be executed")


async def _unavailable(tenant: str, run: Any) -> None:
    raise Unavailable("gone fishing")
