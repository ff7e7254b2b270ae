"""The blocking client, profiles and the newer commands, against a real server."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import get_type_hints

import pytest

from assent.client import Change, Inbox
from assent.errors import Forbidden
from tests.cli.conftest import Assent
from tests.cli.house import House
from tests.e2e.conftest import fast_folder
from tests.servers import ServerProcess, dev_server, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(dev_server(f"sqlite:///{fast_folder(tmp_path_factory)}/assent.db")) as started:
        yield started


@pytest.fixture
def house(server: ServerProcess, assent: Assent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return House(server, assent)


def create(house: House, title: str = "Deploy") -> str:
    with house.http() as agent:
        return str(agent.post("/api/inbox/items", json={"type": "deploy", "title": title}).json()["id"])


def test_a_service_without_an_event_loop_waits_for_a_decision(house: House) -> None:
    with Inbox(house.server.url, house.agent_key) as service, Inbox(house.server.url, house.key) as person:
        item = service.create("deploy", "Blocking")
        assert [listed["id"] for listed in person.list("is:pending Blocking")] == [item["id"]]
        with pytest.raises(Forbidden):
            service.approve(item)
        deciding = Timer(0.1, lambda: person.approve(item))
        deciding.start()
        assert service.wait(item["id"], timeout=30)["status"] == "APPROVED"
        deciding.join()
        kinds = (change["kind"] for change in service.watch(after=0) if change["item"]["id"] == item["id"])
        assert next(kinds) == "item.created"
        change = next(service.watch(after=0))
    assert set(get_type_hints(Change)) <= change.keys()


def test_program_that_does_not_close_its_client_exits(house: House) -> None:
    create(house)
    code = f"from assent.client import Inbox; changes = Inbox({house.server.url!r}, {house.key!r}).watch(after=0)"
    program = [sys.executable, "-c", f"{code}; print(next(changes)['kind'])"]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("item.created\n", "")


@pytest.mark.promise("REVIEW-44")
def test_several_items_are_decided_by_one_command(house: House) -> None:
    first, second, third = (create(house, f"Many {place}") for place in range(3))
    assert house.inbox("reject", second, "--message", "no").code == 0
    done = house.inbox("approve", first, second, third, "--json")
    assert [item["status"] for item in map(json.loads, done.out.splitlines())] == ["APPROVED", "APPROVED"]
    assert done.code == 6
    assert "REJECTED" in done.err
    ids = [create(house) for _ in range(2)]
    assert house.inbox("cancel", *ids).code == 0


def test_notes_come_from_a_file_and_are_required(house: House, tmp_path: Path) -> None:
    item, notes = create(house), tmp_path / "notes.txt"
    notes.write_text("shorter, please")
    assert house.inbox("request-revision", item).code == 2
    assert house.inbox("request-revision", item, "--notes", "x", "--notes-file", str(notes)).code == 2
    assert house.inbox("request-revision", item, "--notes-file", str(notes)).code == 0
    shown = house.inbox("get", item, "--json").json
    assert shown["decisions"][-1]["notes"] == "shorter, please"


def test_watch_prints_changes_since_a_number(house: House) -> None:
    item = create(house, "Watched")
    told = house.inbox("watch", "--after", "0", "--item", item, "--count", "1", "--json")
    change = json.loads(told.out)
    assert (change["kind"], change["item"]["id"]) == ("item.created", item)
    assert "Watched" in house.inbox("watch", "--after", "0", "--item", item, "--count", "1").out


def test_a_profile_names_server_and_key(house: House, assent: Assent, tmp_path: Path) -> None:
    item, url = create(house, "By profile"), house.server.url
    wrong = assent("login", "--url", url, "--key", "asnt_reviewer_wrong")
    assert wrong.code == 4
    nothing = assent("login", "--key", house.key)
    assert (nothing.code, "--url or ASSENT_URL" in nothing.err) == (2, True)
    assert not (tmp_path / "assent").exists()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ASSENT_URL", url)
        assert assent("login", "--key", house.key).code == 0
    assert assent("logout").code == 0
    done = assent("login", "--url", url, "--key", house.key)
    assert done.code == 0, done.err
    file = tmp_path / "assent" / "profiles.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "By profile" in assent("inbox", "get", item).out
    assert assent("login", "--url", url, "--key", house.agent_key, "--profile", "bot").code == 0
    assert assent("inbox", "approve", item, "--profile", "bot").code == 4
    assert assent("inbox", "approve", item, "--profile", "other").code == 5
    assert assent("inbox", "list", "--profile", "bot", "--url", url).code == 2
    assert assent("inbox", "approve", item).code == 0
    assert assent("logout").code == 0
    assert "bot" in file.read_text()
    file.write_text("[]")
    assert assent("inbox", "list").code == 3


def test_a_stored_key_goes_to_its_own_server_only(house: House, assent: Assent) -> None:
    assert assent("login", "--url", house.server.url, "--key", house.key).code == 0
    elsewhere = assent("inbox", "list", "--url", house.server.url)  # by address: as nobody in particular
    assert elsewhere.code == 0
    with house.http(house.key) as person:
        own = person.get("/api/me").json()
    assert own["kind"] == "reviewer"
    assert assent("inbox", "approve", create(house), "--url", house.server.url).code == 4
    refused = assent("agents", "add", "writer", "--url", house.server.url)
    assert (refused.code, "use a key that has it" in refused.err) == (4, True)


@pytest.mark.promise("REVIEW-43")
def test_triage_agent_recommends_with_its_key_and_decides_with_that_of_a_person(house: House) -> None:
    ids = {create(house, f"Drain {place}") for place in range(2)}
    listed = house.inbox("list", "--filter", "is:pending Drain", "--json", key=house.agent_key).json["items"]
    assert {item["id"] for item in listed} == ids
    for item in listed:
        assert house.inbox("claim", item["id"], key=house.agent_key).code == 0
        assert house.inbox("approve", item["id"], key=house.agent_key).code == 4
        seen = ("--revision", str(item["revision"]), "--hash", item["hash"])
        said = house.inbox("recommend", item["id"], "approve", "--reason", "as usual", *seen, key=house.agent_key)
        assert said.out.startswith("recommended: ")
    stale = house.inbox("recommend", listed[0]["id"], "reject", "--reason", "x", "--hash", "0" * 8, key=house.agent_key)
    assert stale.code == 6
    assert house.inbox("approve", *ids).code == 0
    assert house.inbox("list", "--filter", "is:pending Drain", "--json").json["items"] == []
    with house.http(house.key) as person:
        events = person.get(f"/api/inbox/items/{listed[0]['id']}/timeline").json()
    kinds = [event["kind"] for event in events]
    assert kinds == ["item.created", "item.claimed", "item.attempt_refused", "item.recommended", "item.approved"]
    assert (events[-1]["payload"]["via"], events[-1]["actor"].split(":")[0]) == ("cli", "reviewer")


def test_threads_and_runs_are_listed_and_cancelled(house: House) -> None:
    _, thread = house.paused()
    listed = house("threads", "list", "--status", "interrupted", "--json", key=house.agent_key).json
    assert thread in [row["thread_id"] for row in listed]
    assert thread in house("threads", "list", key=house.agent_key).out
    assert house("threads", "get", thread, key=house.agent_key).json["status"] == "interrupted"
    [run] = house("runs", "list", thread, "--json", key=house.agent_key).json
    assert run["run_id"] in house("runs", "list", thread, key=house.agent_key).out
    assert house("runs", "get", thread, run["run_id"], key=house.agent_key).json["run_id"] == run["run_id"]
    assert house("runs", "cancel", thread, "0197c5a0-0000-7000-8000-000000000000", key=house.agent_key).code == 5
    assert house("threads", "delete", thread, key=house.agent_key).code == 0
    assert house("threads", "get", thread, key=house.agent_key).code == 5
