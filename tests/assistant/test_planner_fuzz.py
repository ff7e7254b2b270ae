"""The planner answers any text, and every time that it proposes is exact and in the future."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from assent.assistant.planner.routing import route
from tests.assistant.planner_talk import BERLIN, Talk, at, event

WORDS = st.sampled_from(
    """schedule create move rename extend push find what's on my calendar show the a meeting standup lunch called to at
    from until for in by tomorrow today tonight monday friday next this week on 3rd 31st feb 30 dec 4 2026-12-04
    9999-12-31 4/12 3 3pm 12 12am noon midnight 9:30 15h half past nine hour hours minutes 99 9999 days weeks and , . :
    ; ? ' " “ ”
    ( ) é 日本 every not don't or between am pm morning with Bob Café Luna it that there events 2 call directions near
    station book room people 1h30 - –""".split()  # noqa: SIM905 - a list of them would be four screens long
)
SENTENCES = st.lists(WORDS, max_size=16).map(" ".join)
NOWS = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).flatmap(  # noqa: DTZ001 - the zone is added below
    lambda naive: st.sampled_from([BERLIN, UTC, ZoneInfo("Pacific/Apia"), ZoneInfo("America/St_Johns")]).map(
        lambda zone: naive.replace(tzinfo=zone)
    )
)
LAX = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])


def _checked(message: AIMessage, now: datetime) -> AIMessage:
    assert message.content or message.tool_calls
    for call in message.tool_calls:
        _check(call["args"], now)
    return message


def _check(args: dict[str, Any], now: datetime) -> None:
    if "start" in args:
        start = datetime.fromisoformat(args["start"])
        assert start.utcoffset() is not None
        assert now < start < now + timedelta(days=5 * 366 + 1)
    if "start_time" in args:
        assert datetime.fromisoformat(args["start_time"]).utcoffset() is not None
    assert args.get("duration_minutes", 1) > 0
    assert args.get("name", "x").strip()


def _talk(now: datetime) -> Talk:
    return Talk(events=[event("Standup", at(17, 9)), event("Lunch with Bob", at(18, 12), 60)], now=now)


@LAX
@given(SENTENCES | st.text(max_size=200), SENTENCES | st.text(max_size=80), NOWS)
@example("schedule x in 9999 weeks", "in 9999 weeks", datetime(2034, 12, 31, 23, 59, tzinfo=BERLIN))
@example("schedule x on 9999-12-31T23:59-12:00", "0001-01-01T00:00+14:00", datetime(2026, 1, 1, tzinfo=BERLIN))
@example("schedule x on March 28 2027 at 02:30", "at 3am", datetime(2027, 3, 27, 12, tzinfo=BERLIN))
def test_any_text_is_planned_without_errors_or_past_times(sentence: str, answer: str, now: datetime) -> None:
    talk = _talk(now)
    message = _checked(talk.say(sentence), now)
    for _ in range(3):
        if not message.tool_calls:
            break
        asked = {call["name"] == "request_clarification" for call in message.tool_calls}
        if asked == {True}:
            message = _checked(talk.answer(answer), now)
        elif asked == {False}:
            message = _checked(talk.approve(*[answer] * len(message.tool_calls)), now)
        else:
            talk.answer(answer)
            message = _checked(talk.approve(), now)


@LAX
@given(SENTENCES | st.text(max_size=200), NOWS)
def test_any_text_is_routed_without_an_error(sentence: str, now: datetime) -> None:
    assert route(sentence, lambda: now) <= {"calendar", "maps"}


@LAX
@given(st.text(max_size=300))
def test_any_tool_result_is_reported(result: str) -> None:
    talk = _talk(at(16, 10))
    for call in talk.say("schedule Review tomorrow at 3pm").tool_calls:
        talk._result(call, result)
    _checked(talk.think(), talk.now)
