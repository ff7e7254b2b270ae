"""The offline planner turns everyday sentences into calls, and asks instead of guessing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from tests.assistant.planner_talk import BERLIN, NOW, Talk, at, event, names, question

AFTERNOON = datetime(2026, 11, 16, 15, 30, tzinfo=BERLIN)
SUNDAY = datetime(2026, 11, 22, 8, 0, tzinfo=BERLIN)
WINTER = datetime(2026, 12, 30, 23, 30, tzinfo=BERLIN)
BEFORE_SUMMER_TIME = datetime(2026, 3, 27, 12, 0, tzinfo=BERLIN)

EVENTS = [
    event("Standup", at(17, 9)),
    event("Lunch with Bob", at(18, 12), 60),
    event("Design review", at(19, 15), 45),
    event("Dentist", at(20, 8)),
]


def made(start: str, name: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "create_event", {"start": start, "name": name, **more}


def changed(event_id: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "update_event", {"calendar_id": "primary", "event_id": event_id, **more}


def listed(day: str, days: int, calendar_id: str = "primary") -> tuple[str, dict[str, Any]]:
    return "list_events", {"start_time": f"{day}T00:00:00+01:00", "calendar_id": calendar_id, "duration_days": days}


TOMORROW, FRIDAY = "2026-11-17T", "2026-11-20T"

CREATED = [
    # times
    ("schedule Yoga tomorrow at half past nine in the morning", NOW, [made(f"{TOMORROW}09:30:00+01:00", "Yoga")]),
    ("schedule Yoga tomorrow at 9:30 am", NOW, [made(f"{TOMORROW}09:30:00+01:00", "Yoga")]),
    ("schedule Yoga tomorrow at 09:30", NOW, [made(f"{TOMORROW}09:30:00+01:00", "Yoga")]),
    ("schedule Yoga tomorrow at 12:15", NOW, [made(f"{TOMORROW}12:15:00+01:00", "Yoga")]),
    ("Schedule Yoga at noon", NOW, [made("2026-11-16T12:00:00+01:00", "Yoga")]),
    ("Schedule Yoga at noon", AFTERNOON, [made(f"{TOMORROW}12:00:00+01:00", "Yoga")]),
    ("schedule yoga today at 15h", NOW, [made("2026-11-16T15:00:00+01:00", "Yoga")]),
    ("schedule yoga today at 15h30", NOW, [made("2026-11-16T15:30:00+01:00", "Yoga")]),
    ("schedule yoga tomorrow, 3 pm", NOW, [made(f"{TOMORROW}15:00:00+01:00", "Yoga")]),
    ("schedule yoga tomorrow at 3 p.m. please", NOW, [made(f"{TOMORROW}15:00:00+01:00", "Yoga")]),
    ("remind me to call Ana in two hours", NOW, [made("2026-11-16T12:00:00+01:00", "Call Ana")]),
    ("remind me to stretch in half an hour", NOW, [made("2026-11-16T10:30:00+01:00", "Stretch")]),
    ("remind me to leave in an hour and a half", WINTER, [made("2026-12-31T01:00:00+01:00", "Leave")]),
    ("add Dinner tonight at 8", NOW, [made("2026-11-16T20:00:00+01:00", "Dinner")]),
    ("add a run tomorrow morning at 7", NOW, [made(f"{TOMORROW}07:00:00+01:00", "Run")]),
    ("add a run at quarter to seven pm tomorrow", NOW, [made(f"{TOMORROW}18:45:00+01:00", "Run")]),
    ("add a run tomorrow at seven thirty am", NOW, [made(f"{TOMORROW}07:30:00+01:00", "Run")]),
    ("add a run tomorrow at 7 o'clock in the evening", NOW, [made(f"{TOMORROW}19:00:00+01:00", "Run")]),
    *(
        (f"schedule Yoga tomorrow at {said}", NOW, [made(f"{TOMORROW}{clock}:00+01:00", "Yoga")])
        for said, clock in (
            *(("quarter past 5pm", "17:15"), ("a quarter past 5pm", "17:15"), ("half past 3pm", "15:30")),
            *(("twenty past 3pm", "15:20"), ("quarter to 5pm", "16:45"), ("five to 5pm", "16:55")),
        )
    ),
    # days
    ("create Sync next Tuesday at 10am", NOW, [made("2026-11-24T10:00:00+01:00", "Sync")]),
    ("create Sync next Tuesday at 10am", SUNDAY, [made("2026-11-24T10:00:00+01:00", "Sync")]),
    ("create Sync on Tuesday at 10am", NOW, [made(f"{TOMORROW}10:00:00+01:00", "Sync")]),
    ("create Sync this Friday at 10am", NOW, [made(f"{FRIDAY}10:00:00+01:00", "Sync")]),
    ("create Sync on Friday of next week at 10am", NOW, [made("2026-11-27T10:00:00+01:00", "Sync")]),
    ("create Sync on the 3rd at 10am", NOW, [made("2026-12-03T10:00:00+01:00", "Sync")]),
    ("create Sync on the 30th at 10am", NOW, [made("2026-11-30T10:00:00+01:00", "Sync")]),
    ("create Sync Dec 4 at 10am", NOW, [made("2026-12-04T10:00:00+01:00", "Sync")]),
    ("create Sync on the 4th of December 2027 at 10am", NOW, [made("2027-12-04T10:00:00+01:00", "Sync")]),
    ("create Sync on January 5th at 10am", NOW, [made("2027-01-05T10:00:00+01:00", "Sync")]),
    ("create Sync on 2026-12-04 at 10:00", NOW, [made("2026-12-04T10:00:00+01:00", "Sync")]),
    ("create Sync 2026-07-04T10:00:00Z", BEFORE_SUMMER_TIME, [made("2026-07-04T12:00:00+02:00", "Sync")]),
    ("create Sync on 25/12 at 10am", NOW, [made("2026-12-25T10:00:00+01:00", "Sync")]),
    ("create Sync on 4.12. at 10am", NOW, [made("2026-12-04T10:00:00+01:00", "Sync")]),
    ("create Sync the day after tomorrow at 10am", NOW, [made("2026-11-18T10:00:00+01:00", "Sync")]),
    ("create Sync in 3 days at 10am", NOW, [made("2026-11-19T10:00:00+01:00", "Sync")]),
    ("create Sync in two weeks at 10am", NOW, [made("2026-11-30T10:00:00+01:00", "Sync")]),
    ("create Sync on Friday, Dec 4 at 10am", NOW, [made("2026-12-04T10:00:00+01:00", "Sync")]),
    ("create Sync on Monday at 10am", BEFORE_SUMMER_TIME, [made("2026-03-30T10:00:00+02:00", "Sync")]),
    ("create Sync in a fortnight at 10am", NOW, [made("2026-11-30T10:00:00+01:00", "Sync")]),
    ("create Sync on Friday 20th at 10am", NOW, [made(f"{FRIDAY}10:00:00+01:00", "Sync")]),
    ("schedule the 2nd interview on Friday at 10am", NOW, [made(f"{FRIDAY}10:00:00+01:00", "2nd interview")]),
    (
        "please put a team lunch in my calendar for next Friday at 12:30",
        NOW,
        [made("2026-11-27T12:30:00+01:00", "Team lunch")],
    ),
    ("new event: Gym, 7pm, Tuesday", NOW, [made(f"{TOMORROW}19:00:00+01:00", "Gym")]),
    ("schedule a call w/ Bob tmrw 3pm", NOW, [made(f"{TOMORROW}15:00:00+01:00", "Call w/ Bob")]),
    ("remind me about the tax return on March 31st at 9am", NOW, [made("2027-03-31T09:00:00+02:00", "Tax return")]),
    ("schedule Dentist on wed at 9am", NOW, [made("2026-11-18T09:00:00+01:00", "Dentist")]),
    ("schedule a talk on AI tomorrow at noon", NOW, [made(f"{TOMORROW}12:00:00+01:00", "Talk on AI")]),
    ("schedule Dentist 9am sharp tomorrow", NOW, [made(f"{TOMORROW}09:00:00+01:00", "Dentist")]),
    # words that only look like days
    (
        "schedule lunch with Mandy and Marc at noon",
        NOW,
        [made("2026-11-16T12:00:00+01:00", "Lunch with Mandy and Marc")],
    ),
    ("schedule a call with Wendy Sandys at noon", NOW, [made("2026-11-16T12:00:00+01:00", "Call with Wendy Sandys")]),
    ("schedule a birthday party at noon", NOW, [made("2026-11-16T12:00:00+01:00", "Birthday party")]),
    ('schedule "Wensday blues" tomorrow at noon', NOW, [made(f"{TOMORROW}12:00:00+01:00", "Wensday blues")]),
    ("schedule Sprint 12 review at noon", NOW, [made("2026-11-16T12:00:00+01:00", "Sprint 12 review")]),
    # lengths
    (
        "block 2 hours tomorrow from 9am for deep work",
        NOW,
        [made(f"{TOMORROW}09:00:00+01:00", "Deep work", duration_minutes=120)],
    ),
    (
        "arrange a phone call with the bank, Thursday 4pm, 15 min",
        NOW,
        [made("2026-11-19T16:00:00+01:00", "Phone call with the bank", duration_minutes=15)],
    ),
    ("plan Yoga tomorrow at 9am for 45 minutes", NOW, [made(f"{TOMORROW}09:00:00+01:00", "Yoga", duration_minutes=45)]),
    ("plan Yoga tomorrow from 3 to 4:30pm", NOW, [made(f"{TOMORROW}15:00:00+01:00", "Yoga", duration_minutes=90)]),
    ("plan Yoga tomorrow from 11 to 1pm", NOW, [made(f"{TOMORROW}11:00:00+01:00", "Yoga", duration_minutes=120)]),
    ("plan Yoga tomorrow, 3-4pm", NOW, [made(f"{TOMORROW}15:00:00+01:00", "Yoga", duration_minutes=60)]),
    ("plan Yoga between 3pm and 4pm", NOW, [made("2026-11-16T15:00:00+01:00", "Yoga", duration_minutes=60)]),
    ("plan an hour long Yoga tomorrow at 9am", NOW, [made(f"{TOMORROW}09:00:00+01:00", "Yoga", duration_minutes=60)]),
    ("plan Yoga tomorrow at 9am until 10:30", NOW, [made(f"{TOMORROW}09:00:00+01:00", "Yoga", duration_minutes=90)]),
    ("plan Yoga at 9am tomorrow for 1h30", NOW, [made(f"{TOMORROW}09:00:00+01:00", "Yoga", duration_minutes=90)]),
    ("plan a 20-minute call at 9am tomorrow", NOW, [made(f"{TOMORROW}09:00:00+01:00", "Call", duration_minutes=20)]),
    # names and places
    (
        'create "Tomorrow at 3pm: why?" on Friday at 9am',
        NOW,
        [made(f"{FRIDAY}09:00:00+01:00", "Tomorrow at 3pm: why?")],
    ),
    ("create an event called “Q&A” on Friday at 9am", NOW, [made(f"{FRIDAY}09:00:00+01:00", "Q&A")]),
    ("create an event called 'Bob's day' Friday 9am", NOW, [made(f"{FRIDAY}09:00:00+01:00", "Bob's day")]),
    (
        "schedule lunch with Bob at Café Luna tomorrow at noon",
        NOW,
        [made(f"{TOMORROW}12:00:00+01:00", "Lunch with Bob", location="Café Luna")],
    ),
    (
        "schedule a call with Ann and Bob on Friday at 3pm in Room 5",
        NOW,
        [made(f"{FRIDAY}15:00:00+01:00", "Call with Ann and Bob", location="Room 5")],
    ),
    (
        "schedule a meeting tomorrow at 3pm at 12 Main Street with Ann",
        NOW,
        [made(f"{TOMORROW}15:00:00+01:00", "Meeting with Ann", location="12 Main Street")],
    ),
    (
        "create a meeting called Budget tomorrow at 9am, notes: bring numbers",
        NOW,
        [made(f"{TOMORROW}09:00:00+01:00", "Budget", description="bring numbers")],
    ),
    (
        "Could you please set up a chat with Dr. Who tomorrow at 9am?",
        NOW,
        [made(f"{TOMORROW}09:00:00+01:00", "Chat with Dr. Who")],
    ),
    ("I have a dentist appointment on Friday at 9am", NOW, [made(f"{FRIDAY}09:00:00+01:00", "Dentist appointment")]),
    ("I need a haircut on Friday at 9am", NOW, [made(f"{FRIDAY}09:00:00+01:00", "Haircut")]),
    ("put dentist on my calendar on Friday at 9am", NOW, [made(f"{FRIDAY}09:00:00+01:00", "Dentist")]),
    ("Team retro Friday 16:00", NOW, [made(f"{FRIDAY}16:00:00+01:00", "Team retro")]),
    ("create an event: Planning, Friday 9am", NOW, [made(f"{FRIDAY}09:00:00+01:00", "Planning")]),
    ("remind me on Friday at 9am to call mum", NOW, [made(f"{FRIDAY}09:00:00+01:00", "Call mum")]),
    ("schedule New Year's brunch on Jan 1st at 11am", NOW, [made("2027-01-01T11:00:00+01:00", "New Year's brunch")]),
    ("create an event called Later tomorrow at 9am", NOW, [made(f"{TOMORROW}09:00:00+01:00", "Later")]),
    ("create an event called A & B tomorrow at 9am", NOW, [made(f"{TOMORROW}09:00:00+01:00", "A & B")]),
    ("create an event called Weekly sync tomorrow at 9am", NOW, [made(f"{TOMORROW}09:00:00+01:00", "Weekly sync")]),
    ("create an event called Not now tomorrow at 9am", NOW, [made(f"{TOMORROW}09:00:00+01:00", "Not now")]),
    ("schedule lunch with Eve tomorrow at noon", NOW, [made(f"{TOMORROW}12:00:00+01:00", "Lunch with Eve")]),
    ("schedule lunch with April tomorrow at noon", NOW, [made(f"{TOMORROW}12:00:00+01:00", "Lunch with April")]),
    ('schedule "Late December" tomorrow at noon', NOW, [made(f"{TOMORROW}12:00:00+01:00", "Late December")]),
    # several
    (
        "create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm",
        AFTERNOON,
        [made(f"{TOMORROW}10:00:00+01:00", "Team Meeting"), made(f"{TOMORROW}12:00:00+01:00", "Lunch with Bob")],
    ),
    (
        "create 2 events: Retro at 5pm and Drinks at 6pm",
        AFTERNOON,
        [made("2026-11-16T17:00:00+01:00", "Retro"), made("2026-11-16T18:00:00+01:00", "Drinks")],
    ),
    (
        "create three events on Friday: A at 10am, B at 11am, and C at 1pm",
        NOW,
        [made(f"{FRIDAY}{hour}:00:00+01:00", name) for hour, name in ((10, "A"), (11, "B"), (13, "C"))],
    ),
    (
        "schedule standup at 9am and lunch with Ann and Bob at noon tomorrow",
        NOW,
        [made(f"{TOMORROW}09:00:00+01:00", "Standup"), made(f"{TOMORROW}12:00:00+01:00", "Lunch with Ann and Bob")],
    ),
    (
        "schedule a review tomorrow at 3pm, then schedule drinks on Friday at 6pm",
        NOW,
        [made(f"{TOMORROW}15:00:00+01:00", "Review"), made(f"{FRIDAY}18:00:00+01:00", "Drinks")],
    ),
    ("book a room tomorrow at 3pm", NOW, [("book_room", {"start": f"{TOMORROW}15:00:00+01:00"})]),
    (
        "reserve a meeting room for 5 people tomorrow at 3pm for an hour",
        NOW,
        [("book_room", {"start": f"{TOMORROW}15:00:00+01:00", "duration_minutes": 60, "people": 5})],
    ),
    (
        "book a meeting room for 6 tomorrow at 11am",
        NOW,
        [("book_room", {"start": f"{TOMORROW}11:00:00+01:00", "people": 6})],
    ),
    ("book a room for 3pm tomorrow", NOW, [("book_room", {"start": f"{TOMORROW}15:00:00+01:00"})]),
]

CHANGED = [
    ("move the standup to 10am", [changed("id-standup", start=f"{TOMORROW}10:00:00+01:00")]),
    ("move tomorrow's standup from 9am to 10am", [changed("id-standup", start=f"{TOMORROW}10:00:00+01:00")]),
    ("move the meeting at 3pm to 4pm", [changed("id-design-review", start="2026-11-19T16:00:00+01:00")]),
    ("move the meeting at 3 to 4pm", [changed("id-design-review", start="2026-11-19T16:00:00+01:00")]),
    ("reschedule my 8am to next Tuesday at noon", [changed("id-dentist", start="2026-11-24T12:00:00+01:00")]),
    ("move Lunch with Bob to Friday", [changed("id-lunch-with-bob", start=f"{FRIDAY}12:00:00+01:00")]),
    ("postpone the design review by an hour", [changed("id-design-review", start="2026-11-19T16:00:00+01:00")]),
    ("push the standup back by 30 minutes", [changed("id-standup", start=f"{TOMORROW}09:30:00+01:00")]),
    ("move the dentist an hour earlier", [changed("id-dentist", start=f"{FRIDAY}07:00:00+01:00")]),
    ("bring the lunch forward by 30 minutes", [changed("id-lunch-with-bob", start="2026-11-18T11:30:00+01:00")]),
    ('rename the standup to "Daily sync"', [changed("id-standup", name="Daily sync")]),
    ("change the title of the dentist to Doctor", [changed("id-dentist", name="Doctor")]),
    ("extend the design review by 15 minutes", [changed("id-design-review", duration_minutes=60)]),
    ("shorten the lunch by 15 minutes", [changed("id-lunch-with-bob", duration_minutes=45)]),
    ("make the standup an hour long", [changed("id-standup", duration_minutes=60)]),
    ("make the standup 15 minutes longer", [changed("id-standup", duration_minutes=45)]),
    ("extend the design review until 17:00", [changed("id-design-review", duration_minutes=120)]),
    ("set the standup to 10am", [changed("id-standup", start=f"{TOMORROW}10:00:00+01:00")]),
    ("can we move the standup to 10am?", [changed("id-standup", start=f"{TOMORROW}10:00:00+01:00")]),
    ("move the standup to Room 5", [changed("id-standup", location="Room 5")]),
    ("change the location of the lunch to Café Luna", [changed("id-lunch-with-bob", location="Café Luna")]),
]

LOOKED_UP = [
    ("what's on my calendar tomorrow?", [listed("2026-11-17", 1)]),
    ("What do I have this week?", [listed("2026-11-16", 7)]),
    ("what is on next week", [listed("2026-11-23", 7)]),
    ("show me my events on Friday", [listed("2026-11-20", 1)]),
    ("list my meetings for the next 3 days", [listed("2026-11-16", 3)]),
    ("do I have anything on Dec 4?", [listed("2026-12-04", 1)]),
    ("what's planned this weekend", [listed("2026-11-21", 2)]),
    ("what's on my calendar", [listed("2026-11-16", 7)]),
    ("am I free tomorrow at 3pm?", [listed("2026-11-17", 1)]),
    ("when is the standup?", [listed("2026-11-16", 14)]),
    ("what's on my Work calendar tomorrow?", [("list_calendars", {}), listed("2026-11-17", 1, "work-1")]),
    ("which calendars do I have?", [("list_calendars", {})]),
    ("find a café near the station", [("search_places", {"query": "cafe", "near": "station"})]),
    ("where is the nearest pharmacy?", [("search_places", {"query": "pharmacy"})]),
    (
        "I'm looking for a pharmacy near Market Square",
        [("search_places", {"query": "pharmacy", "near": "Market Square"})],
    ),
    ("search for a bakery", [("search_places", {"query": "bakery"})]),
    (
        "directions from the station to the harbour",
        [("get_directions", {"origin": "station", "destination": "harbour"})],
    ),
    (
        "how do I get to Town Hall from Central Station by bike?",
        [("get_directions", {"origin": "Central Station", "destination": "Town Hall", "mode": "bicycling"})],
    ),
    (
        "find a bakery and show me my events tomorrow",
        [("search_places", {"query": "bakery"}), listed("2026-11-17", 1)],
    ),
]

ASKED = [
    ("schedule something", "What should I schedule"),
    ("schedule something tomorrow at 3pm", "called"),
    ("create an event tomorrow at 9am", "called"),
    ("schedule Dentist", "When should it be"),
    ("schedule Dentist tomorrow", "At what time tomorrow"),
    ("schedule Dentist tomorrow at 3", "3:00 am or 3:00 pm"),
    ("schedule Dentist tomorrow at 9:30", "9:30 am or 9:30 pm"),
    ("schedule Dentist tomorrow at half past nine", "9:30 am or 9:30 pm"),
    ("schedule Dentist from 3 to 4 tomorrow", "3:00 am or 3:00 pm"),
    ("schedule Dentist at 12 tomorrow", "12:00 am or 12:00 pm"),
    ("schedule Dentist tomorrow at midnight", "0:00"),
    ("schedule Dentist tomorrow afternoon", "At what time"),
    ("schedule Dentist tomorrow after lunch", "leaves the time open"),
    ("schedule Dentist tomorrow after 3pm", "leaves the time open"),
    ("schedule Dentist tomorrow at 25:00", "not a time of day"),
    ("schedule Dentist tomorrow at 3pm or 4pm", "more than one time"),
    ("schedule Dentist tomorrow at 3pm EST", "time zone"),
    ("schedule Dentist tomorrow from 5pm to 3pm", "ends before it begins"),
    ("schedule Dentist next week at 3pm", "“next week” leaves the day open"),
    ("schedule Dentist this weekend at 3pm", "leaves the day open"),
    ("schedule Dentist soon", "leaves the day open"),
    ("schedule Dentist by Friday at 3pm", "leaves the day open"),
    ("schedule Dentist on Feb 30 at 3pm", "not a date that exists"),
    ("schedule Dentist on 2027-02-30 at 15:00", "not a date that exists"),
    ("schedule Dentist on the 31st at 3pm", "not a date that exists"),
    ("schedule Dentist on 4/12 at 3pm", "4 December or 12 April"),
    ("schedule Dentist on Monday at 3pm", "is today, and also a week from now"),
    ("schedule Dentist on Saturday Dec 4 at 3pm", "Which day"),
    ("schedule Dentist tomorrow or Friday at 3pm", "Which day"),
    ("schedule Dentist on Friday 13th at 3pm", "Which day do you mean: Sunday 13 December or Friday 20 November"),
    # days that it does not know, and so does not guess
    *(
        (f"schedule Dentist {day} at 9am", "Which day do you mean")
        for day in (
            *("on Christmas Eve", "Christmas day", "on New Year's Eve", "on my birthday", "on payday", "on December"),
            *("the following Tuesday", "nxt friday", "two Fridays from now", "on the last day of the month"),
            *("before Christmas", "during the holidays", "on 12-04", "overmorrow", "mon", "mon-fri", "on Tuesdays"),
            *("week 48", "in december", "on the first"),
        )
    ),
    # words that change what a day means, and so are not left to be a part of the name
    *(
        (f"schedule Dentist {day}", "Which day do you mean")
        for day in (
            *(
                "on the second Tuesday of December at 9am",
                "the last Friday of November at 9am",
                "any day but Friday at 9am",
            ),
            *("in late December at 9pm", "early December at 9pm", "in mid-December at 9pm", "end of December at 9pm"),
            *("at the beginning of December at 9pm", "tomorrow, not at 3pm", "any day except Friday at 3pm"),
            *("the Friday after Thanksgiving at 3pm", "Thursday before Christmas at 3pm", "Tuesday after next at 3pm"),
            *("a week on Friday at 3pm", "tomorrow week at 3pm", "Friday fortnight at 3pm", "within 3 days at 3pm"),
            *("in the next 3 days at 3pm", "in the week of 23 November at 3pm", "the eve of 20 November at 3pm"),
            *("in Q1 at 3pm", "tomorrow at half 5pm", "tomorrow at 3pm at the latest"),
            *(
                "tomorrow at 3pm-ish",
                "next Friday but one at 3pm",
                "Friday or later at 3pm",
                "tomorrow at half past noon",
            ),
        )
    ),
    ("schedule Dentist on Friday at 3pm weekly", "“weekly” repeats, and I can only make single events"),
    ("schedule Dentist tomorrow two hours earlier than 3pm", "What time do you mean"),
    ("schedule Dentist on 12 November at 3pm", "Thursday 12 November 15:00 has passed"),
    ("schedule Dentist tomorrow at quarter past", "“Dentist”: At what time tomorrow?"),
    ("create an event called Dentist in late December at 9am", "“Dentist”: I cannot read “in late December”"),
    ("move the standup to the second Tuesday of December at 9am", "Which day do you mean"),
    ("move the standup to 12 November", "has passed"),
    ("move it to 4pm", "Which event do you mean by “it”"),
    ("rename that to Sync", "Which event do you mean by “that”"),
    ("create an event called Dentist on Christmas Eve at 9am", "Which day do you mean"),
    ("schedule a talk on AI at noon", "Which day do you mean"),
    # misspelt, and so not guessed
    ("schedule Dentist tommorow at 9am", "cannot read “tommorow” as a day. Please write it again, such as tomorrow"),
    ("schedule Dentist tomorro at 9am", "such as tomorrow"),
    ("schedule Dentist todday at 9pm", "such as today"),
    ("schedule Dentist on Wensday at 3pm", "cannot read “Wensday” as a day. Please write it again, such as Wednesday"),
    ("schedule Dentist on Thrusday at 3pm", "such as Thursday"),
    ("schedule Dentist Teusday 3pm", "such as Tuesday"),
    ("schedule Dentist next Firday at 3pm", "such as Friday"),
    ("schedule Dentist on Satruday at noon", "such as Saturday"),
    ("schedule Dentist on Februrary 3 at 9am", "such as February"),
    ("schedule Dentist on 3 Ocotber at 9am", "such as October"),
    ("schedule Dentist the 3rd of Novemeber at 9am", "such as November"),
    ("schedule Dentist on Octember 5 at 5pm", "cannot read “on Octember 5” as a date"),
    ("schedule Dentist on 5 Floreal at 5pm", "cannot read “on 5 Floreal” as a date"),
    ("move the standup to Thrusday", "such as Thursday"),
    ("what's on my calendar on Wensday?", "such as Wednesday"),
    ("schedule a trip to Rome from 3 December to 7 December at noon", "Which day"),
    ("schedule Dentist at the usual time", "When should it be"),
    ("schedule Dentist tomorrow at 1430", "At what time tomorrow"),
    ("schedule Dentist every Monday at 3pm", "repeats"),
    ("schedule Dentist on the third at 3pm", "cannot read"),
    ("schedule Dentist two weeks from Friday at 3pm", "Which day"),
    ("schedule Dentist today at 9am", "has passed"),
    ("schedule Dentist yesterday at 9am", "has passed"),
    ("schedule Dentist on 2024-01-01 at 09:00", "has passed"),
    ("schedule Dentist on 2040-01-01 at 09:00", "five years"),
    ("schedule Dentist all day tomorrow", "how long"),
    ("create 3 events: A at 10am and B at 11am", "3 events"),
    ("create 2 events", "2 events"),
    ("schedule three meetings tomorrow", "three events"),
    ("schedule Dentist tomorrow at 9am in the afternoon", "not in that part of the day"),
    ("schedule Dentist tomorrow at 3pm for -5 minutes", "not a length"),
    ("where can I eat near the harbour?", "What kind of place"),
    ("book a room", "When should it be"),
    ("move the standup", "To which day and time"),
    ("move the standup to 4", "4:00 am or 4:00 pm"),
    ("move the standup to next week", "leaves the day open"),
    ("move the standup forward an hour", "earlier or later"),
    ("make the standup longer", "How long"),
    ("shorten the standup by two hours", "How long"),
    ("move the offsite to 4pm", "no event for “the offsite”"),
    ("move the meeting to 4pm", "Which one do you mean"),
    ("move next week's standup to 4pm", "leaves the day open"),
    ("what's on my calendar on Feb 30?", "not a date that exists"),
    ("am I free on Monday at 3pm?", "is today, and also a week from now"),
    ("directions to the harbour", "From where"),
    ("sing me a song", "do not understand"),
    ("", "What can I do"),
    ("is the office open tomorrow at 3pm?", "do not understand"),
    ("x" * 3000, "longer than I can read"),
]

SAID = [
    ("hello", "offline planner (rules, not a language model)"),
    ("what can you do?", "offline planner (rules, not a language model)"),
    ("thanks!", "You are welcome."),
    ("delete the standup", "no tool here to delete events"),
    ("don't schedule anything tomorrow at 3pm", "did nothing"),
]


def _calls(sentence: str, now: datetime = NOW) -> list[tuple[str, dict[str, Any]]]:
    """All calls up to the point where a person is needed, those that only prepare included."""
    talk = Talk(events=[dict(one) for one in EVENTS], now=now)
    last = talk.say(sentence)
    return talk.executed + [(call["name"], call["args"]) for call in last.tool_calls]


@pytest.mark.parametrize(
    ("sentence", "now", "calls"), CREATED, ids=[f"{row[0]} ({row[1]:%a %H:%M})" for row in CREATED]
)
def test_sentence_about_a_new_event_becomes_a_create_call(
    sentence: str, now: datetime, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    assert _calls(sentence, now) == calls


@pytest.mark.parametrize(("sentence", "calls"), CHANGED, ids=[row[0] for row in CHANGED])
def test_sentence_about_a_change_becomes_an_update_call(sentence: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    planned_calls = _calls(sentence)
    assert planned_calls[0][0] == "list_events"
    assert planned_calls[1:] == calls


@pytest.mark.parametrize(("sentence", "calls"), LOOKED_UP, ids=[row[0] for row in LOOKED_UP])
def test_questions_become_calendar_and_map_calls(sentence: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    assert _calls(sentence) == calls


@pytest.mark.parametrize(("sentence", "asked"), ASKED, ids=[row[0][:60] for row in ASKED])
def test_unclear_request_is_asked_about(sentence: str, asked: str) -> None:
    message = Talk(events=[dict(one) for one in EVENTS]).say(sentence)
    assert names(message) == ["request_clarification"]
    assert asked in question(message)


def _asked_then(request: str, answer: str, events: list[dict[str, Any]] | None = None) -> AIMessage:
    talk = Talk(events=[dict(one) for one in (EVENTS if events is None else events)])
    assert names(talk.say(request)) == ["request_clarification"]
    return talk.answer(answer)


@pytest.mark.parametrize(
    ("hour", "answer", "at"),
    [
        ("1", "pm", "13:00"),
        ("1", "am", "01:00"),
        ("1", "PM.", "13:00"),
        ("1", "p.m.", "13:00"),
        ("12", "am", "00:00"),
        ("12", "pm", "12:00"),
        ("9:30", "in the morning", "09:30"),
        ("3", "the afternoon please", "15:00"),
    ],
)
def test_answer_with_half_of_the_day_completes_the_time(hour: str, answer: str, at: str) -> None:
    made = _asked_then(f"schedule Yoga on Friday at {hour}", answer).tool_calls[0]["args"]
    assert made == {"start": f"{FRIDAY}{at}:00+01:00", "name": "Yoga"}
    moved = _asked_then(f"move the dentist to {hour}", answer).tool_calls[0]["args"]
    assert moved["start"] == f"{FRIDAY}{at}:00+01:00"


@pytest.mark.parametrize(
    ("answer", "event_id"),
    [
        *(("1", "id-standup"), ("the first one", "id-standup"), ("second", "id-lunch-with-bob")),
        *(
            ("#3", "id-design-review"),
            ("number 4, please", "id-dentist"),
            ("the dentist", "id-dentist"),
            ("2nd", "id-lunch-with-bob"),
        ),
    ],
)
def test_question_about_several_events_is_answered_by_number(answer: str, event_id: str) -> None:
    talk = Talk(events=[dict(one) for one in EVENTS])
    asked = question(talk.say("move the meeting to 10:15"))
    assert "Which one do you mean: 1. Standup, tomorrow 9:00–9:30 / 2. Lunch with Bob" in asked
    assert talk.answer(answer).tool_calls[0]["args"]["event_id"] == event_id


def test_a_number_that_was_not_offered_is_asked_again() -> None:
    assert "Which" in question(_asked_then("move the meeting to 10:15", "7"))


def test_vague_words_do_not_select_the_only_event() -> None:
    lunch = [event("Lunch with Bob", at(18, 12), 60)]
    asked = question(Talk(events=[dict(one) for one in lunch]).say("move the meeting to 4pm"))
    assert "Which one do you mean: 1. Lunch with Bob" in asked
    assert _asked_then("move the meeting to 4pm", "yes", lunch).tool_calls[0]["args"]["event_id"] == "id-lunch-with-bob"


def test_event_is_not_matched_by_part_of_a_word() -> None:
    events = [event("Review with Ann", at(18, 12)), event("Visit", at(19, 12))]
    for said in ("it", "vis", "view"):
        asked = Talk(events=[dict(one) for one in events]).say(f"move the {said} to 4pm")
        assert names(asked) == ["request_clarification"]


def test_a_rejection_that_only_excludes_is_asked_about() -> None:
    talk = Talk()
    talk.say("schedule Yoga tomorrow at 9am")
    assert "What should it be instead" in question(talk.approve("anything but 10am"))


def test_misspelt_day_is_not_added_to_the_name() -> None:
    talk = Talk()
    talk.say("book me a dentist appointment on Wensday at 9am")
    assert talk.answer("Wednesday").tool_calls[0]["args"] == {
        "start": "2026-11-18T09:00:00+01:00",
        "name": "Dentist appointment",
    }


@pytest.mark.parametrize("day", ["on Wensday", "next week", "on Feb 30"])
def test_a_day_that_is_shared_and_unclear_is_asked_about_for_each(day: str) -> None:
    talk = Talk()
    asked = talk.say(f"create 2 events: Gym at 7am and Breakfast at 8am {day}")
    assert names(asked) == ["request_clarification", "request_clarification"]
    made = talk.answer("Wednesday").tool_calls
    assert [call["args"]["start"] for call in made] == ["2026-11-18T07:00:00+01:00", "2026-11-18T08:00:00+01:00"]


def test_name_that_contains_on_keeps_the_day() -> None:
    talk = Talk()
    talk.say("schedule something tomorrow at 3pm")
    assert talk.answer("Talk on AI").tool_calls[0]["args"] == {
        "start": f"{TOMORROW}15:00:00+01:00",
        "name": "Talk on AI",
    }


def test_an_answer_that_is_misspelt_is_asked_for_again() -> None:
    talk = Talk()
    talk.say("schedule Dentist at some point")
    assert "such as Thursday" in question(talk.answer("Thrusday at 3pm"))
    assert talk.answer("Thursday").tool_calls[0]["args"]["start"] == "2026-11-19T15:00:00+01:00"


def test_more_than_fifty_everyday_variations_are_covered() -> None:
    assert len({row[0] for row in CREATED} | {row[0] for row in CHANGED}) > 100
    assert len({row[0] for row in ASKED}) > 70


@pytest.mark.parametrize(("sentence", "said"), SAID, ids=[row[0] for row in SAID])
def test_request_without_a_tool_is_answered(sentence: str, said: str) -> None:
    message = Talk().say(sentence)
    assert not message.tool_calls
    assert said in message.content
