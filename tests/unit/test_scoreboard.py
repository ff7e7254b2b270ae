"""The scoreboard keeps what was measured before, and never more than one result of a measure."""

from dataclasses import replace
from pathlib import Path

from tests.scoreboard import Score, write_scoreboard

KILLS = Score("200 kills", "0 lost", "200 kills: 0 lost", "met", "2026-01-01")
FAILED = Score("tests/faults/test_kills.py::test_runs", "", "no result", "MISSED", "2026-01-01")


def rows(file: Path) -> list[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return lines[lines.index("|---|---|---|---|---|") + 1 : lines.index("| measured on | |") - 1]


def test_results_of_a_new_run_replace_only_their_own_measures(tmp_path: Path) -> None:
    file = tmp_path / "docs" / "scoreboard.md"
    other, later = replace(KILLS, measure="another"), replace(KILLS, result="200 kills: 1 lost", verdict="MISSED")
    write_scoreboard(file, [KILLS, other])
    write_scoreboard(file, [later])
    assert rows(file) == [later.row, other.row]


def test_test_without_a_result_is_reported_until_it_runs_again(tmp_path: Path) -> None:
    file = tmp_path / "scoreboard.md"
    write_scoreboard(file, [FAILED])
    write_scoreboard(file, [KILLS], {"tests/faults/test_other.py::test_it"})
    assert rows(file) == [KILLS.row, FAILED.row]
    write_scoreboard(file, [KILLS], {FAILED.measure})
    assert rows(file) == [KILLS.row]
