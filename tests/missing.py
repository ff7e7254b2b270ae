"""Skipping honestly: a test whose surroundings are absent says so in one loud line, and fails where CI=true.

A plain skip hides; `missing("Chromium: …")` is counted, named at the end of the run, and never green in automation.
"""

import os
from collections import Counter
from typing import NoReturn

import pytest

PREFIX = "missing: "


def missing(what: str) -> NoReturn:
    """Leave this test out because `what` is not there; name the thing and how to get it."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(f"{PREFIX}{what}", pytrace=False)
    pytest.skip(f"{PREFIX}{what}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    absent = Counter(what for report in terminalreporter.getreports("skipped") if (what := _missing_thing(report)))
    for what, tests in sorted(absent.items()):
        terminalreporter.write_line(f"MISSING {what} ({tests} skipped)", red=True, bold=True)


def _missing_thing(report: pytest.TestReport) -> str | None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    _, found, what = reason.partition(PREFIX)
    return what if found else None
