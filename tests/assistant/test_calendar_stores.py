"""The contract of a calendar's store: the same tools, called by a real MCP client, over the file and over CalDAV."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP

from tests.assistant.caldav_server import Radicale
from tests.assistant.calendars import DAY, ERAS, calendar, call, create, listed, names, refused

Opened = Callable[[], FastMCP]


@pytest.fixture(params=["file", "caldav"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens the calendar, as each start does."""
    options: dict[str, Any] = {}
    if request.param == "caldav":
        radicale: Radicale = request.getfixturevalue("caldav_server")
        account = radicale.account("Personal", "Work")
        options["caldav"] = replace(account.server, calendar="Personal")
    return lambda: calendar(tmp_path, **options)


@pytest.fixture
def server(opened: Opened) -> FastMCP:
    return opened()


async def test_list_calendars_begins_with_the_primary(server: FastMCP) -> None:
    calendars = (await call(server, "list_calendars"))["calendars"]
    assert [(one["name"], one["calendar_id"], one["primary"]) for one in calendars] == [
        ("Personal", "primary", True),
        ("Work", "work", False),
    ]
    assert all(set(one) == {"name", "description", "calendar_id", "primary"} for one in calendars)


class TestEvents:
    async def test_created_event_is_listed(self, server: FastMCP) -> None:
        made = await create(server, f"{DAY}T15:00:00+01:00", "Standup", location="Cedar", description="daily")
        assert made["id"] == made["event_id"] == made["event_details"]["event_id"]
        assert await listed(server) == [
            {
                "event_id": made["event_id"],
                "name": "Standup",
                "start": f"{DAY}T15:00:00+01:00",
                "end": f"{DAY}T15:30:00+01:00",
                "location": "Cedar",
                "description": "daily",
                "attendees": [],
            }
        ]

    async def test_events_are_sorted_by_time_across_offsets(self, server: FastMCP) -> None:
        await create(server, f"{DAY}T12:00:00", "noon")
        await create(server, f"{DAY}T12:30:00+02:00", "half past ten")
        await create(server, f"{DAY}T06:00:00-05:00", "eleven")
        assert await names(server) == ["half past ten", "eleven", "noon"]

    async def test_time_window_contains_overlapping_events(self, server: FastMCP) -> None:
        for start, name in (("16T23:45", "reaches in"), ("17T00:00", "first"), ("18T00:00", "next day")):
            await create(server, f"2026-11-{start}", name)
        await create(server, "2026-11-16T23:00", "ends before", duration_minutes=60)
        assert await names(server, duration_days=1) == ["reaches in", "first"]
        assert await names(server, f"{DAY}T00:15:00", duration_days=1) == ["first", "next day"]

    async def test_calendars_are_separate(self, server: FastMCP) -> None:
        await create(server, f"{DAY}T09:00", "mine")
        await create(server, f"{DAY}T09:00", "theirs", calendar_id="work")
        assert await names(server) == ["mine"]
        assert await names(server, calendar_id="work") == ["theirs"]

    async def test_fields_omitted_from_an_update_are_kept(self, server: FastMCP) -> None:
        made = await create(server, f"{DAY}T09:00", "Dentist", duration_minutes=45, location="8 Garden Row")
        named = {"calendar_id": "primary", "event_id": made["event_id"]}
        moved = await call(server, "update_event", **named, start=f"{DAY}T10:00")
        assert moved["event_id"] == moved["id"] == made["event_id"]
        assert moved["event_details"] == made["event_details"] | {
            "start": f"{DAY}T10:00:00+00:00",
            "end": f"{DAY}T10:45:00+00:00",
        }
        longer = await call(
            server, "update_event", **named, duration_minutes=60, description="bring the card", name=None
        )
        assert longer["event_details"] == moved["event_details"] | {
            "end": f"{DAY}T11:00:00+00:00",
            "description": "bring the card",
        }
        assert await listed(server) == [longer["event_details"]]

    async def test_attendees_are_kept_replaced_and_cleared(self, server: FastMCP) -> None:
        made = await create(server, f"{DAY}T09:00", "Planning", attendees=["Ana", " bob@example.com "])
        assert made["event_details"]["attendees"] == ["Ana", "bob@example.com"]
        named = {"calendar_id": "primary", "event_id": made["event_id"]}
        for change, expected in (
            ({"name": "Plan"}, ["Ana", "bob@example.com"]),
            ({"attendees": ["Cy"]}, ["Cy"]),
            ({"attendees": []}, []),
        ):
            await call(server, "update_event", **named, **change)
            assert [event["attendees"] for event in await listed(server)] == [expected]

    async def test_deleted_event_is_gone_and_others_stay(self, server: FastMCP) -> None:
        made = await create(server, f"{DAY}T09:00", "Dentist")
        await create(server, f"{DAY}T09:00", "Standup")
        named = {"calendar_id": "primary", "event_id": made["event_id"]}
        assert await call(server, "delete_event", **named) == made
        assert await names(server) == ["Standup"]
        assert (await refused(server, "delete_event", **named)).startswith("event_id: ")
        assert (await refused(server, "update_event", **named, name="x")).startswith("event_id: ")

    async def test_events_survive_a_restart(self, opened: Opened, server: FastMCP) -> None:
        made = await create(server, f"{DAY}T09:00", "Standup")
        assert await listed(opened()) == [made["event_details"]]


