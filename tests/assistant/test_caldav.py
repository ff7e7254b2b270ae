"""A calendar on a CalDAV server: what other programs write there, signing in, and calls that are cut off."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from assent.assistant.calendar.caldav.store import CaldavStore
from assent.assistant.calendar.choice import require_calendar
from assent.assistant.calendar.database import Database
from assent.assistant.calendar.stores.port import Request
from assent.assistant.mcp.configured import create_client
from assent.errors import ConfigError, Forbidden, NotFound
from assent.settings import AssistantSettings, CaldavServer, read_assistant_settings
from tests.assistant.caldav_server import PASSWORD, Account, Radicale
from tests.assistant.calendars import DAY, calendar, call, listed, refused
from tests.cli.command import execute

WEEKLY = (
    "DTSTART;TZID=Europe/Berlin:20261013T090000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;COUNT=8\n"
    "EXDATE;TZID=Europe/Berlin:20261103T090000\nSUMMARY:Weekly"
)
MOVED = (
    "RECURRENCE-ID;TZID=Europe/Berlin:20261110T090000\nDTSTART;TZID=Europe/Berlin:20261110T110000\n"
    "DURATION:PT1H\nSUMMARY:Weekly later"
)
BERLIN = "DTSTART;TZID=Europe/Berlin:20261020T090000\nDTEND;TZID=Europe/Berlin:20261020T100000\nSUMMARY:Dentist"


@pytest.fixture
def account(caldav_server: Radicale) -> Account:
    return caldav_server.account("Home")


@pytest.fixture
def tools(account: Account, tmp_path: Path) -> Any:
    return calendar(tmp_path, caldav=account.server)


async def changed(tools: Any, event_id: str, **changes: Any) -> Any:
    made = await call(tools, "update_event", calendar_id="primary", event_id=event_id, **changes)
    return made["event_details"]


class TestEventsOfOtherPrograms:
    async def test_series_is_listed_by_its_times_across_the_change_of_the_clock(
        self, account: Account, tools: Any
    ) -> None:
        account.add("weekly", WEEKLY, MOVED)
        events = await listed(tools, "2026-10-20", duration_days=29)
        assert [(event["start"], event["name"]) for event in events] == [
            ("2026-10-20T09:00:00+02:00", "Weekly"),
            ("2026-10-27T09:00:00+01:00", "Weekly"),
            ("2026-11-10T11:00:00+01:00", "Weekly later"),
            ("2026-11-17T09:00:00+01:00", "Weekly"),
        ]
        assert len({event["event_id"] for event in events}) == 4

    @pytest.mark.parametrize("tool", ["update_event", "delete_event"])
    async def test_changing_a_series_or_one_of_its_times_is_refused(
        self, account: Account, tools: Any, tool: str
    ) -> None:
        account.add("weekly", WEEKLY)
        changes = {"name": "x"} if tool == "update_event" else {}
        (event,) = await listed(tools)
        for event_id in (event["event_id"], "weekly"):
            message = await refused(tools, tool, calendar_id="primary", event_id=event_id, **changes)
            assert message.startswith("event_id: the event repeats")
        assert await listed(tools) == [event]

    async def test_moved_event_keeps_its_zone_and_length(self, account: Account, tools: Any) -> None:
        account.add("dentist", BERLIN)
        event = await changed(tools, "dentist", start="2026-11-17T10:00:00+00:00")
        assert (event["start"], event["end"]) == ("2026-11-17T11:00:00+01:00", "2026-11-17T12:00:00+01:00")
        assert "DTSTART;TZID=Europe/Berlin:20261117T110000" in account.text("dentist")

    async def test_event_over_the_change_of_the_clock_keeps_its_true_length(self, account: Account, tools: Any) -> None:
        night = BERLIN.replace("20261020T090000", "20261025T010000").replace("20261020T100000", "20261025T040000")
        account.add("night", night)
        event = await changed(tools, "night", start="2026-11-17T00:00:00Z")
        assert (event["start"], event["end"]) == ("2026-11-17T01:00:00+01:00", "2026-11-17T05:00:00+01:00")

    async def test_all_day_event_is_listed_by_its_days(self, account: Account, tools: Any) -> None:
        account.add("trip", "DTSTART;VALUE=DATE:20261117\nDTEND;VALUE=DATE:20261119\nSUMMARY:Trip")
        account.add("day", "DTSTART;VALUE=DATE:20261117\nSUMMARY:Holiday")
        events = await listed(tools, "2026-11-16")
        assert {(event["name"], event["start"], event["end"]) for event in events} == {
            ("Trip", "2026-11-17", "2026-11-19"),
            ("Holiday", "2026-11-17", "2026-11-18"),
        }
        assert [event["name"] for event in await listed(tools, "2026-11-18")] == ["Trip"]

    async def test_all_day_event_is_renamed_but_gets_a_time_only_with_its_length(
        self, account: Account, tools: Any
    ) -> None:
        account.add("day", "DTSTART;VALUE=DATE:20261117\nSUMMARY:Holiday")
        event = await changed(tools, "day", name="Free")
        assert (event["name"], event["start"], event["end"]) == ("Free", "2026-11-17", "2026-11-18")
        named = {"calendar_id": "primary", "event_id": "day"}
        for change, field in (
            ({"start": f"{DAY}T09:00"}, "start: "),
            ({"duration_minutes": 30}, "duration_minutes: "),
        ):
            assert (await refused(tools, "update_event", **named, **change)).startswith(field)
        event = await changed(tools, "day", start=f"{DAY}T09:00", duration_minutes=30)
        assert (event["start"], event["end"]) == (f"{DAY}T09:00:00+00:00", f"{DAY}T09:30:00+00:00")

    async def test_change_keeps_what_the_tools_do_not_show(self, account: Account, tools: Any) -> None:
        account.add(
            "dentist",
            f"{BERLIN}\nATTENDEE;CN=Ana;PARTSTAT=ACCEPTED:mailto:ana@example.com\nCATEGORIES:HEALTH\n"
            "BEGIN:VALARM\nACTION:DISPLAY\nDESCRIPTION:soon\nTRIGGER:-PT15M\nEND:VALARM",
        )
        event = await changed(tools, "dentist", name="Dr. Lindqvist", attendees=["ana@example.com", "Bo"])
        assert event["attendees"] == ["ana@example.com", "Bo"]
        text = account.text("dentist")
        for part in ("PARTSTAT=ACCEPTED", "CATEGORIES:HEALTH", "TRIGGER:-PT15M", "SEQUENCE:1", "SUMMARY:Dr. Lindqvist"):
            assert part in text

    async def test_new_event_is_in_utc_and_invites_nobody(self, account: Account, tools: Any) -> None:
        made = await call(
            tools, "create_event", start=f"{DAY}T15:00:00+01:00", name="Plan; a, b", attendees=["Ana", "bo@example.com"]
        )
        text = account.text(made["event_id"])
        assert "DTSTART:20261117T140000Z" in text
        assert text.count("SCHEDULE-AGENT=CLIENT") == 2
        assert await listed(tools) == [made["event_details"]]


class TestInterruptedCalls:
    """What a retry finds after a crash between the server's answer and the note of it."""

    def forgetful(self, account: Account, folder: Path, name: str) -> CaldavStore:
        return CaldavStore(account.server, Database(folder / name))

    async def test_create_with_a_lost_result_makes_one_event(self, account: Account, tmp_path: Path) -> None:
        new = {"start": f"{DAY}T09:00", "name": "Standup", "idempotency_key": "call-1"}
        first = await call(calendar(tmp_path / "a", caldav=account.server), "create_event", **new)
        forgot = calendar(tmp_path / "b", caldav=account.server)
        assert await call(forgot, "create_event", **new) == first
        other = calendar(tmp_path / "c", caldav=account.server)
        message = await refused(other, "create_event", **{**new, "name": "x"})
        assert message.startswith("idempotency_key: was used for another request")
        assert len(await listed(forgot)) == 1

    def test_delete_that_was_noted_and_sent_is_finished_by_its_retry(self, account: Account, tmp_path: Path) -> None:
        account.add("dentist", BERLIN)
        store, request = self.forgetful(account, tmp_path, "a.db"), Request("call-1", {"tool": "delete_event"})
        connection = store._connection
        delete = connection.delete

        def killed(document: Any) -> bool:
            delete(document)
            raise KeyboardInterrupt

        connection.delete = killed  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            store.delete("primary", "dentist", request)
        again = self.forgetful(account, tmp_path, "a.db")
        assert again.delete("primary", "dentist", request)["name"] == "Dentist"
        with pytest.raises(NotFound):  # the control: without its note, the retry fails
            self.forgetful(account, tmp_path, "b.db").delete("primary", "dentist", request)

    def test_change_of_an_older_version_is_applied_to_the_present_one(self, account: Account, tmp_path: Path) -> None:
        account.add("dentist", BERLIN)
        store = self.forgetful(account, tmp_path, "a.db")
        texts: list[bytes] = []
        put = store._connection.put

        def raced(url: str, text: bytes, condition: dict[str, str]) -> bool:
            if not texts:
                account.add("dentist", f"{BERLIN}\nLOCATION:8 Garden Row")
            texts.append(text)
            return put(url, text, condition)

        store._connection.put = raced  # type: ignore[method-assign]
        event = store.update("primary", "dentist", {"name": "Dr. Lindqvist"}, Request(None))
        assert (event["name"], event["location"], len(texts)) == ("Dr. Lindqvist", "8 Garden Row", 2)


