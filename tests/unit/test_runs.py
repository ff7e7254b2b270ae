"""The rules for joining a thread and for the next run, without a database."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.errors import ThreadBusy, ThreadWaits
from assent.threads.model.runs import Cancel, Outcome, Run, RunStatus, Strategy, admit, either, next_in_line

NOW = datetime(2026, 11, 15, tzinfo=UTC)
QUESTION: dict[str, Any] = {"id": "q", "value": "?"}


def run(position: int = 1, *, status: RunStatus = RunStatus.PENDING, answers: bool = False) -> Run:
    return Run(
        id=f"run-{position}",
        thread_id="t",
        assistant_id="a",
        graph_id="g",
        status=status,
        position=position,
        attempt=0,
        actor="agent:a",
        answers=answers,
        wake_at=None,
        cancel=None,
        temporary=False,
        multitask_strategy=Strategy.REJECT,
        metadata={},
        kwargs={},
        error=None,
        webhook=None,
        created_at=NOW,
        updated_at=NOW,
        started_at=None,
        ended_at=None,
    )


@pytest.mark.parametrize("strategy", Strategy)
def test_an_empty_thread_takes_any_run(strategy: Strategy) -> None:
    assert admit(strategy, active=[], pending=[], answers=False).supersedes == ()


def test_reject_refuses_beside_another_run() -> None:
    with pytest.raises(ThreadBusy):
        admit(Strategy.REJECT, active=[run(status=RunStatus.RUNNING)], pending=[], answers=False)


def test_reject_refuses_while_an_item_is_pending_and_names_it() -> None:
    with pytest.raises(ThreadWaits) as refused:
        admit(Strategy.REJECT, active=[], pending=[QUESTION], answers=False)
    assert refused.value.extra["pending"] == [QUESTION]


@pytest.mark.parametrize("strategy", [Strategy.INTERRUPT, Strategy.ROLLBACK])
def test_the_newer_run_replaces_all_that_are_there_and_drops_questions(strategy: Strategy) -> None:
    present = [run(1, status=RunStatus.RUNNING), run(2)]
    admission = admit(strategy, active=present, pending=[QUESTION], answers=False)
    assert admission.supersedes == tuple(present)
    assert admission.by is Cancel(strategy.value)
    assert admission.drops_questions


@pytest.mark.parametrize("strategy", Strategy)
def test_an_answer_is_exempt_from_every_strategy(strategy: Strategy) -> None:
    admission = admit(strategy, active=[run(2)], pending=[QUESTION], answers=True)
    assert admission.supersedes == ()
    assert not admission.drops_questions


def test_waiting_thread_takes_only_an_answer() -> None:
    queued, answer = run(1), run(2, answers=True)
    assert next_in_line([queued, answer], waits=True, now=NOW) == answer
    assert next_in_line([queued], waits=True, now=NOW) is None
    assert next_in_line([queued], waits=False, now=NOW) == queued


def test_a_delayed_run_is_passed_over_until_it_wakes() -> None:
    late = replace(run(1), wake_at=NOW + timedelta(seconds=1))
    assert next_in_line([late, run(2)], waits=False, now=NOW) == run(2)
    assert next_in_line([late, run(2)], waits=False, now=NOW + timedelta(seconds=1)) == late


@given(st.permutations(range(1, 8)))
def test_without_answers_the_order_is_that_of_arrival(positions: list[int]) -> None:
    first = next_in_line([run(position) for position in positions], waits=False, now=NOW)
    assert first is not None
    assert first.position == 1


def test_result_of_a_run_has_values_interrupts_or_the_error() -> None:
    values = {"text": "x"}
    assert Outcome(RunStatus.SUCCESS, values).result == values
    asked = Outcome(RunStatus.SUCCESS, values, {"task": [QUESTION]})
    assert asked.result == {"text": "x", "__interrupt__": [QUESTION]}
    failed = Outcome(RunStatus.ERROR, values, error={"error": "E", "message": "m"})
    assert failed.result == {"__error__": {"error": "E", "message": "m"}}


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (None, None, None),
        (None, ["a"], ["a"]),
        (["a"], [], ["a"]),
        (["a"], ["b", "a"], ["a", "b"]),
        ("*", ["a"], ["*", "a"]),
        ("*", "*", "*"),
    ],
)
def test_breakpoints_of_both_sources_are_combined(one: Any, other: Any, both: Any) -> None:
    assert either(one, other) == both
