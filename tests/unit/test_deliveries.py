"""When a delivery is tried again, and when no more."""

from datetime import timedelta

import pytest

from assent.domain.deliveries import DELAYS, JITTER, LONGEST_WISH, Failure, delay_after

OOPS = Failure("the receiver answered 500")


def test_the_pauses_grow_from_a_second_to_half_a_day() -> None:
    pauses = [delay_after(attempt, OOPS, dice=0) for attempt in range(1, len(DELAYS) + 2)]
    assert pauses[0] == timedelta(seconds=1)
    assert pauses[-2:] == [timedelta(hours=12), None]
    grown = [pause for pause in pauses if pause is not None]
    assert grown == sorted(grown)
    assert timedelta(hours=20) < sum(grown, timedelta()) < timedelta(hours=30)


@pytest.mark.parametrize("dice", [0.0, 0.3, 0.999])
def test_those_that_failed_together_do_not_come_back_together(dice: float) -> None:
    pause = delay_after(5, OOPS, dice=dice)
    assert pause == DELAYS[4] * (1 + JITTER * dice)


def test_what_cannot_help_is_not_tried_again() -> None:
    assert delay_after(1, Failure("gone", final=True), dice=0) is None


def test_a_receiver_may_ask_for_more_time_but_not_for_ever() -> None:
    assert delay_after(1, Failure("busy", wait=timedelta(seconds=40)), dice=0) == timedelta(seconds=40)
    assert delay_after(1, Failure("busy", wait=timedelta(days=400)), dice=0) == LONGEST_WISH
    assert delay_after(4, Failure("busy", wait=timedelta(seconds=1)), dice=0) == DELAYS[3], "and never for less"
