"""The measures by which the promises are judged: a few rounds in every test run, all of them with `--scoreboard`.

A test marked `scoreboard` asks `count(full=200, quick=20)` how many rounds to go, and tells what came out by
`record_score(measure, target, result)`. With `--scoreboard` the results are written to `docs/scoreboard.md`, those of
failed and of skipped tests included.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from bench.machine import machine_facts, today

MARKER = "scoreboard: a measure of the scoreboard, run at full count with --scoreboard"
FILE = "docs/scoreboard.md"

RecordScore = Callable[[str, str, object], None]


class Count(Protocol):
    def __call__(self, *, full: int, quick: int) -> int: ...


@dataclass(frozen=True, order=True)
class Score:
    measure: str
    target: str
    result: str
    verdict: str


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--scoreboard", action="store_true", help=f"full counts, and write {FILE}")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.fixture(scope="session")
def count(pytestconfig: pytest.Config) -> Count:
    everything = bool(pytestconfig.getoption("scoreboard"))
    return lambda *, full, quick: full if everything else quick


@pytest.fixture
def record_score(request: pytest.FixtureRequest) -> RecordScore:
    def record(measure: str, target: str, result: object) -> None:
        request.node.user_properties.append(("score", [measure, target, str(result)]))

    return record


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    scores = sorted(_scores(terminalreporter)) if config.getoption("scoreboard") else []
    if scores:
        write_scoreboard(config.rootpath / FILE, scores)
        terminalreporter.write_line(f"scoreboard: {len(scores)} results written to {FILE}")


def write_scoreboard(file: Path, scores: Iterable[Score]) -> None:
    facts = [f"| {name} | {value} |" for name, value in machine_facts().items()]
    rows = [f"| {score.measure} | {score.target} | {score.result} | {score.verdict} |" for score in scores]
    lines = [
        "# Scoreboard",
        "",
        f"Written by `make scoreboard` on {today()}.",
        "",
        "| measure | target | result | |",
        "|---|---|---|---|",
        *rows,
        "",
        "| measured on | |",
        "|---|---|",
        *facts,
    ]
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _scores(terminalreporter: pytest.TerminalReporter) -> Iterator[Score]:
    for category, verdict in {"passed": "met", "failed": "MISSED", "error": "MISSED", "skipped": "NOT RUN"}.items():
        for report in terminalreporter.stats.get(category, []):
            if isinstance(report, pytest.TestReport):
                yield from _scores_of(report, verdict)


def _scores_of(report: pytest.TestReport, verdict: str) -> Iterator[Score]:
    recorded: list[Any] = [value for name, value in report.user_properties if name == "score"]
    if not recorded and verdict != "met":
        yield Score(report.nodeid, "", "no result", verdict)
    for measure, target, result in recorded:
        yield Score(measure, target, result, verdict)