class TestMistakes:
    """Tool errors that name the field: results, which a model can read and act on."""

    @pytest.mark.parametrize("era", ERAS)
    @pytest.mark.parametrize(
        ("tool", "arguments", "field"),
        [
            ("create_event", {"start": "tomorrow"}, "start"),
            ("create_event", {"start": "2026-02-30T09:00"}, "start"),
            ("create_event", {"start": DAY}, "start"),
            ("create_event", {"start": ""}, "start"),
            ("create_event", {"start": 5}, "start"),
            ("create_event", {"start": None}, "start"),
            ("create_event", {"name": "  "}, "name"),
            ("create_event", {"duration_minutes": 0}, "duration_minutes"),
            ("create_event", {"duration_minutes": -30}, "duration_minutes"),
            ("create_event", {"duration_minutes": 1.5}, "duration_minutes"),
            ("create_event", {"start": "9999-12-31T23:59", "duration_minutes": 30}, "duration_minutes"),
            ("create_event", {"calendar_id": "nobody's"}, "calendar_id"),
            ("create_event", {"idempotency_key": ""}, "idempotency_key"),
            ("list_events", {"start_time": "soon"}, "start_time"),
            ("list_events", {"duration_days": 0}, "duration_days"),
            ("list_events", {"start_time": "9999-12-31"}, "duration_days"),
            ("list_events", {"calendar_id": ""}, "calendar_id"),
            ("update_event", {"event_id": "none"}, "event_id"),
            ("update_event", {"calendar_id": "nobody's"}, "calendar_id"),
            ("update_event", {"start": "at 4pm"}, "start"),
            ("update_event", {"duration_minutes": 0}, "duration_minutes"),
            ("create_event", {"attendees": ["Ana", " "]}, "attendees.1"),
            ("delete_event", {"event_id": "none"}, "event_id"),
            ("delete_event", {"calendar_id": "nobody's"}, "calendar_id"),
        ],
    )
    async def test_invalid_argument_is_named(
        self, server: FastMCP, era: str, tool: str, arguments: dict[str, Any], field: str
    ) -> None:
        right: dict[str, dict[str, Any]] = {
            "create_event": {"start": f"{DAY}T09:00", "name": "Standup"},
            "list_events": {"start_time": DAY},
            "update_event": {"calendar_id": "primary", "event_id": "some"},
            "delete_event": {"calendar_id": "primary", "event_id": "some"},
        }
        message = await refused(server, tool, era=era, **(right[tool] | arguments))
        assert message.startswith(f"{field}: ")
        assert "pydantic" not in message
        assert not await names(server)

    async def test_a_missing_argument_is_named(self, server: FastMCP) -> None:
        assert "name: " in await refused(server, "create_event", start=f"{DAY}T09:00")

    async def test_an_event_is_not_found_in_another_calendar(self, server: FastMCP) -> None:
        made = await create(server, f"{DAY}T09:00", "Standup")
        message = await refused(server, "update_event", calendar_id="work", event_id=made["event_id"], name="x")
        assert message.startswith("event_id: ")
        assert await names(server) == ["Standup"]


class TestIdempotencyKey:
    """A call that is sent again, because its answer was lost, does nothing again."""

    async def test_without_a_key_two_calls_are_two_events(self, server: FastMCP) -> None:
        await create(server, f"{DAY}T09:00", "Standup")
        await create(server, f"{DAY}T09:00", "Standup")
        assert await names(server) == ["Standup", "Standup"]

    async def test_repeated_key_across_a_restart_makes_one_event(self, server: FastMCP, opened: Opened) -> None:
        first = await create(server, f"{DAY}T09:00", "Standup", idempotency_key="call-1")
        assert await create(opened(), f"{DAY}T09:00", "Standup", idempotency_key="call-1") == first
        assert await names(server) == ["Standup"]

    async def test_twenty_concurrent_calls_with_one_key_make_one_event(self, server: FastMCP) -> None:
        arguments = {"start": f"{DAY}T09:00", "name": "Standup", "idempotency_key": "call-1"}
        async with Client(server) as client:
            made = await asyncio.gather(*(client.call_tool("create_event", arguments) for _ in range(20)))
        assert len({str(one.structured_content) for one in made}) == 1
        assert await names(server) == ["Standup"]

    async def test_repeated_update_does_not_overwrite_a_later_one(self, server: FastMCP) -> None:
        made = await create(server, f"{DAY}T09:00", "Standup")
        named = {"calendar_id": "primary", "event_id": made["event_id"]}
        first = await call(server, "update_event", **named, name="First", idempotency_key="call-2")
        await call(server, "update_event", **named, name="Second")
        assert await call(server, "update_event", **named, name="First", idempotency_key="call-2") == first
        assert await names(server) == ["Second"]

    async def test_repeated_delete_returns_the_first_result(self, server: FastMCP) -> None:
        made = await create(server, f"{DAY}T09:00", "Standup")
        named = {"calendar_id": "primary", "event_id": made["event_id"], "idempotency_key": "call-3"}
        assert await call(server, "delete_event", **named) == await call(server, "delete_event", **named) == made

    async def test_key_with_another_request_is_refused(self, server: FastMCP) -> None:
        await create(server, f"{DAY}T09:00", "Standup", idempotency_key="call-1")
        other = {"start": f"{DAY}T10:00", "name": "Standup", "idempotency_key": "call-1"}
        assert (await refused(server, "create_event", **other)).startswith("idempotency_key: ")
        assert await names(server) == ["Standup"]

    async def test_a_call_that_failed_may_be_tried_again_with_its_key(self, server: FastMCP) -> None:
        wrong = {"start": f"{DAY}T10:00", "name": "x", "calendar_id": "wrk", "idempotency_key": "call-1"}
        await refused(server, "create_event", **wrong)
        await call(server, "create_event", **(wrong | {"calendar_id": "work"}))
        assert await names(server, calendar_id="work") == ["x"]
