"""The five flows of the reference assistant, and what follows a person's decision."""

from __future__ import annotations

from datetime import timedelta

import pytest
from langchain_core.messages import AIMessage

from tests.assistant.planner_talk import NOW, Talk, at, event, names, question


def test_flow_1_a_vague_request_is_asked_about() -> None:
    talk = Talk()
    asked = talk.say("schedule something")
    assert names(asked) == ["request_clarification"]
    assert "what" in question(asked).lower()
    proposed = talk.answer("a meeting tomorrow at 3pm")
    assert names(proposed) == ["create_event"]
    assert proposed.tool_calls[0]["args"] == {"start": "2026-11-17T15:00:00+01:00", "name": "Meeting"}
    assert talk.approve().content == "Done: Meeting, tomorrow 15:00–15:30."


def test_flow_2_a_clear_request_is_proposed_at_once() -> None:
    talk = Talk()
    proposed = talk.say("create a meeting called Standup tomorrow at 9am")
    assert proposed.tool_calls[0]["args"] == {"start": "2026-11-17T09:00:00+01:00", "name": "Standup"}
    assert talk.approve().content == "Done: Standup, tomorrow 9:00–9:30."


def test_flow_3_a_correction_becomes_a_new_proposal() -> None:
    talk = Talk()
    first = talk.say("create an event called Dentist tomorrow at 9am")
    second = talk.approve("Wrong time, should be 10am")
    assert second.tool_calls[0]["args"] == {"start": "2026-11-17T10:00:00+01:00", "name": "Dentist"}
    assert second.tool_calls[0]["id"] != first.tool_calls[0]["id"]
    assert talk.approve().content == "Done: Dentist, tomorrow 10:00–10:30."
    assert len(talk.executed) == 1


