"""The grammar of days and times, each rule of `dates` with an example; the rest is in the tables of the planner."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest

from assent.assistant.planner.dates import clocks, dates, lengths, reading
from assent.assistant.planner.dates.zone import MachineZone, exists, machine_now

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 18, 10, 0, tzinfo=BERLIN)
"""A Wednesday."""


def start(text: str, now: datetime = NOW) -> str | None:
    moment, _ = dates.start_of(reading.read(text, now)[0], now)
    return moment.isoformat() if moment else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Friday at noon", "2026-11-20T12:00:00+01:00"),
        ("this Friday at noon", "2026-11-20T12:00:00+01:00"),
        ("next Friday at noon", "2026-11-27T12:00:00+01:00"),
        ("Monday at noon", "2026-11-23T12:00:00+01:00"),
        ("this Monday at noon", None),
        ("next Monday at noon", "2026-11-23T12:00:00+01:00"),
        ("next week on Monday at noon", "2026-11-23T12:00:00+01:00"),
        ("Wednesday at noon", None),
        ("next Wednesday at noon", "2026-11-25T12:00:00+01:00"),
        ("Fri 12pm", "2026-11-20T12:00:00+01:00"),
        ("the 18th at noon", "2026-11-18T12:00:00+01:00"),
        ("the 17th at noon", "2026-12-17T12:00:00+01:00"),
        ("Nov 17 at noon", None),
        ("May 17 at noon", "2027-05-17T12:00:00+02:00"),
        ("29 February at noon", None),
        ("29 February 2028 at noon", "2028-02-29T12:00:00+01:00"),
    ],
)
def test_day_in_a_sentence_is_parsed(text: str, expected: str | None) -> None:
    assert start(text) == expected


def test_date_beside_todays_weekday_is_not_ambiguous() -> None:
    monday = datetime(2026, 11, 16, 10, 0, tzinfo=BERLIN)
    assert start("Monday 23 November at noon", monday) == "2026-11-23T12:00:00+01:00"
    assert start("Monday at noon", monday) is None


def test_rest_of_the_text_is_returned() -> None:
    when, rest = reading.read("Lunch with May on May 5 at noon", NOW)
    assert when.day == date(2027, 5, 5)
    assert rest.split(dates.GAP)[0].strip() == "Lunch with May"


def test_summer_time_changes_the_offset() -> None:
    assert start("July 1 at noon") == "2027-07-01T12:00:00+02:00"


def test_an_hour_that_the_clocks_skip_is_asked_about() -> None:
    _, question = dates.start_of(reading.read("2027-03-28 02:30", NOW)[0], NOW)
    assert question is not None
    assert "skip" in question


def test_in_two_hours_is_two_hours_across_a_change_of_the_clocks() -> None:
    eve = datetime(2027, 3, 28, 1, 0, tzinfo=BERLIN)
    assert start("in two hours", eve) == "2027-03-28T04:00:00+02:00"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("45 minutes", 45),
        ("an hour and a half", 90),
        ("one and a half hours", 90),
        ("1h30", 90),
        ("1.5 hours", 90),
        ("2 hours 15 minutes", 135),
        ("half an hour", 30),
        ("three quarters of an hour", 45),
        ("two weeks", 20160),
    ],
)
def test_duration_in_words_is_parsed(text: str, expected: int) -> None:
    assert lengths.minutes(text) == expected


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("3", "4:30pm", (time(15), None, 90)),
        ("11", "1pm", (time(11), None, 120)),
        ("11pm", "1am", (time(23), None, 120)),
        ("3", "4", (None, (3, 0), 60)),
        ("9am", "11", (time(9), None, 120)),
        ("11am", "1", (time(11), None, 120)),
        ("13:00", "14:30", (time(13), None, 90)),
        ("5pm", "3pm", "ends first"),
        ("3pm", "25", "no such time"),
    ],
)
def test_start_and_end_times_give_a_span(first: str, last: str, expected: object) -> None:
    assert clocks.span(first, last) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("half past nine", (None, (9, 30))),
        ("quarter to 5 pm", (time(16, 45), None)),
        ("quarter to twelve pm", (time(11, 45), None)),
        ("ten past one am", (time(1, 10), None)),
        ("quarter to one", (None, (12, 45))),
        ("at nine thirty am", (time(9, 30), None)),
    ],
)
def test_time_in_words_is_parsed(text: str, expected: object) -> None:
    assert clocks.worded(text) == expected


def test_the_machine_zone_knows_the_offset_of_each_date() -> None:
    moment = machine_now()
    assert moment.utcoffset() is not None
    assert abs((moment.astimezone(UTC) - datetime.now(UTC)).total_seconds()) < 60
    assert exists(datetime(2027, 7, 1, 12, tzinfo=MachineZone()))
