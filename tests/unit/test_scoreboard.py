"""The scoreboard: quick counts by default, full ones and a written table on request."""

import pytest

SUITE = """
import pytest

pytestmark = pytest.mark.scoreboard

def test_kills(count, record_score):
    record_score("kills", "0 lost", f"0 of {count(full=200, quick=20)}")

def test_races(record_score):
    record_score("races", "1 winner", 2)
    assert False

def test_breaks_early():
    raise RuntimeError
"""


@pytest.fixture
def suite(suite: pytest.Pytester) -> pytest.Pytester:
    suite.makeconftest("pytest_plugins = ('tests.scoreboard',)")
    suite.makepyfile(test_suite=SUITE)
    return suite


def test_nothing_is_written_by_default(suite: pytest.Pytester) -> None:
    suite.runpytest_subprocess().assert_outcomes(passed=1, failed=2)
    assert not (suite.path / "docs").exists()


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_full_run_writes_every_result(suite: pytest.Pytester, workers: str) -> None:
    suite.runpytest_subprocess("--scoreboard", "-m", "scoreboard", "-n", workers)
    rows = (suite.path / "docs" / "scoreboard.md").read_text().splitlines()
    assert "| kills | 0 lost | 0 of 200 | met |" in rows
    assert "| races | 1 winner | 2 | MISSED |" in rows
    assert "| test_suite.py::test_breaks_early |  | no result | MISSED |" in rows
    assert any(row.startswith("| langgraph | ") for row in rows)
