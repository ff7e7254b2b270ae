"""`assent chat` at a real terminal, with the demo and its calendar on the other side: what a person sees and types."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from tests.assistant.calendars import calendar_process
from tests.assistant.events import AFTER_EACH_FLOW, events_in
from tests.cli.command import PATIENCE, Server, serving
from tests.cli.terminal import CTRL_D, link_in, terminal
from tests.servers import ServerProcess, running

GRAPHS = Path(__file__).parents[1] / "graphs_assistant" / "langgraph.json"
YOU, ANSWER, CHOICE, WHY = "you> ", "answer> ", "approve, edit or reject? [a/e/r] ", "why not? "


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path, "demo", "--port", "0") as server:
        yield server


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Server]:
    """A demo whose assistant does what the words say."""
    changes = {"ASSENT_CONFIG": str(GRAPHS), "ASSENT_ASSISTANT": "scripted"}
    with serving(tmp_path, "demo", "--port", "0", changes=changes) as server:
        yield server


@pytest.mark.promise("ASST-38", "ASST-32", "ASST-33", "ASST-34", "ASST-35", "ASST-25")
def test_five_flows_work_at_a_terminal(demo: Server, tmp_path: Path) -> None:
    flows = [
        [(YOU, "schedule something"), (ANSWER, "a meeting tomorrow at 3pm"), (CHOICE, "approve")],
        [(YOU, "create a meeting called Standup tomorrow at 9am"), (CHOICE, "a")],
        [
            (YOU, "create an event called Dentist tomorrow at 9am"),
            *((CHOICE, "r"), (WHY, "Wrong time, should be 10am"), (CHOICE, "a")),
        ],
        [
            (YOU, "create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm"),
            *((CHOICE, "a"), (CHOICE, "r"), (WHY, "I eat alone")),
        ],
        [
            (YOU, "schedule something for me, and move the meeting at 3pm to 4pm"),
            *((ANSWER, "a call with Ana tomorrow at 5pm"), (CHOICE, "a"), (CHOICE, "a")),
        ],
    ]
    with terminal(tmp_path, "chat", "--url", demo.url) as person:
        for flow, expected in zip(flows, AFTER_EACH_FLOW, strict=True):
            person.talk(*flow)
            person.expect("assistant:\n  | Done: ")
            assert events_in(tmp_path / ".assent" / "calendar.db") == expected
        person.talk((YOU, "/quit"))
        assert person.ended() == 0
    assert '  1 of 2: create_event\n    argument  value\n    name      "Team Meeting"\n' in person.seen
    assert "1 of 1: update_event\n" in person.seen
    assert '    argument     value\n    calendar_id  "primary"\n' in person.seen


@pytest.mark.promise("ASST-38")
def test_edited_call_can_be_left_and_continued(demo: Server, tmp_path: Path) -> None:
    with terminal(tmp_path, "chat", "--url", demo.url, "--thread", "mine") as person:
        person.talk((YOU, "create a meeting called Standup tomorrow at 9am"), (CHOICE, "/quit"))
        person.expect(f"To continue later: assent chat --url {demo.url} --thread mine")
        assert person.ended() == 0
    assert events_in(tmp_path / ".assent" / "calendar.db") == []
    with terminal(tmp_path, "chat", "--url", demo.url, "--thread", "mine") as person:
        person.expect("The assistant wants to make 1 call:", '"Standup"')
        person.talk((CHOICE, "e"), ("name=value", "name=Daily"))
        person.expect('name: "Standup" → "Daily"')
        person.talk(("name=value", "duration_minutes=15"), ("name=value", ""))
        person.expect("assistant:\n  | Done: Daily, tomorrow 9:00–9:15.\n", YOU)
        person.press(CTRL_D)
        assert person.ended() == 0
    assert events_in(tmp_path / ".assent" / "calendar.db") == [("Daily", "09:00")]
    with terminal(tmp_path, "chat", "--url", demo.url, "--thread", "mine") as person:
        person.expect("  | Done: Daily, tomorrow 9:00–9:15.\n", YOU)


@pytest.mark.promise("ASST-38", "ASST-19")
def test_login_and_form_of_the_calendar_are_answered(tmp_path: Path) -> None:
    file = tmp_path / "shared.db"
    with running(calendar_process(file, "--login", "on")) as calendar:
        changes = {"ASSISTANT_MCP_URL": f"{calendar.url}/mcp"}
        with (
            serving(tmp_path, "demo", "--port", "0", changes=changes) as demo,
            terminal(tmp_path, "chat", "--url", demo.url) as person,
        ):
            person.talk((YOU, "book a room tomorrow at 3pm"), (CHOICE, "a"))
            follow(
                link_in(person.expect("The assistant needs you to sign in:", "Enter when done, or decline: ")), calendar
            )
            person.type("")
            person.expect("asks you to fill in a form:")
            person.talk(("fill in, decline or cancel? [f/d/c] ", "f"), ("    > ", "4"), ("    > ", ""))
            person.expect("assistant:\n  | Booked: Meeting, tomorrow 15:00")
    assert [at for _, at in events_in(file)] == ["15:00"]


def follow(link: str, calendar: ServerProcess) -> None:
    """As a browser would: the page, and what Allow leads to."""
    assert link.startswith(f"{calendar.url}/auth/connect/")
    with httpx.Client(trust_env=False, timeout=PATIENCE) as browser:
        page = browser.get(link)
        where = page.text.partition('href="')[2].partition('"')[0]
        assert "You may close this tab." in browser.get(urljoin(link, where)).text


@pytest.mark.promise("ASST-38")
def test_answer_is_shown_while_it_is_streamed(scripted: Server, tmp_path: Path) -> None:
    gate = tmp_path / "open"
    with terminal(tmp_path, "chat", "--url", scripted.url) as person:
        person.talk((YOU, f"speak:{gate}"))
        person.expect("assistant:\n  | Well,\n  | then")
        gate.touch()
        person.expect(" let us\\u001b begin.\nassistant:\n  | Done: nothing.\n", YOU)
        assert person.seen.count("Well,") == 1


def test_item_for_the_inbox_is_linked_and_waited_for(scripted: Server, tmp_path: Path) -> None:
    key = {"x-api-key": scripted.said["reviewer key"].split()[0]}
    with (
        httpx.Client(base_url=scripted.url, headers=key, trust_env=False, timeout=PATIENCE) as ana,
        terminal(tmp_path, "chat", "--url", scripted.url) as person,
    ):
        person.talk((YOU, "odd"))
        shown = person.expect("a decision in the inbox:", "Enter when it is decided: ")
        item_id = shown.partition("assent inbox get ")[2].split()[0]
        assert f"  {scripted.url}/inbox/{item_id}\n" in shown
        item = ana.get(f"/api/inbox/items/{item_id}").json()
        person.type("")  # too early
        person.expect("a decision in the inbox:", "Enter when it is decided: ")
        said = {"revision": item["revision"], "hash": item["hash"], "verb": "respond", "message": "well"}
        said |= {"grace_seconds": 2}  # as on the page: it is decided, and takes effect a little later
        decided = ana.post(f"/api/inbox/items/{item_id}/decision", json=said)
        assert decided.status_code == 200, decided.text
        person.type("")
        person.expect("The assistant is still working", "  | Done: well.\n", YOU)


def test_ctrl_c_stops_a_request_and_leaves_at_the_prompt(scripted: Server, tmp_path: Path) -> None:
    gate = tmp_path / "open"
    with terminal(tmp_path, "chat", "--url", scripted.url, "--thread", "cut") as person:
        person.talk((YOU, f"speak:{gate}"))
        person.expect("then")
        person.interrupt(until="Stopped. Calls that had started are not undone.\n")
        person.expect(YOU)
        person.interrupt(until=f"To continue later: assent chat --url {scripted.url} --thread cut\n")
        assert person.ended() == 130
    assert "Traceback" not in person.seen
    with terminal(tmp_path, "chat", "--url", scripted.url, "--thread", "cut") as person:
        person.talk((YOU, "hello"))
        person.expect("  | Done: nothing.\n", YOU)


def test_server_that_stops_during_a_chat_is_reported(scripted: Server, tmp_path: Path) -> None:
    with terminal(tmp_path, "chat", "--url", scripted.url, "--thread", "gone") as person:
        person.talk((YOU, f"speak:{tmp_path / 'never'}"))
        person.expect("then")
        scripted.process.kill()
        person.expect("was lost before the assistant answered", "--thread gone")
        assert person.ended() == 7


def test_missing_key_is_reported_before_the_first_prompt(tmp_path: Path) -> None:
    changes = {
        "ASSENT_CONFIG": str(GRAPHS),
        "ASSENT_ASSISTANT": "scripted",
        "ASSENT_SECRET_KEY": "0123456789abcdef0123456789abcdef",
        "ASSENT_DATABASE": f"sqlite:///{tmp_path / 'served.db'}",
    }
    with terminal(tmp_path, "users", "create", "ana", "--role", "admin", **changes) as operator:
        assert operator.ended() == 0, operator.seen
    with terminal(tmp_path, "serve", "--port", "0", **changes) as server:
        url = server.expect("listening", "http://127.0.0.1:", "\n").split()[-1]
        with terminal(tmp_path, "chat", "--url", url) as person:
            assert person.ended() == 4
    assert YOU not in person.seen
    assert "set a person's key with --key or ASSENT_API_KEY" in person.seen
