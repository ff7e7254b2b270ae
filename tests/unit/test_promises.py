"""The plugin that tells which promises have a passing test, run over small suites of its own."""

from pathlib import Path

import pytest

from tests.promises import read_promises

ROOT = Path(__file__).parents[2]
PROMISES = """
# a heading
P1 first
P2 second
INBOX-01 third
INBOX-02 fourth
"""
SUITE = """
import pytest

@pytest.mark.promise("P1", "INBOX-01")
def test_kept():
    pass

@pytest.mark.promise("P2")
def test_broken():
    assert False

@pytest.mark.promise("P2")
def test_good_beside_the_broken_one():
    pass

@pytest.mark.promise("INBOX-02")
@pytest.mark.skip
def test_skipped():
    pass
"""


@pytest.fixture
def suite(suite: pytest.Pytester) -> pytest.Pytester:
    suite.makeconftest("pytest_plugins = ('tests.promises',)")
    (suite.path / "promises.txt").write_text(PROMISES)
    suite.makeini("[pytest]\npromises = promises.txt\ntestpaths = .")
    suite.makepyfile(test_suite=SUITE)
    return suite


def lines(result: pytest.RunResult) -> list[str]:
    return [line.strip() for line in result.outlines if "promises:" in line or "none yet" in line]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_complete_run_reports_the_count_and_unproven_promises(suite: pytest.Pytester, workers: str) -> None:
    result = suite.runpytest_subprocess("-n", workers)
    assert lines(result) == [
        "promises: 2 of 4 have a passing test",
        "none yet for P: P2",
        "none yet for INBOX: INBOX-02",
    ]


NARROWED = [["-k", "kept"], ["test_suite.py::test_kept"], ["--deselect=test_suite.py::test_skipped"]]


@pytest.mark.parametrize("narrowed", NARROWED)
def test_partial_run_reports_only_the_count(suite: pytest.Pytester, narrowed: list[str]) -> None:
    result = suite.runpytest_subprocess("-q", *narrowed)
    assert lines(result) == ["promises: 2 of 4 have a passing test"]


def test_partial_run_without_promises_reports_nothing(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_other="def test_other(): pass")
    result = suite.runpytest_subprocess("test_other.py")
    assert lines(result) == []


@pytest.mark.parametrize("workers", ["0", "2"])
def test_an_unknown_id_is_an_error(suite: pytest.Pytester, workers: str) -> None:
    suite.makepyfile(test_wrong='import pytest\n@pytest.mark.promise("INBOX-99")\ndef test_wrong(): pass')
    result = suite.runpytest_subprocess("-n", workers, "test_wrong.py")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unknown promise INBOX-99*"])


def test_our_own_list_is_well_formed() -> None:
    promises = read_promises(ROOT / "tests" / "promises.txt")
    assert len(promises) > 180
    assert all(title for title in promises.values())
