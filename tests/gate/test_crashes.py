"""`kill -9` around an approved call: it runs at most once, and where nobody can know, a person is asked.

With the gate's transactions and the effect there are only so many moments that differ. The process is killed at each.
"""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from assent import LocalInbox
from assent.errors import Conflict
from assent.gate.inbox import LocalItem
from assent.review.model.items import Execution
from tests.gate.crashing import main
from tests.scoreboard import Count, RecordScore

KILLED = -9
FORKS = multiprocessing.get_context("forkserver")  # one process imports everything, the others are copies of it
FORKS.set_forkserver_preload(["tests.gate.crashing"])


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inbox = LocalInbox(folder / "gate.db")

    def process(self, go_on: str, **options: Any) -> dict[str, Any] | None:
        """What it told at its end; None where it was killed."""
        process = FORKS.Process(target=main, args=(str(self.folder), go_on), kwargs=options)
        process.start()
        process.join(60)
        if process.exitcode == KILLED:
            return None
        assert process.exitcode == 0
        told: dict[str, Any] = json.loads((self.folder / "told").read_text())
        return told

    @property
    def effects(self) -> list[str]:
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def item(self) -> LocalItem:
        return self.inbox.items(None)[-1]

    def ask(self) -> None:
        assert self.process("first")

    def approve(self) -> None:
        item = self.item
        self.inbox.decide(item.id, "approve", revision=item.revision, hash=item.hash, by="ana")


@pytest.fixture
def scene(folder: Path) -> Scene:
    return Scene(folder)


@pytest.mark.promise("P2")
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("die", "happened"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("outcome", ["done", "run_again", "abandon"])
def test_interrupted_call_is_in_doubt(scene: Scene, die: str, happened: int, outcome: Any) -> None:
    scene.ask()
    scene.approve()
    assert scene.process("decided", die=die) is None
    assert len(scene.effects) == happened
    again = scene.process("nothing")
    assert again is not None
    assert [question["kind"] for question in again["asked"]] == ["assent.in_doubt"]
    assert len(scene.effects) == happened
    assert scene.item.execution is Execution.IN_DOUBT

    scene.inbox.settle(scene.item.id, outcome, by="ana", notes="I looked")
    settled = scene.process("decided")
    assert settled is not None
    assert not settled["asked"]
    assert len(scene.effects) == happened + (outcome == "run_again")
    heard = {"done": "carried out. I looked", "run_again": "sent to bob", "abandon": "Do not retry it. I looked"}
    assert heard[outcome] in settled["said"][-1]


@pytest.mark.promise("P2")
def test_a_bare_answer_does_not_settle_a_doubt(scene: Scene) -> None:
    scene.ask()
    scene.approve()
    assert scene.process("decided", die="after") is None
    assert scene.process("nothing")
    again = scene.process("approve")
    assert again is not None
    assert [question["kind"] for question in again["asked"]] == ["assent.in_doubt"]
    assert len(scene.effects) == 1
    with pytest.raises(Conflict):
        scene.inbox.command("thread-1")


def test_control_without_the_gate_the_call_runs_twice(scene: Scene) -> None:
    """The control."""
    assert scene.process("first", gate=False)
    assert scene.process("approve", gate=False, die="after") is None
    assert scene.process("approve", gate=False)
    assert len(scene.effects) == 2


@pytest.mark.promise("P2")
@pytest.mark.parametrize("die", ["before", "after"])
def test_idempotent_tool_is_retried(scene: Scene, die: str) -> None:
    scene.ask()
    scene.approve()
    assert scene.process("decided", die=die, idempotent=True) is None
    done = scene.process("nothing", idempotent=True)
    assert done is not None
    assert not done["asked"]
    assert len(scene.effects) == (2 if die == "after" else 1)
    assert len(set(scene.effects)) == 1, "the receiver gets the same key"
    assert scene.item.execution is Execution.DONE


@pytest.mark.scoreboard
@pytest.mark.promise("P2")
@pytest.mark.promise("P3")
@pytest.mark.timeout(1800)
def test_kill_after_any_transaction_runs_the_call_at_most_once(
    folder: Path, count: Count, record_score: RecordScore
) -> None:
    """After the n-th one of the process that asks, or of the one that goes on with the decision."""
    rounds = [(go_on, die) for die in range(1, count(full=8, quick=4) + 1) for go_on in ("first", "decided")]
    doubled, stuck, killed = 0, 0, 0
    for number, (go_on, die) in enumerate(rounds):
        scene = Scene(folder / str(number))
        scene.folder.mkdir()
        killed += _killed(scene, go_on, die)
        finished = _finished(scene)
        doubled += len(scene.effects) > 1
        stuck += not finished
    result = f"{killed} kills: {doubled} doubled, {stuck} stuck"
    record_score("kill -9 after each transaction of a gated call, library mode", "0 doubled effects, 0 stuck", result)
    assert killed >= len(rounds) // 2
    assert (doubled, stuck) == (0, 0)


def _killed(scene: Scene, go_on: str, die: int) -> bool:
    if go_on == "first":
        return scene.process("first", die=die) is None
    scene.ask()
    scene.approve()
    return scene.process("decided", die=die) is None


def _finished(scene: Scene) -> bool:
    """Whether a person who answers whatever is asked brings it to its end."""
    for _ in range(6):
        _answer(scene)
        try:
            scene.inbox.command("thread-1")
            result = scene.process("decided")
        except Conflict:
            result = scene.process("nothing" if scene.folder.joinpath("checkpoints.db").exists() else "first")
        if result and not result["asked"] and result["said"][-1].startswith("done:"):
            return True
    return False


def _answer(scene: Scene) -> None:
    for item in scene.inbox.items(None):
        if item.execution is Execution.IN_DOUBT:
            scene.inbox.settle(item.id, "done", by="ana")
        elif item.status == "PENDING":
            scene.inbox.decide(item.id, "approve", revision=item.revision, hash=item.hash, by="ana")
