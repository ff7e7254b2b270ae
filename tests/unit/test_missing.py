"""A missing requirement of a test gives one visible line, and a failure in automation."""

import pytest

SUITE = """
import pytest
from tests.missing import missing

@pytest.fixture(scope="session")
def engine():
    missing("steam engine: buy one")

def test_drive(engine): pass
def test_brake(engine): pass
"""


@pytest.fixture
def suite(suite: pytest.Pytester) -> pytest.Pytester:
    suite.makeconftest("pytest_plugins = ('tests.missing',)")
    suite.makepyfile(SUITE)
    return suite


@pytest.mark.parametrize("workers", ["0", "1"])
def test_skipped_tests_are_reported_in_one_line(suite: pytest.Pytester, workers: str) -> None:
    result = suite.runpytest_subprocess("-n", workers)
    result.assert_outcomes(skipped=2)
    assert result.outlines.count("MISSING steam engine: buy one (2 skipped)") == 1


def test_skipped_tests_fail_the_run_in_automation(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    result = suite.runpytest_subprocess()
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*missing: steam engine*"])
