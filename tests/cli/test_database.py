"""`assent db`: schema, backup, retention."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from assent.kernel.store import migrations
from assent.surfaces.cli import progress
from tests.cli.conftest import Assent
from tests.contract.test_upgrade import DUMP


def test_upgrade_brings_the_schema_to_the_newest_revision(assent: Assent) -> None:
    fresh = ("--database", "sqlite:///fresh.db")
    assert assent("db", "current", *fresh, "--json").json == {"current": None, "newest": migrations.newest()}
    assert assent("db", "upgrade", *fresh).out == f"revision {migrations.newest()}\n"
    assert assent("db", "upgrade", *fresh).code == 0
    assert assent("db", "current", *fresh).out == f"current {migrations.newest()}, newest {migrations.newest()}\n"


def test_convert_of_a_database_without_old_checkpoints_does_nothing(assent: Assent) -> None:
    assert assent("db", "convert", "--json").json == {"converted": 0, "damaged": []}
    missing = assent("db", "convert", "--database", "sqlite:///missing.db")
    assert (missing.code, missing.err.splitlines()[0]) == (5, "assent: database not found: missing.db")


def test_database_of_0_1_0_is_converted_with_its_progress(assent: Assent, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "old.db")) as connection:
        connection.executescript(DUMP.read_text("utf-8"))
    old = ("--database", "sqlite:///old.db")
    assert "assent db convert converts them" in assent("db", "upgrade", *old).out
    converted = assent("db", "convert", *old)
    assert converted.out == "18 checkpoints and writes converted, 0 damaged\n"
    assert converted.err.splitlines()[-1] == "checkpoints and writes: 18 of 18"
    assert assent("db", "convert", *old, "--json").json == {"converted": 0, "damaged": []}


def test_progress_is_a_line_for_so_many_steps_in_steps_of_any_size(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.shown("rows", lines_every=100) as on_progress:
        for done in range(7, 302, 7):
            on_progress(done, 301)
    assert capsys.readouterr().err.splitlines() == [f"rows: {done} of 301" for done in (105, 203, 301)]


def test_database_of_a_newer_version_is_refused(assent: Assent, folder: Path) -> None:
    with sqlite3.connect(folder / ".assent" / "assent.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    result = assent("keys", "list")
    assert (result.code, result.out) == (3, "")
    assert "9999" in result.err


def test_backup_is_a_whole_database_and_overwrites_nothing(assent: Assent, folder: Path) -> None:
    assent("users", "create", "ana")
    assert assent("db", "backup", "copy.db").out == "backed up to copy.db\n"
    with closing(sqlite3.connect(folder / "copy.db")) as copy:
        assert copy.execute("SELECT name FROM users").fetchall() == [("ana",)]
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    again = assent("db", "backup", "copy.db")
    assert (again.code, again.err.splitlines()[0]) == (6, "assent: copy.db exists already")


def test_prune_keeps_rows_within_their_retention(assent: Assent, monkeypatch: pytest.MonkeyPatch) -> None:
    assent("users", "create", "ana")
    monkeypatch.setenv("ASSENT_RETENTION_EVENT_PAYLOADS", "30d")
    pruned = assent("db", "prune", "--json").json
    assert {"sessions", "event_payloads"} <= pruned.keys()
    assert set(pruned.values()) == {0}
    assert "0 sessions removed, 0 event payloads removed" in assent("db", "prune").out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--database", "sqlite:////proc/none/assent.db"), "/proc/none"),
        (("--database", "sqlite:///text.txt"), "not a database"),
        (("--database", "postgresql://nobody:hunter2@127.0.0.1:1/none"), "cannot be reached"),
        (("--database", "nonsense"), "database (from command line)"),
    ],
)
@pytest.mark.parametrize(
    "command", [("keys", "list"), ("db", "current"), ("db", "upgrade"), ("db", "convert"), ("serve",)]
)
def test_unusable_database_is_reported_in_one_line(
    assent: Assent, folder: Path, command: tuple[str, ...], arguments: tuple[str, ...], told: str
) -> None:
    (folder / "text.txt").write_text("this is no database, " * 100)
    result = assent(*command, *arguments)
    assert (result.code, result.out) in ((3, ""), (5, ""), (7, ""))
    first, *hint = result.err.splitlines()
    assert first.startswith("assent: ")
    assert told in first
    assert len(hint) <= 1
    assert "hunter2" not in result.err
    assert "Traceback" not in result.err


def test_unwritable_backup_is_reported_in_one_line(assent: Assent) -> None:
    absent = assent("db", "backup", "absent/folder/copy.db")
    assert (absent.code, absent.err) == (5, "assent: folder not found: absent/folder\n")
    forbidden = assent("db", "backup", "/proc/copy.db")
    assert (forbidden.code, forbidden.err.count("\n")) == (3, 1)
    assert forbidden.err.startswith("assent: ")
