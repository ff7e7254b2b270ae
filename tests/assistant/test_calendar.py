"""The calendar's and the map's tools, called by a real MCP client in either era of the protocol."""

from __future__ import annotations

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.client.elicitation import ElicitResult

from assent.assistant.calendar import places
from assent.assistant.calendar.database import Database
from tests.assistant.calendars import DAY, ERAS, LEGACY, MODERN, Asked, calendar, call, create, listed, names, refused


@pytest.fixture
def server(tmp_path: Path) -> FastMCP:
    return calendar(tmp_path)


class TestWhatIsOffered:
    @pytest.mark.parametrize("era", ERAS)
    async def test_tools_are_listed_with_their_annotations(self, server: FastMCP, era: Any) -> None:
        async with Client(server, mode=era) as client:
            tools = {tool.name: tool for tool in await client.list_tools()}
        said = {
            name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint)
            for name, tool in tools.items()
            if tool.annotations
        }
        assert said == {
            "list_calendars": (True, None),
            "list_events": (True, None),
            "create_event": (False, False),
            "update_event": (False, True),
            "delete_event": (False, True),
            "book_room": (False, False),
            "search_places": (True, None),
            "get_directions": (True, None),
        }
        assert all(tool.description for tool in tools.values())

    async def test_tools_have_the_signatures_of_the_contract(self, server: FastMCP) -> None:
        async with Client(server) as client:
            schemas = {tool.name: tool.input_schema for tool in await client.list_tools()}
        assert schemas["list_calendars"]["properties"] == {}
        assert schemas["list_events"]["required"] == ["start_time"]
        assert schemas["create_event"]["required"] == ["start", "name"]
        assert schemas["update_event"]["required"] == ["calendar_id", "event_id"]
        assert schemas["create_event"]["properties"]["duration_minutes"]["default"] == 30
        assert schemas["list_events"]["properties"]["duration_days"]["default"] == 7
        assert schemas["list_events"]["properties"]["calendar_id"]["default"] == "primary"


class TestFile:
    async def test_file_of_an_earlier_release_is_upgraded(self, tmp_path: Path, server: FastMCP) -> None:
        await create(server, f"{DAY}T09:00", "Standup")
        with closing(sqlite3.connect(tmp_path / "calendar.db")) as connection:
            connection.execute("ALTER TABLE events DROP COLUMN attendees")
        assert [event["attendees"] for event in await listed(calendar(tmp_path))] == [[]]

    async def test_hundred_concurrent_creates_make_a_hundred_events(self, server: FastMCP) -> None:
        async with Client(server) as client:
            start = {"start": f"{DAY}T09:00"}
            await asyncio.gather(*(client.call_tool("create_event", {**start, "name": str(n)}) for n in range(100)))
        assert sorted(await names(server), key=int) == [str(n) for n in range(100)]

    def test_concurrent_processes_can_open_a_new_file(self, tmp_path: Path) -> None:
        with ThreadPoolExecutor(8) as pool:
            for number in range(10):
                list(pool.map(Database, [tmp_path / f"{number}.db"] * 8))


class TestMistakes:
    """Tool errors that name the field: results, which a model can read and act on."""

    @pytest.mark.parametrize("era", ERAS)
    @pytest.mark.parametrize(
        ("tool", "arguments", "field"),
        [
            ("search_places", {"query": " "}, "query"),
            ("search_places", {"near": "Atlantis"}, "near"),
            ("get_directions", {"origin": "Atlantis"}, "origin"),
            ("get_directions", {"destination": "Hotel"}, "destination"),
            ("get_directions", {"mode": "flying"}, "mode"),
            ("book_room", {"start": "noon"}, "start"),
            ("book_room", {"people": 41}, "people"),
        ],
    )
    async def test_invalid_argument_is_named(
        self, server: FastMCP, era: str, tool: str, arguments: dict[str, Any], field: str
    ) -> None:
        right: dict[str, dict[str, Any]] = {
            "search_places": {"query": "cafe"},
            "get_directions": {"origin": "library", "destination": "Sorrel"},
            "book_room": {"start": f"{DAY}T09:00", "people": 2},
        }
        message = await refused(server, tool, era=era, **(right[tool] | arguments))
        assert message.startswith(f"{field}: ")
        assert "pydantic" not in message
        assert not await names(server)

    async def test_an_unknown_tool_is_a_tool_error(self, server: FastMCP) -> None:
        assert "no_such_tool" in await refused(server, "no_such_tool")


