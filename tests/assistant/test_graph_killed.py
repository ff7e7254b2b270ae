"""Killed between the approval and the end of the tool, wherever it hits: one event, and the conversation goes on."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from assent import LocalInbox
from tests.assistant import crashing
from tests.forking import ROOT, Forked

TRANSACTIONS = [str(number) for number in range(1, 4)]


def killed(folder: Path, die: str) -> bool:
    """Goes on with what was decided, in a process that dies on the way. Whether it did."""
    program, arguments = ["-m", "tests.assistant.crashing"], [str(folder), "decided", die]
    with Forked(arguments, folder=ROOT, environment=os.environ, program=program) as process:
        printed, code = process.stdout.read(), process.wait(60)
    assert code in (0, -signal.SIGKILL), printed
    return code != 0


async def run(folder: Path, step: str) -> Any:
    await crashing.main(folder, step, "")
    return json.loads((folder / "told").read_text())


def events(folder: Path) -> int:
    connection = sqlite3.connect(folder / "calendar.db")
    [(count,)] = connection.execute("SELECT count(*) FROM events")
    connection.close()
    return int(count)


@pytest.mark.promise("P2")
@pytest.mark.parametrize("die", ["before", "after", *TRANSACTIONS])
async def test_kill_at_any_point_makes_one_event_per_approval(inbox: LocalInbox, folder: Path, die: str) -> None:
    await run(folder, "say")
    assert killed(folder, die)
    assert events(folder) <= 1
    for _ in range(3):
        assert (await run(folder, "nothing"))["asked"] is None
        assert events(folder) == 1


async def test_control_without_a_kill_makes_one_event(inbox: LocalInbox, folder: Path) -> None:
    await run(folder, "say")
    one_too_many = str(len(TRANSACTIONS) + 1)
    assert not killed(folder, one_too_many)
    assert events(folder) == 1
