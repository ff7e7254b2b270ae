"""Which promises are kept: `@pytest.mark.promise("ID", …)` ties a test to lines of `promises.txt`.

An id travels with its test's reports, so workers need no channel of their own. The end of a run tells how many ids have
a passing test, and after a whole run also which have none. An id counts only if no test that carries it failed.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

MARKER = "promise(*ids): this test shows the promises with these ids (promises.txt lists them)"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("promises", "file with one promise per line: id, then title", default="tests/promises.txt")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


def pytest_itemcollected(item: pytest.Item) -> None:
    item.user_properties.extend(("promise", promise) for promise in _marked(item))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    unknown = set(_marked(item)) - set(read_promises(_promises_file(item.config)))
    if unknown:
        pytest.fail(
            f"unknown promise {', '.join(sorted(unknown))}: not in {item.config.getini('promises')}", pytrace=False
        )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    whole = _ran_everything(config) and exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED}
    kept = _kept(terminalreporter)
    if not (kept or whole):
        return
    promises = read_promises(_promises_file(config))
    terminalreporter.write_line(f"promises: {len(kept)} of {len(promises)} have a passing test")
    if whole:
        for group, ids in _grouped(promise for promise in promises if promise not in kept):
            terminalreporter.write_line(f"  none yet for {group}: {' '.join(ids)}")


@cache
def read_promises(file: Path) -> dict[str, str]:
    """The promises by id, in the order of the file."""
    if not file.exists():
        return {}
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    pairs = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return {promise: title for promise, _, title in pairs}


def _promises_file(config: pytest.Config) -> Path:
    return config.rootpath / str(config.getini("promises"))


def _marked(item: pytest.Item) -> list[str]:
    return [promise for marker in item.iter_markers("promise") for promise in marker.args]


def _kept(terminalreporter: pytest.TerminalReporter) -> set[str]:
    broken = _ids(terminalreporter, "failed") | _ids(terminalreporter, "error")
    return _ids(terminalreporter, "passed") - broken


def _ids(terminalreporter: pytest.TerminalReporter, category: str) -> set[str]:
    reports = terminalreporter.stats.get(category, [])
    return {
        str(value)
        for report in reports
        if isinstance(report, pytest.TestReport)
        for name, value in report.user_properties
        if name == "promise"
    }


def _ran_everything(config: pytest.Config) -> bool:
    option = config.option
    narrowed = option.keyword or option.markexpr or option.deselect or option.ignore or getattr(option, "lf", False)
    chosen = config.args_source is config.ArgsSource.ARGS and config.args != config.getini("testpaths")
    return not (narrowed or chosen)


def _grouped(ids: Iterable[str]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for promise in ids:
        groups[promise.rstrip("-0123456789")].append(promise)
    return list(groups.items())
