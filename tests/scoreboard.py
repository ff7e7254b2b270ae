"""The measures by which the promises are judged: a few rounds in every test run, all of them with `--scoreboard`.

A test marked `scoreboard` asks `count(full=200, quick=20)` how many rounds to go, and tells what came out by
`record_score(measure, target, result)`. With `--scoreboard` the results are written to `docs/scoreboard.md`, those of
failed and of skipped tests included; what was not run this time stays as it was.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeGuard

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
    on: str

    @property
    def row(self) -> str:
        return f"| {self.measure} | {self.target} | {self.result} | {self.verdict} | {self.on} |"


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
        tried = {report.nodeid for reports in terminalreporter.stats.values() for report in reports if _is_test(report)}
        write_scoreboard(config.rootpath / FILE, scores, tried)
        terminalreporter.write_line(f"scoreboard: {len(scores)} results written to {FILE}")


def write_scoreboard(file: Path, scores: Iterable[Score], tried: Collection[str] = ()) -> None:
    """`tried`: the tests that were run. One that once came to no result stands there by its name until it is run."""
    facts = [f"| {name} | {value} |" for name, value in machine_facts().items()]
    known = {score.measure: score for score in _written(file) if score.measure not in tried}
    known |= {score.measure: score for score in scores}
    lines = [
        "# Scoreboard",
        "",
        "Written by `make scoreboard`, which runs every measure at its full count; `ARGS` may choose some of them.",
        "",
        "| measure | target | result | | on |",
        "|---|---|---|---|---|",
        *(score.row for score in sorted(known.values())),
        "",
        "| measured on | |",
        "|---|---|",
        *facts,
    ]
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _written(file: Path) -> Iterator[Score]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] not in ("measure", "---"):
            yield Score(*cells)


def _is_test(report: object) -> TypeGuard[pytest.TestReport]:
    return isinstance(report, pytest.TestReport)


def _scores(terminalreporter: pytest.TerminalReporter) -> Iterator[Score]:
    for category, verdict in {"passed": "met", "failed": "MISSED", "error": "MISSED", "skipped": "NOT RUN"}.items():
        for report in terminalreporter.stats.get(category, []):
            if _is_test(report):
                yield from _scores_of(report, verdict)


def _scores_of(report: pytest.TestReport, verdict: str) -> Iterator[Score]:
    recorded: list[Any] = [value for name, value in report.user_properties if name == "score"]
    if not recorded and verdict != "met":
        yield Score(report.nodeid, "", "no result", verdict, today())
    for measure, target, result in recorded:
        yield Score(measure, target, result, verdict, today())