def test_flow_4_a_rejected_event_of_two_is_not_proposed_again() -> None:
    talk = Talk()
    proposed = talk.say("create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    assert names(proposed) == ["create_event", "create_event"]
    assert [call["args"]["name"] for call in proposed.tool_calls] == ["Team Meeting", "Lunch with Bob"]
    final = talk.approve(None, "I do not want lunch")
    assert not final.tool_calls
    assert final.content == (
        "Done: Team Meeting, tomorrow 10:00–10:30. "
        "Not done, because it was rejected: “I do not want lunch”: Lunch with Bob, tomorrow 12:00."
    )
    assert [call["name"] for call in talk.events] == ["Team Meeting"]


def test_flow_5_a_question_and_a_change_in_one_message() -> None:
    talk = Talk(events=[event("Review", at(17, 15))])
    mixed = talk.say("schedule something for me, and move the meeting at 3pm to 4pm")
    assert names(mixed) == ["request_clarification", "update_event"]
    deferred = talk.answer("a meeting tomorrow at 5pm called Sync")
    assert names(deferred) == ["update_event"]
    assert deferred.tool_calls[0]["args"] == {
        "calendar_id": "primary",
        "event_id": "id-review",
        "start": "2026-11-17T16:00:00+01:00",
    }
    created = talk.approve()
    assert names(created) == ["create_event"]
    assert created.tool_calls[0]["args"] == {"start": "2026-11-17T17:00:00+01:00", "name": "Sync"}
    assert talk.approve().content == "Done: Sync, tomorrow 17:00–17:30. Changed: Review, tomorrow 16:00–16:30."
    assert [name for name, _ in talk.executed] == ["list_events", "update_event", "create_event"]


def test_tomorrow_keeps_its_meaning_when_the_answer_comes_days_later() -> None:
    talk = Talk()
    talk.say("create an event called Dentist in 4 days")
    talk.now = NOW + timedelta(days=2)
    assert talk.answer("at 9am").tool_calls[0]["args"]["start"] == "2026-11-20T09:00:00+01:00"


def test_time_that_passed_while_waiting_is_asked_about() -> None:
    talk = Talk()
    talk.say("create an event called Dentist tomorrow")
    talk.now = NOW + timedelta(days=3)
    assert "has passed" in question(talk.answer("at 9am"))


@pytest.mark.parametrize(
    ("feedback", "changed"),
    [
        ("10am", {"start": "2026-11-17T10:00:00+01:00"}),
        ("Make it 10:30 am please", {"start": "2026-11-17T10:30:00+01:00"}),
        ("should be on Friday", {"start": "2026-11-20T09:00:00+01:00"}),
        ("not 9am but 11am", {"start": "2026-11-17T11:00:00+01:00"}),
        ("11am instead of 9am", {"start": "2026-11-17T11:00:00+01:00"}),
        ("I meant the day after tomorrow at noon", {"start": "2026-11-18T12:00:00+01:00"}),
        ("should be called Dr. Who, at 10am", {"name": "Dr. Who", "start": "2026-11-17T10:00:00+01:00"}),
        ("call it 'Dr. Who'", {"name": "Dr. Who"}),
        ("should last an hour", {"duration_minutes": 60}),
        ("wrong place, should be at Café Luna", {"location": "Café Luna"}),
    ],
)
def test_correction_changes_the_proposal(feedback: str, changed: dict[str, object]) -> None:
    talk = Talk()
    first = talk.say("create an event called Dentist tomorrow at 9am").tool_calls[0]["args"]
    again = talk.approve(feedback)
    assert names(again) == ["create_event"]
    assert again.tool_calls[0]["args"] == first | changed


@pytest.mark.parametrize(
    "feedback",
    [
        "no",
        "Not needed any more",
        "I changed my mind about this",
        "cancel it",
        "busy at 9am",
        "I have lunch at 1pm with Eve",
    ],
)
def test_rejection_without_feedback_ends_the_request(feedback: str) -> None:
    talk = Talk()
    talk.say("create an event called Dentist tomorrow at 9am")
    final = talk.approve(feedback)
    assert not final.tool_calls
    assert "rejected" in final.content
    assert feedback in final.content
    assert not talk.events


@pytest.mark.parametrize("feedback", ["Wrong time", "should be another day", "too early", "should be 10"])
def test_a_correction_that_leaves_it_open_is_asked_about(feedback: str) -> None:
    talk = Talk()
    talk.say("create an event called Dentist tomorrow at 9am")
    assert names(talk.approve(feedback)) == ["request_clarification"]
    assert talk.answer("10am").tool_calls[0]["args"]["start"] == "2026-11-17T10:00:00+01:00"


def test_plain_feedback_text_is_understood() -> None:
    """Some graphs hand a person's words on as they are."""
    talk = Talk()
    proposed = talk.say("create an event called Dentist tomorrow at 9am")
    talk._result(proposed.tool_calls[0], "Wrong time, should be 10am")
    assert talk.think().tool_calls[0]["args"]["start"] == "2026-11-17T10:00:00+01:00"


def test_a_change_that_was_rejected_is_corrected() -> None:
    talk = Talk(events=[event("Review", at(17, 15))])
    talk.say("move the review to 4pm")
    again = talk.approve("should be 5pm")
    assert again.tool_calls[0]["args"]["start"] == "2026-11-17T17:00:00+01:00"
    assert talk.approve().content == "Changed: Review, tomorrow 17:00–17:30."


def test_second_correction_can_restore_the_first_proposal() -> None:
    talk = Talk()
    talk.say("create an event called Dentist tomorrow at 9am")
    talk.approve("should be 10am")
    again = talk.approve("no, it should be 9am")
    assert again.tool_calls[0]["args"]["start"] == "2026-11-17T09:00:00+01:00"
    assert talk.approve().content == "Done: Dentist, tomorrow 9:00–9:30."


def test_never_mind_ends_it() -> None:
    talk = Talk()
    talk.say("schedule something")
    final = talk.answer("never mind")
    assert not final.tool_calls
    assert "left" in final.content


def test_repeated_unclear_answers_end_the_request() -> None:
    talk = Talk()
    message = talk.say("schedule something")
    for _ in range(10):
        if not message.tool_calls:
            break
        message = talk.answer("hmm …?")
    assert "did nothing" in message.content


def test_answer_with_half_of_the_day_is_accepted() -> None:
    talk = Talk()
    assert "3:00 am or 3:00 pm" in question(talk.say("schedule Dentist tomorrow at 3"))
    assert talk.answer("in the afternoon").tool_calls[0]["args"]["start"] == "2026-11-17T15:00:00+01:00"


def test_ambiguous_event_is_asked_about() -> None:
    talk = Talk(events=[event("Standup", at(17, 9)), event("Standup", at(18, 9)) | {"event_id": "second"}])
    assert "Standup, tomorrow 9:00–9:30" in question(talk.say("rename the standup to Daily"))
    change = talk.answer("the one on Wednesday")
    assert change.tool_calls[0]["args"] == {"calendar_id": "primary", "event_id": "second", "name": "Daily"}


def test_missing_event_is_asked_about() -> None:
    talk = Talk(events=[event("Review", at(17, 15))])
    assert "no event" in question(talk.say("move the standup to 4pm"))
    assert talk.answer("the review").tool_calls[0]["args"]["event_id"] == "id-review"


def test_pronoun_refers_to_the_last_event_of_the_thread() -> None:
    talk = Talk()
    talk.say("schedule Review tomorrow at 3pm")
    talk.approve()
    moved = talk.say("move it to 4pm")
    assert moved.tool_calls[0]["args"] == {
        "calendar_id": "primary",
        "event_id": "id-review",
        "start": "2026-11-17T16:00:00+01:00",
    }


def test_a_named_calendar_is_looked_up() -> None:
    talk = Talk()
    proposed = talk.say("schedule Review tomorrow at 3pm in my Work calendar")
    assert proposed.tool_calls[0]["args"]["calendar_id"] == "work-1"


def test_an_unknown_calendar_is_asked_about() -> None:
    talk = Talk()
    assert "Calendar, Work" in question(talk.say("schedule Review tomorrow at 3pm in my Sports calendar"))
    assert talk.answer("Work then").tool_calls[0]["args"]["calendar_id"] == "work-1"


def test_the_direction_that_is_missing_is_asked_for() -> None:
    talk = Talk()
    assert question(talk.say("directions to the harbour")) == "From where?"
    assert "station to harbour" in str(talk.answer("the station").content).lower()


@pytest.mark.parametrize(
    ("sentence", "problem", "args"),
    [
        ("find a cafe near the station", "near: 'station' may be A or B", {"query": "cafe", "near": "Central Station"}),
        (
            "directions from the station to B",
            "Error: origin: 'station' may be A or B",
            {"origin": "Central Station", "destination": "B"},
        ),
        (
            "directions from A to the station",
            "destination: 'station' may be A or B",
            {"origin": "A", "destination": "Central Station"},
        ),
    ],
)
def test_a_place_that_is_not_clear_to_the_map_is_asked_about(sentence: str, problem: str, args: dict[str, str]) -> None:
    talk = Talk(fail=lambda name: problem)
    assert question(talk.say(sentence)) == "'station' may be A or B. Which place do you mean?"
    talk.fail = lambda name: None
    assert not talk.answer("Central Station").tool_calls
    assert talk.executed[0][1] == args


def test_errors_are_reported() -> None:
    talk = Talk(fail=lambda name: "start: every room is taken" if name == "create_event" else None)
    talk.say("schedule Review tomorrow at 3pm")
    final = talk.approve()
    assert not final.tool_calls
    assert "did not work" in final.content
    assert "every room is taken" in final.content


def test_login_is_reported() -> None:
    talk = Talk(fail=lambda name: "Please sign in: http://127.0.0.1:8003/auth/connect/1")
    final = talk.say("what's on my calendar tomorrow?")
    assert "sign in first: http://127.0.0.1:8003/auth/connect/1" in final.content


def test_declined_form_is_reported() -> None:
    talk = Talk(fail=lambda name: "no room was booked: the person said decline")
    talk.say("book a room tomorrow at 3pm")
    assert "no room was booked" in str(talk.approve().content)


def test_without_a_tool_to_ask_with_the_question_is_the_answer() -> None:
    talk = Talk()
    talk.tools = [tool for tool in talk.tools if tool["function"]["name"] != "request_clarification"]
    asked = talk.say("schedule something")
    assert not asked.tool_calls
    assert "What should I schedule" in asked.content
    assert talk.say("a meeting tomorrow at 3pm").tool_calls[0]["args"]["name"] == "Meeting"


def test_an_edited_call_that_was_carried_out_is_not_proposed_again() -> None:
    """The graph makes the approved call anew, with other arguments than were proposed."""
    talk = Talk()
    call = talk.say("schedule Review tomorrow at 3pm").tool_calls[0]
    talk._result(call, "Approved with changes.")
    edited = {**call, "id": "edited", "args": call["args"] | {"name": "Big review"}}
    talk.messages.append(AIMessage(content="", tool_calls=[edited]))
    talk._run([edited])
    final = talk.think()
    assert not final.tool_calls
    assert final.content == "Done: Big review, tomorrow 15:00–15:30."


def test_results_are_reported() -> None:
    talk = Talk(events=[event("Standup", at(17, 9)), event("Lunch", at(17, 12), 60, "Café Luna")])
    assert talk.say("what's on my calendar tomorrow?").content == (
        "2 events tomorrow: Standup, tomorrow 9:00–9:30; Lunch, tomorrow 12:00–13:00, Café Luna."
    )
    assert talk.say("what's on my calendar on Friday?").content == ("Nothing is in the calendar on Friday 20 November.")
    assert talk.say("am I free tomorrow at 3pm?").content == "Nothing is in the calendar tomorrow 15:00–15:30."
    assert "Lunch" in str(talk.say("am I free tomorrow at noon?").content)
    assert talk.say("am I busy tomorrow evening?").content == "Nothing is in the calendar tomorrow evening."
    assert "Standup" in str(talk.say("am I busy tomorrow morning?").content)
    assert talk.say("when is the standup?").content == (
        "1 event from today to Sunday 29 November: Standup, tomorrow 9:00–9:30."
    )
    assert talk.say("find a café near the station").content == "I found 1: Lantern Cafe (7 Market Square, 120 m away)."
    assert talk.say("which calendars do I have?").content == "Your calendars: Calendar, Work."
