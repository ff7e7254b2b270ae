"""When a delivery is tried again, and when no more."""

from datetime import timedelta

import pytest

from assent.outbox.model import DELAYS, JITTER, LONGEST_WISH, Failure, delay_after

OOPS = Failure("the receiver answered 500")


def test_retry_delays_grow_from_a_second_to_half_a_day() -> None:
    pauses = [delay_after(attempt, OOPS, dice=0) for attempt in range(1, len(DELAYS) + 2)]
    assert pauses[0] == timedelta(seconds=1)
    assert pauses[-2:] == [timedelta(hours=12), None]
    grown = [pause for pause in pauses if pause is not None]
    assert grown == sorted(grown)
    assert timedelta(hours=20) < sum(grown, timedelta()) < timedelta(hours=30)


@pytest.mark.parametrize("dice", [0.0, 0.3, 0.999])
def test_deliveries_that_failed_together_are_retried_at_different_times(dice: float) -> None:
    pause = delay_after(5, OOPS, dice=dice)
    assert pause == DELAYS[4] * (1 + JITTER * dice)


def test_permanent_failure_is_not_retried() -> None:
    assert delay_after(1, Failure("gone", final=True), dice=0) is None


def test_retry_after_of_a_receiver_is_honoured_up_to_a_limit() -> None:
    assert delay_after(1, Failure("busy", wait=timedelta(seconds=40)), dice=0) == timedelta(seconds=40)
    assert delay_after(1, Failure("busy", wait=timedelta(days=400)), dice=0) == LONGEST_WISH
    assert delay_after(4, Failure("busy", wait=timedelta(seconds=1)), dice=0) == DELAYS[3], "and never for less"


def test_waiting_is_not_a_failed_attempt() -> None:
    """However often it waited, neither does it give up, nor are the pauses those of failures."""
    busy = Failure("busy", wait=timedelta(seconds=2), attempted=False)
    assert {delay_after(attempt, busy, dice=0) for attempt in (1, 4, 1000)} == {timedelta(seconds=2)}
