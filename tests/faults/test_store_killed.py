"""`kill -9` while writing: what was told as committed is there, and what is there is whole."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from assent.audit.service import Audit
from assent.identity.model.access import operator
from tests.contract.stores import AnyStore, both_databases
from tests.contract.tables import values
from tests.contract.tampering import Dice
from tests.faults.writer import TENANT
from tests.scoreboard import Count, RecordScore

ROOT = Path(__file__).parents[2]
SEED = 20261115


class Nursery:
    """Starts writing processes one after the other, and kills them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        self._orders, self._said = process.stdin, process.stdout

    def write_and_die(self, run: str, *, after: int) -> set[str]:
        """All rows that the process said are committed; it was killed when it had said so many."""
        print(run, file=self._orders, flush=True)
        writer = int(self._said.readline())
        said = [self._said.readline().strip() for _ in range(after)]
        os.kill(writer, signal.SIGKILL)
        while said[-1] != "end":
            said.append(self._said.readline().strip())
        return set(said) - {"end"}


@contextmanager
def nursery(url: str) -> Iterator[Nursery]:
    command = [sys.executable, "-m", "tests.faults.writer", url]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, cwd=ROOT) as process:  # type: ignore[call-overload]
        yield Nursery(process)


@both_databases
@pytest.mark.scoreboard
@pytest.mark.promise("P12")
async def test_killed_process_loses_no_confirmed_commit(
    database: str, store: AnyStore, count: Count, record_score: RecordScore
) -> None:
    dice, kills = Dice(SEED), count(full=50, quick=8)
    with nursery(database) as writers:
        told = [writers.write_and_die(f"run{kill}", after=dice.randint(1, 60)) for kill in range(kills)]
    acknowledged = set().union(*told)
    stored_values = await store.read(TENANT, values)
    lost = acknowledged - stored_values.keys()
    record_score(
        f"SIGKILL of a writing process, {store.url.partition(':')[0]}",
        "0 acknowledged rows lost",
        f"{len(lost)} of {len(acknowledged)} in {kills} kills",
    )
    assert lost == set()
    assert len(acknowledged) > kills
    verdict = await Audit(store).verify(operator(TENANT))
    assert (verdict.breaks, verdict.head.seq) == ([], len(stored_values))  # each row with its event, none without


@both_databases
async def test_control_acknowledging_before_the_commit_loses_rows(database: str, store: AnyStore) -> None:
    """The control: the same kill finds out whoever acknowledges too early."""
    with nursery(database) as writers:
        said = writers.write_and_die("run early", after=1)
    assert said
    assert await store.read(TENANT, values) == {}