class TestForm:
    @pytest.mark.parametrize("era", ERAS)
    async def test_answered_form_books_a_room(self, server: FastMCP, era: str) -> None:
        person = Asked({"people": 5, "equipment": "screen"})
        booked = await call(server, "book_room", era=era, person=person, start=f"{DAY}T10:00", name="Review")
        assert booked["event_details"]["location"] == "Birch, Marenby Town Hall"
        assert booked["event_details"]["end"] == f"{DAY}T11:00:00+00:00"
        assert await listed(server) == [booked["event_details"]]
        (question,) = person.questions
        assert question.mode == "form"
        schema = question.requested_schema
        assert schema["type"] == "object"
        assert schema["required"] == ["people"]
        assert schema["properties"]["people"]["maximum"] == 40
        assert schema["properties"]["equipment"]["enum"] == ["none", "whiteboard", "screen", "video"]

    @pytest.mark.parametrize("era", ERAS)
    @pytest.mark.parametrize("action", ["decline", "cancel"])
    async def test_declined_form_books_nothing(self, server: FastMCP, era: str, action: Any) -> None:
        person = Asked(ElicitResult(action=action))
        assert action in await refused(server, "book_room", era=era, person=person, start=f"{DAY}T10:00")
        assert not await names(server)

    @pytest.mark.parametrize("era", ERAS)
    @pytest.mark.parametrize(
        ("answer", "field"),
        [({"people": 0}, "people"), ({}, "people"), ({"people": 2, "equipment": "sauna"}, "equipment")],
    )
    async def test_an_answer_that_the_form_does_not_allow_books_nothing(
        self, server: FastMCP, era: str, answer: Any, field: str
    ) -> None:
        message = await refused(server, "book_room", era=era, person=Asked(answer), start=f"{DAY}T10:00")
        assert message.startswith(f"{field}: ")
        assert not await names(server)

    @pytest.mark.parametrize("era", ERAS)
    async def test_a_client_without_forms_is_told_what_to_do(self, server: FastMCP, era: str) -> None:
        assert "as arguments" in await refused(server, "book_room", era=era, start=f"{DAY}T10:00")
        booked = await call(server, "book_room", era=era, start=f"{DAY}T10:00", people=12)
        assert booked["event_details"]["location"] == "Dogwood, Harbour Works"

    async def test_a_client_that_fails_at_the_form_is_a_tool_error(self, server: FastMCP) -> None:
        async def broken() -> None:
            raise RuntimeError("no window")

        message = await refused(server, "book_room", era=LEGACY, person=Asked(broken), start=f"{DAY}T10:00")
        assert message == "the form could not be shown: no window"

    async def test_question_ends_a_call_of_the_modern_protocol(self, server: FastMCP) -> None:
        """As an agent sees it that waits for its person: nothing is open and nothing is kept meanwhile."""
        async with Client(server, mode=MODERN, elicitation_handler=Asked({})) as client:
            result = await client.session.call_tool("book_room", {"start": f"{DAY}T10:00"}, allow_input_required=True)
        assert result.result_type == "input_required"
        assert list(result.input_requests or {}) == ["room"]
        assert result.request_state is None

    async def test_booked_room_is_not_booked_again(self, server: FastMCP) -> None:
        for room in ("Cedar, Harbour Works", "Dogwood, Harbour Works"):
            booked = await call(server, "book_room", start=f"{DAY}T10:00", people=2, equipment="video")
            assert booked["event_details"]["location"] == room
        message = await refused(server, "book_room", start=f"{DAY}T10:59", people=2, equipment="video")
        assert message.startswith("start: ")
        await call(server, "book_room", start=f"{DAY}T11:00", people=2, equipment="video")

    async def test_a_room_is_booked_once_with_a_key(self, server: FastMCP) -> None:
        arguments = {"start": f"{DAY}T10:00", "people": 2, "idempotency_key": "k"}
        assert await call(server, "book_room", **arguments) == await call(server, "book_room", **arguments)
        assert len(await names(server)) == 1


class TestMaps:
    async def test_places_are_found_by_kind_and_nearest_first(self, server: FastMCP) -> None:
        places_near = (await call(server, "search_places", query="cafes", near="central-station"))["places"]
        assert [place["name"] for place in places_near][:2] == ["The Copper Kettle", "Lantern Cafe"]
        distances = [place["distance_meters"] for place in places_near]
        assert distances == sorted(distances)

    async def test_places_are_found_by_name_and_street(self, server: FastMCP) -> None:
        by_name = (await call(server, "search_places", query="lindqvist"))["places"]
        assert [(place["category"], place["distance_meters"]) for place in by_name] == [("dentist", None)]
        assert len((await call(server, "search_places", query="restaurant quay street"))["places"]) == 1
        assert (await call(server, "search_places", query="volcano"))["places"] == []

    @pytest.mark.parametrize("mode", ["walking", "bicycling", "driving", "transit"])
    async def test_directions_are_symmetric_in_distance_and_duration(self, server: FastMCP, mode: str) -> None:
        way = await call(server, "get_directions", origin="Central Station", destination="library", mode=mode)
        back = await call(server, "get_directions", origin="library", destination="Central Station", mode=mode)
        assert (way["destination"], way["mode"]) == ("Marenby Library", mode)
        assert way["distance_meters"] == back["distance_meters"] > 900
        assert 1 <= way["duration_minutes"] == back["duration_minutes"] < 30
        assert "east" in way["steps"][0]
        assert "west" in back["steps"][0]

    async def test_directions_to_the_same_place_are_zero(self, server: FastMCP) -> None:
        way = await call(server, "get_directions", origin="library", destination="library")
        assert (way["distance_meters"], way["duration_minutes"]) == (0, 0)

    def test_places_are_unique_and_found_by_name_and_id(self) -> None:
        assert len(places.places()) >= 36
        assert len({place.name for place in places.places()}) == len(places.places())
        for place in places.places():
            assert places.named("x", place.name) == places.named("x", place.place_id) == place
