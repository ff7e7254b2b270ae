"""`assent inboxes` against a real server, and on the database itself."""

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Assent
from tests.cli.house import House, lines
from tests.servers import ServerProcess, dev_server, running

HERE = ("--database", "sqlite:///.assent/assent.db")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(dev_server(f"sqlite:///{tmp_path_factory.mktemp('inboxes')}/inboxes.db")) as started:
        yield started


def test_inboxes_of_a_graph_and_a_filter_are_added(server: ServerProcess, assent: Assent) -> None:
    house = House(server, assent)
    assert house("inboxes", "list").out.startswith("No inboxes yet.")
    house.paused()
    graph = house("inboxes", "add", "hitl", "--json").json
    assert (graph["name"], graph["filter"], graph["local"]) == ("hitl", "graph:hitl", True)
    assert graph["count"] >= 1
    assert house("inboxes", "add", "--filter", "is:pending risk:high", "--name", "Risky").out.startswith("added: Risky")
    shown = list(lines(house("inboxes", "list")))
    assert [line.split()[1] for line in shown[1:]] == ["hitl", "Risky"]
    again = house("inboxes", "add", "hitl", "--deployment", server.url, "--json").json
    assert again["url"] == server.url
    for inbox_id in (
        graph["id"],
        again["id"],
        *(inbox["id"] for inbox in house("inboxes", "list", "--json").json[1:2]),
    ):
        assert house("inboxes", "remove", inbox_id).out.startswith("removed: ")
    assert house("inboxes", "remove", graph["id"]).code == 5


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "either a graph or a search"),
        (["nothing"], "graph or assistant"),
        (["hitl", "--name", "a\u202eb"], "printable"),
        (["hitl", "--deployment", "https://remote.example"], "is not this server"),
        (["--filter", "colour:blue", "--name", "x"], "unknown field"),
    ],
)
def test_invalid_inbox_exits_with_the_reason(
    server: ServerProcess, assent: Assent, arguments: list[str], why: str
) -> None:
    refused = House(server, assent)("inboxes", "add", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert why in refused.err


def test_inboxes_are_managed_on_the_database(assent: Assent) -> None:
    assert assent("inboxes", "list", *HERE).out.startswith("No inboxes yet.")
    assert "ana" not in assent("users", "list", *HERE[:2]).out, "looking makes nobody"
    made = assent("inboxes", "add", "--filter", "is:pending", "--name", "Mine", *HERE, "--as", "ana")
    assert made.code == 0, made.err
    [view] = assent("inboxes", "list", "--json", *HERE, "--as", "ana").json
    assert (view["name"], view["url"]) == ("Mine", None)
    assert assent("inboxes", "list", "--json", *HERE, "--as", "ben").json == []
    assert assent("inboxes", "remove", view["id"], *HERE, "--as", "ana").code == 0
