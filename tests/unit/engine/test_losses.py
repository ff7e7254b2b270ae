"""Which store call of an attempt is raised at its end, and what an attempt that is cut off may still store."""

from __future__ import annotations

import asyncio

import pytest

from assent.errors import Invalid, StoreBusy, Unavailable
from assent.runs import losses
from assent.threads.rows.state.checkpoints import Fenced

BUSY = StoreBusy()
REFUSED = Invalid("text cannot contain the character NUL")


@pytest.mark.parametrize(
    ("lost", "error", "raised"),
    [
        ([], None, None),
        ([], ValueError(), None),
        ([REFUSED], None, REFUSED),
        ([REFUSED], ValueError(), None),
        ([REFUSED, BUSY], None, BUSY),
        ([BUSY], ValueError(), BUSY),
        ([BUSY], asyncio.CancelledError(), None),
    ],
)
def test_database_outage_is_raised_before_errors_that_may_follow_from_it(
    lost: list[Exception], error: BaseException | None, raised: Exception | None
) -> None:
    assert losses.raised_for(lost, error) is raised


@pytest.mark.parametrize("error", [Unavailable(), BUSY, Fenced(), asyncio.CancelledError()])
def test_transient_error_counts_as_a_cut_off_attempt(error: BaseException) -> None:
    assert losses.is_cut_off(error)


@pytest.mark.parametrize("error", [ValueError(), TimeoutError(), REFUSED, "text"])
def test_other_errors_do_not_count_as_a_cut_off_attempt(error: object) -> None:
    assert not losses.is_cut_off(error)


async def test_after_a_loss_nothing_more_is_stored_by_any_task_of_the_attempt() -> None:
    async def loses() -> None:
        with pytest.raises(StoreBusy), losses.noted():
            raise BUSY

    lost = losses.watch()
    losses.require_none()
    await asyncio.create_task(loses())
    assert lost == [BUSY]
    with pytest.raises(Unavailable, match="aborted"):
        losses.require_none()
    losses.watch()
    losses.require_none()


def test_later_store_calls_continue_after_a_lasting_error() -> None:
    losses.watch()
    losses.note(REFUSED)
    losses.require_none()
