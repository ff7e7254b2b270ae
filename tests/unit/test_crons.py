"""Schedules, their time zones, and due times that nobody was there for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.errors import Invalid
from assent.threads.model.crons import MOST_COUNTED, CatchUp, Completion, Cron, next_after, require_schedule, turn
from assent.threads.model.threads import Visibility

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
EVERY_MINUTE = "* * * * *"


def cron(schedule: str = EVERY_MINUTE, **facts: Any) -> Cron:
    made = Cron(
        id="c",
        assistant_id="a",
        thread_id=None,
        owner="agent:a",
        visibility=Visibility.PRIVATE,
        mandate={},
        schedule=schedule,
        timezone=None,
        end_time=None,
        enabled=True,
        on_run_completed=Completion.DELETE,
        payload={},
        metadata={},
        next_run_at=None,
        created_at=NOON,
        updated_at=NOON,
    )
    made = replace(made, **facts)
    return made if "next_run_at" in facts else replace(made, next_run_at=made.following(NOON))


@pytest.mark.parametrize("schedule", [EVERY_MINUTE, "*/5 9-17 * * mon-fri", "@daily", "0 0 29 2 *", "* * * * * 30"])
def test_valid_schedules_are_accepted(schedule: str) -> None:
    require_schedule(schedule, None, NOON)


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "x",
        "* * * *",
        "60 * * * *",
        "* 24 * * *",
        "*/0 * * * *",
        "@reboot",
        "0 0 30 2 *",
        "R * * * *",
        "h * * * *",
        "* " * 200,
    ],
)
def test_schedules_that_are_wrong_random_or_never_due_are_refused(schedule: str) -> None:
    with pytest.raises(Invalid, match="Invalid cron schedule"):
        require_schedule(schedule, None, NOON)


@pytest.mark.parametrize("timezone", ["Mars/Olympus", "", "../etc/passwd", "/etc/localtime", "a\0b"])
def test_unknown_time_zones_are_refused(timezone: str) -> None:
    with pytest.raises(Invalid, match="Invalid timezone"):
        require_schedule(EVERY_MINUTE, timezone, NOON)


def due_in(timezone: str, schedule: str, start: datetime, number: int) -> list[str]:
    moments, moment = [], start
    for _ in range(number):
        following = next_after(schedule, timezone, moment, None)
        assert following is not None
        moment = following
        moments.append(moment.isoformat())
    return moments


def test_schedule_is_read_in_its_time_zone() -> None:
    assert due_in("America/New_York", "0 9 * * *", NOON, 1) == ["2026-11-18T14:00:00+00:00"]
    assert due_in("Asia/Kolkata", "0 9 * * *", NOON, 1) == ["2026-11-19T03:30:00+00:00"]


def test_time_that_the_clock_skips_is_due_after_the_change() -> None:
    eve = datetime(2026, 3, 7, 12, tzinfo=UTC)
    assert due_in("America/New_York", "30 2 * * *", eve, 2) == [
        "2026-03-08T07:00:00+00:00",
        "2026-03-09T06:30:00+00:00",
    ]


def test_time_that_occurs_twice_is_due_twice() -> None:
    night = datetime(2026, 11, 1, 3, tzinfo=UTC)
    assert due_in("America/New_York", "30 1 * * *", night, 2) == [
        "2026-11-01T05:30:00+00:00",
        "2026-11-01T06:30:00+00:00",
    ]


def test_no_due_time_is_after_the_end() -> None:
    assert cron(end_time=NOON + timedelta(seconds=59)).next_run_at is None
    ending = cron(end_time=NOON + timedelta(minutes=2))
    assert ending.next_run_at == NOON + timedelta(minutes=1)
    late = turn(ending, NOON + timedelta(hours=1), CatchUp.LATEST)
    assert (late.due, late.missed, late.following) == (NOON + timedelta(minutes=2), 1, None)


@pytest.mark.parametrize("catch_up", CatchUp)
def test_cron_in_time_misses_nothing(catch_up: CatchUp) -> None:
    on_time = turn(cron(), NOON + timedelta(minutes=1, seconds=3), catch_up)
    assert (on_time.due, on_time.missed) == (NOON + timedelta(minutes=1), 0)
    assert on_time.following == NOON + timedelta(minutes=2)


def test_after_downtime_the_latest_due_time_fires_and_the_others_are_missed() -> None:
    late = turn(cron(), NOON + timedelta(minutes=5, seconds=30), CatchUp.LATEST)
    assert (late.due, late.missed) == (NOON + timedelta(minutes=5), 4)
    hourly = turn(cron("0 * * * *"), NOON + timedelta(hours=3, minutes=30), CatchUp.LATEST)
    assert (hourly.due, hourly.missed) == (NOON + timedelta(hours=3), 2)


def test_skipping_fires_nothing_that_is_late() -> None:
    late = turn(cron("0 * * * *"), NOON + timedelta(hours=3, minutes=30), CatchUp.SKIP)
    assert (late.due, late.missed, late.following) == (None, 3, NOON + timedelta(hours=4))
    punctual = turn(cron("0 * * * *"), NOON + timedelta(hours=3, seconds=30), CatchUp.SKIP)
    assert (punctual.due, punctual.missed) == (NOON + timedelta(hours=3), 2)


def test_missed_due_times_are_counted_up_to_a_limit() -> None:
    late = turn(cron(), NOON + timedelta(days=400), CatchUp.LATEST)
    assert (late.due, late.missed) == (NOON + timedelta(days=400), MOST_COUNTED)


@given(
    schedule=st.sampled_from(
        [EVERY_MINUTE, "*/7 * * * *", "30 1 * * *", "0 */3 * * *", "15 2 * * sun", "* * * * * */20"]
    ),
    timezone=st.sampled_from([None, "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"]),
    waits=st.lists(st.integers(1, 20 * 3600), min_size=1, max_size=20),
    start=st.integers(0, 365 * 86400).map(lambda seconds: NOON + timedelta(seconds=seconds)),
)
def test_every_due_time_is_fired_or_missed_once(
    schedule: str, timezone: str | None, waits: list[int], start: datetime
) -> None:
    """Whenever somebody looks: the due times add up, and go on in order."""
    now = start
    watched = cron(schedule, timezone=timezone, next_run_at=next_after(schedule, timezone, now, None))
    all_due, handled = watched.next_run_at, 0
    for wait in waits:
        now += timedelta(seconds=wait)
        if not watched.is_due(now):
            continue
        current = turn(watched, now, CatchUp.LATEST)
        assert current.due is not None
        assert current.following is not None
        assert watched.next_run_at is not None
        assert watched.next_run_at <= current.due <= now < current.following
        if current.missed == MOST_COUNTED:
            return
        handled += current.missed + 1
        watched = replace(watched, next_run_at=current.following)
    expected = 0
    while all_due is not None and watched.next_run_at is not None and all_due < watched.next_run_at:
        expected += 1
        all_due = next_after(schedule, timezone, all_due, None)
    assert handled == expected
