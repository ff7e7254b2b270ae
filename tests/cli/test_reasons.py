"""`assent reasons` and `assent inbox assign` against a real server, and on the database itself."""

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Assent
from tests.cli.house import House
from tests.servers import ServerProcess, dev_server, running

HERE = ("--database", "sqlite:///.assent/assent.db")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(dev_server(f"sqlite:///{tmp_path_factory.mktemp('reasons')}/reasons.db")) as started:
        yield started


def test_saved_reason_rejects_an_item(server: ServerProcess, assent: Assent) -> None:
    house = House(server, assent)
    assert house("reasons", "list").out.startswith("No reasons yet.")
    assert house("reasons", "add", "Too much", "Over the limit.").out == "saved: Too much\n"
    assert house("reasons", "add", "Too much", "Over 100.", "--use", "reject", "--json").json["text"] == "Over 100."
    assert [reason["use"] for reason in house("reasons", "list", "--json").json] == ["reject"]
    item, _ = house.calls({"name": "send_email", "args": {"to": "a@b.c", "body": "x"}})
    done = house.inbox("reject", item, "--saved", "Too much", "--json")
    assert done.json["decisions"][0]["actions"][0]["message"] == "Over 100.", done.err
    for arguments in (["--saved", "Nothing"], ["--saved", "Too much", "--message", "x"]):
        assert house.inbox("reject", item, *arguments).code != 0
    assert house("reasons", "remove", "Too much").out == "removed: Too much\n"
    assert house("reasons", "remove", "Too much").code == 5


def test_item_is_assigned_to_me_and_to_nobody(server: ServerProcess, assent: Assent) -> None:
    house = House(server, assent)
    item, _ = house.paused()
    assert house.inbox("assign", item, "me").out.startswith("assigned: item")
    shown = house.inbox("get", item, "--json").json
    assert f"owner     {shown['owner_name']}" in house.inbox("get", item).out
    assert shown["owner_name"] in house.inbox("list", "--filter", "owner:me").out
    assert house.inbox("assign", item, "--nobody").out.startswith("no owner: item")
    assert "there is no reviewer" in house.inbox("assign", item, "zoe").err
    assert "name a person" in house.inbox("assign", item).err


def test_recipient_is_shown_by_name(server: ServerProcess, assent: Assent) -> None:
    house = House(server, assent)
    paused, _ = house.paused()
    house.inbox("assign", paused, "me")
    owner = house.inbox("get", paused, "--json").json
    recipients = [owner["owner"], "finance"]
    shown = [house.inbox("get", house.request(recipient=recipient)).out for recipient in recipients]
    assert f"for       {owner['owner_name']}\n" in shown[0]
    assert "for       finance\n" in shown[1]


def test_reasons_on_the_database_itself(assent: Assent) -> None:
    assert assent("reasons", "add", "No", "No.", *HERE).code == 0
    assert assent("reasons", "list", *HERE, "--json").json[0]["text"] == "No."
