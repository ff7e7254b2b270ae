"""`kill -9` of the assistant around the questions and the calls of real MCP servers: no effect happens twice."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path

import pytest

from tests.assistant.calendars import served
from tests.assistant.killed_calls import Case, converse
from tests.assistant.register import Register
from tests.scoreboard import Count, RecordScore

WAYS = [
    *product(("pushes", "twice", "plain"), ("legacy",), ("stdio", "http")),
    *product(("rounds", "plain"), ("2026-07-28",), ("stdio", "http")),
]
REPEATABLE = [way for way in WAYS if way[0] == "pushes"]
"""For the control: a tool that asks in rounds, or asks twice, never ends when its call is made from the beginning."""
PRELOADED = [
    "fastmcp.client.transports",
    "mcp.client.streamable_http",
    "mcp.client.stdio",
    "langchain.agents",
    "httpx2",
]
MOST_STEPS = 6
MOST_DELAY = 0.05
SECONDS = 120
MOST_CALLS = 30
"""In which the control has to double an effect."""


class Killing:
    """Conversations that are killed at random moments. `in_doubt` counts those that asked for their outcome."""

    def __init__(self, folder: Path, migrated: Path, url: str, seed: int) -> None:
        self.register = Register(folder / "effects")
        self.kills = self.in_doubt = 0
        self._folder, self._migrated, self._url = folder, migrated, url
        self._random = random.Random(seed)
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(["tests.assistant.killed_calls", *PRELOADED])

    def go(self, number: int, *, again: bool = False) -> None:
        """One conversation with a kill, and what is left of it without."""
        ways = REPEATABLE if again else WAYS
        tool, mode, transport = ways[number % len(ways)]
        folder = self._folder / str(number)
        folder.mkdir()
        shutil.copy(self._migrated, folder / "gate.db")
        url = self._url if transport == "http" else None
        case = Case(folder, f"n{number}", tool, mode, url, self._folder / "socket", self.register.file, again)
        last, delay = self._random.randint(0, MOST_STEPS), self._random.uniform(0, MOST_DELAY)
        self._run(case, last, delay)
        assert self._run(case, None, 0)[-1:] == ["ended"], f"{case} is stuck"

    def _run(self, case: Case, last: int | None, delay: float) -> list[str]:
        """Kills the process after so many steps; without a number it runs to its end."""
        ours, its = self._processes.Pipe(duplex=False)
        process = self._processes.Process(target=converse, args=(case, its))
        process.start()
        its.close()
        steps: list[str] = []
        with suppress(EOFError):
            while last is None or len(steps) < last:
                assert ours.poll(SECONDS)
                steps.append(ours.recv())
        time.sleep(delay)
        if last is not None and steps[-1:] != ["ended"]:
            self.kills += 1
            process.kill()
        process.join(SECONDS)
        self.in_doubt += "assent.in_doubt" in steps
        return steps

    @property
    def doubled(self) -> list[str]:
        return [effect for effect, number in Counter(self.register.effects).items() if number > 1]


@pytest.fixture
def killing(tmp_path: Path, migrated_file: Path) -> Iterator[Killing]:
    app = Register(tmp_path / "effects").server.http_app(path="/mcp")
    with served(app) as url, forking(tmp_path / "socket"):
        yield Killing(tmp_path, migrated_file, f"{url}/mcp", seed=17)


@contextmanager
def forking(address: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "tests.assistant.register", str(address)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield
        process.communicate()


@pytest.mark.scoreboard
@pytest.mark.promise("P2")
def test_kills_around_questions_and_calls_double_no_effect(
    killing: Killing, count: Count, record_score: RecordScore
) -> None:
    wanted, number = count(full=200, quick=6), 0
    while killing.kills < wanted:
        killing.go(number)
        number += 1
    doubled = f"{len(killing.doubled)} doubled, 0 stuck; {killing.in_doubt} in doubt and settled"
    measure = "kill -9 of the assistant around questions and calls of MCP servers, both protocols, stdio and HTTP"
    record_score(measure, "0 doubled effects, 0 stuck", f"{killing.kills} kills in {number} calls: {doubled}")
    assert killing.doubled == []


@pytest.mark.scoreboard
def test_control_kills_with_repeated_calls_double_effects(
    killing: Killing, count: Count, record_score: RecordScore
) -> None:
    wanted, calls = count(full=10, quick=1), 0
    while calls < wanted or (not killing.doubled and calls < 20):
        killing.go(calls, again=True)
        calls += 1
    record_score(
        "the same with calls that are repeated with their answers (the control)",
        "some doubled effects",
        f"{killing.kills} kills in {calls} calls: {len(killing.doubled)} doubled",
    )
    assert killing.doubled