class TestStart:
    def test_reachable_calendar_starts(self, account: Account) -> None:
        require_calendar(account.server)
        require_calendar(replace(account.server, url=f"{account.url}/home/"))

    def test_wrong_password_is_refused(self, account: Account) -> None:
        with pytest.raises(ConfigError, match="refuses the access") as raised:
            require_calendar(replace(account.server, password=SecretStr("wr0ng")))
        assert "wr0ng" not in f"{raised.value} {raised.value.hint}"

    def test_unreachable_server_is_named(self) -> None:
        with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:9/ cannot be reached"):
            require_calendar(CaldavServer("http://127.0.0.1:9/", "ana", SecretStr("x")))

    def test_account_without_a_calendar_for_events_is_refused(self, caldav_server: Radicale) -> None:
        account = caldav_server.account()
        account.add_calendar("Tasks", "VTODO")
        with pytest.raises(ConfigError, match="has no calendar for events"):
            require_calendar(account.server)

    def test_several_calendars_need_a_name(self, caldav_server: Radicale) -> None:
        server = caldav_server.account("Home", "Work").server
        with pytest.raises(ConfigError, match="several calendars") as raised:
            require_calendar(server)
        assert raised.value.hint == "set ASSISTANT_CALDAV_CALENDAR to one of these: Home (home), Work (work)"
        require_calendar(replace(server, calendar="work"))

    def test_command_stops_before_it_listens(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ASSISTANT_CALDAV_URL", "http://127.0.0.1:9/")
        monkeypatch.setenv("ASSISTANT_CALDAV_TOKEN", "hidden")
        result = execute(tmp_path, "calendar", "--port", "0")
        assert result.code == 3
        assert result.err.startswith("assent: the calendar's server at http://127.0.0.1:9/ cannot be reached")

    async def test_password_that_is_refused_later_is_tried_again(self, account: Account, tmp_path: Path) -> None:
        store = CaldavStore(replace(account.server, password=SecretStr("wr0ng")), Database(tmp_path / "a.db"))
        for _ in range(2):
            with pytest.raises(Forbidden, match="refuses the access"):
                store.calendars()

    async def test_assistant_uses_the_calendar_of_its_settings(self, account: Account, tmp_path: Path) -> None:
        account.add("dentist", BERLIN)
        settings = AssistantSettings(
            caldav_url=account.server.url,
            caldav_user=account.user,
            caldav_password=SecretStr(PASSWORD),
            calendar=tmp_path / "c.db",
        )
        client = create_client(settings)
        try:
            result = await client.call("list_events", {"start_time": "2026-10-20"})
            assert result.structured["events"][0]["name"] == "Dentist"
        finally:
            await client.close()

    async def test_what_is_invented_is_not_offered(self, tools: Any) -> None:
        assert "book_room" in await refused(tools, "book_room", start=f"{DAY}T09:00")
        assert "search_places" in await refused(tools, "search_places", query="cafe")


class TestOutboundCalls:
    """The server's answers lead nowhere but to the origin that the setting names."""

    @pytest.mark.parametrize("leads", ["redirect", "principal"])
    def test_another_origin_is_not_called(self, leads: str) -> None:
        with _listener() as (elsewhere, calls), _leading(f"{elsewhere}/ana/", leads) as url:
            with pytest.raises(ConfigError, match="is not followed there"):
                require_calendar(CaldavServer(url, token=SecretStr("hidden")))
            assert calls == []
            # The control: named by the setting, it is called.
            with pytest.raises(ConfigError, match="CalDAV"):
                require_calendar(CaldavServer(f"{elsewhere}/", token=SecretStr("hidden")))
            assert calls


class TestSettings:
    def test_secrets_are_masked(self) -> None:
        environment = {"ASSISTANT_CALDAV_URL": "https://dav.example/ana/", "ASSISTANT_CALDAV_TOKEN": "hidden"}
        shown = read_assistant_settings(environment).shown()
        assert shown["ASSISTANT_CALDAV_URL"] == "https://dav.example/ana/"
        assert "hidden" not in str(shown)

    @pytest.mark.parametrize(
        "given",
        [
            {"URL": "https://dav.example"},
            {"URL": "https://dav.example", "USER": "ana"},
            {"URL": "https://dav.example", "USER": "ana", "PASSWORD": "s3cret", "TOKEN": "s3cret"},
            {"URL": "https://ana:s3cret@dav.example", "USER": "ana", "PASSWORD": "s3cret"},
            {"URL": "ftp://dav.example", "TOKEN": "s3cret"},
            {"PASSWORD": "s3cret"},
        ],
    )
    def test_incomplete_settings_are_refused_without_the_secret(self, given: dict[str, str]) -> None:
        with pytest.raises(ConfigError, match="caldav_url") as raised:
            read_assistant_settings({f"ASSISTANT_CALDAV_{name}": value for name, value in given.items()})
        assert "s3cret" not in str(raised.value)


@contextmanager
def _leading(target: str, leads: str) -> Iterator[str]:
    """A server that answers every call with a way to another."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PROPFIND(self) -> None:
            href = f"<d:current-user-principal><d:href>{target}</d:href></d:current-user-principal>"
            body = (
                f'<d:multistatus xmlns:d="DAV:"><d:response><d:href>/</d:href><d:propstat><d:prop>{href}</d:prop>'
                "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response></d:multistatus>"
            ).encode()
            self.send_response(301 if leads == "redirect" else 207)
            self.send_header("Location", target)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    with _serving(Handler) as url:
        yield url


@contextmanager
def _listener() -> Iterator[tuple[str, list[str]]]:
    calls: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PROPFIND(self) -> None:
            calls.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None: ...

    with _serving(Handler) as url:
        yield url.rstrip("/"), calls


@contextmanager
def _serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
