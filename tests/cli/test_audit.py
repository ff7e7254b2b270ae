"""`assent audit`: read the timeline, prove that it is whole, take it elsewhere."""

import json
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Assent


@pytest.fixture
def told(assent: Assent) -> Assent:
    """A timeline with a few events in two tenants."""
    for name in ("ana", "bob", "eve"):
        assent("users", "create", name)
    assent("keys", "create", "bot", "--tenant", "acme")
    return assent


def change(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / ".assent" / "assent.db") as connection:
        connection.execute(statement)


def test_list(told: Assent) -> None:
    rows = told("audit", "list", "--json").json
    assert [row["seq"] for row in rows] == [3, 2, 1]
    assert {row["kind"] for row in rows} == {"user.created"}
    assert len(told("audit", "list", "--limit", "1", "--json").json) == 1
    assert told("audit", "list", "--kind", "key.created", "--json").json == []
    assert len(told("audit", "list", "--kind", "key.created", "--tenant", "acme", "--json").json) == 1
    assert "user.created" in told("audit", "list").out
    assert told("audit", "list", "--actor", "nobody").out == "No events.\n"


@pytest.mark.promise("P9")
def test_verify(told: Assent) -> None:
    result = told("audit", "verify")
    assert result.code == 0
    assert [line.split(",")[0] for line in result.out.splitlines()] == ["acme: ok", "default: ok"]
    assert all(verdict["ok"] for verdict in told("audit", "verify", "--json").json)


@pytest.mark.promise("P9")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET actor = 'reviewer:eve' WHERE seq = 2 AND tenant_id = 'default'",
        "DELETE FROM events WHERE seq = 3 AND tenant_id = 'default'",
        "UPDATE event_payloads SET payload = '{}' WHERE seq = 1 AND tenant_id = 'default'",
    ],
)
def test_verify_finds_what_was_changed_and_exits_with_8(told: Assent, folder: Path, statement: str) -> None:
    change(folder, statement)
    result = told("audit", "verify")
    assert result.code == 8
    assert "default: broken" in result.out
    assert "acme: ok" in result.out
    assert result.err.startswith("assent: the timeline is broken in ")
    verdicts = told("audit", "verify", "--json")
    assert verdicts.code == 8
    assert [(one["tenant"], one["ok"]) for one in verdicts.json] == [("acme", True), ("default", False)]


@pytest.mark.promise("P9")
def test_an_export_is_checked_anywhere(told: Assent, folder: Path) -> None:
    result = told("audit", "export", "--out", "timeline.jsonl")
    assert result.out == "3 events written to timeline.jsonl\n"
    assert told("audit", "export").out == (folder / "timeline.jsonl").read_text()
    (folder / ".assent" / "assent.db").unlink()
    assert told("audit", "verify", "--file", "timeline.jsonl").code == 0
    lines = (folder / "timeline.jsonl").read_text().splitlines()
    (folder / "cut.jsonl").write_text("\n".join([*lines[:1], *lines[2:]]))
    assert told("audit", "verify", "--file", "cut.jsonl").code == 8
    (folder / "unfinished.jsonl").write_text("\n".join(lines[:-1]))
    assert told("audit", "verify", "--file", "unfinished.jsonl").code == 2


@pytest.mark.promise("P9")
def test_a_head_kept_elsewhere_shows_that_the_end_was_cut_off(told: Assent, folder: Path) -> None:
    told("audit", "export", "--out", "before.jsonl")
    head = json.loads((folder / "before.jsonl").read_text().splitlines()[-1])["head"]
    kept = f"{head['seq']}:{head['hash']}"
    assert told("audit", "verify", "--tenant", "default", "--head", kept).code == 0
    assert told("audit", "verify", "--file", "before.jsonl", "--head", kept).code == 0
    other = f"{head['seq']}:{'0' * 64}"
    assert told("audit", "verify", "--file", "before.jsonl", "--head", other).code == 8
    assert told("audit", "verify", "--tenant", "default", "--head", other).code == 8


def test_a_head_belongs_to_one_tenant(told: Assent) -> None:
    result = told("audit", "verify", "--head", f"1:{'0' * 64}")
    assert (result.code, result.err.splitlines()[0]) == (2, "assent: a head belongs to one tenant")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("verify", "--head", "nonsense"), 2),
        (("verify", "--file", "absent.jsonl"), 5),
        (("list", "--limit", "0"), 2),
        (("export", "--out", "absent/folder/x"), 3),
    ],
)
def test_what_cannot_be_done(told: Assent, arguments: tuple[str, ...], code: int) -> None:
    result = told("audit", *arguments)
    assert (result.code, result.out) == (code, "")
    assert result.err.startswith("assent: ")


def test_verify_of_nothing(assent: Assent) -> None:
    assert assent("audit", "verify").out == "no events yet\n"
