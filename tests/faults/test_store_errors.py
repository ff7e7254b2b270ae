"""A store error at every call of a gated run: it is never taken for a success, and no question is lost or doubled.

Every round is a thread of its own: its agent asks, a person approves, the call is made. One store call of its runs
fails on the way, or several in a row. Where nobody can know whether the call was made, a person looks and says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from assent.runs import losses
from assent.runs.engine import runner
from assent.runs.project.gate_keeper import ServerKeeper
from tests.faults.arena import Arena, doubted
from tests.faults.outages import ACT, ASK, Fault, Outages, outages
from tests.graphs_gated.attempts import script
from tests.scoreboard import Count, RecordScore

AT_ONCE = 16
MOST_ANSWERS = 4

pytestmark = [pytest.mark.promise("P2"), pytest.mark.promise("P12")]


@dataclass
class Round:
    tag: str
    fault: Fault | None
    thread: str = ""
    doubts: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def wrong(self) -> str | None:
        if self.facts["effects"] > 1 or self.facts["items"] > 1:
            return "doubled"
        if self.facts["status"] != "idle":
            return "stuck"
        return None if self.facts["effects"] == 1 else "false success"


@pytest.fixture
def failing(arena: Arena) -> Iterator[Outages]:
    with outages(arena.house.services.store) as outage:
        yield outage


async def went(arena: Arena, failing: Outages, graph: str, round_run: Round) -> Round:
    round_run.thread = await arena.thread()
    if round_run.fault is not None:
        failing.faults[round_run.thread] = round_run.fault
    await arena.run(round_run.thread, graph, how="", input=script({"log": str(arena.log), "tag": round_run.tag}))
    thread = await arena.rests(round_run.thread)
    for _ in range(MOST_ANSWERS):
        if not await _answered(arena, round_run):
            break
        thread = await arena.rests(round_run.thread)
    every = await arena.items(round_run.thread, "")
    round_run.facts = {"status": thread["status"], "items": len(every), "effects": arena.effects.count(round_run.tag)}
    round_run.facts["asked"] = [(item["dialect"], item["status"], item["execution"]) for item in every]
    return round_run


async def _answered(arena: Arena, round_run: Round) -> bool:
    """Whether there was something to answer. Who is asked about a doubt looks whether it happened."""
    for item in await arena.items(round_run.thread, ""):
        if item["execution"] == "in_doubt":
            round_run.doubts += 1
            outcome = "done" if round_run.tag in arena.effects else "run_again"
            path = f"/api/inbox/items/{item['id']}/in-doubt"
            body = {"outcome": outcome, "grant_id": doubted(item)}
            return bool((await arena.ana.post(path, json=body)).status_code == 200)
        if item["status"] == "PENDING":
            return bool((await arena.decide(item, "approve")).status_code == 200)
    return False


async def _calls(arena: Arena, failing: Outages, graph: str) -> dict[str, int]:
    """How many store calls the runs make where nothing fails."""
    counted_round = await went(arena, failing, graph, Round(f"{graph}-counted", None))
    assert counted_round.wrong is None, counted_round.facts
    return {phase: len(failing.calls[counted_round.thread, phase]) for phase in (ASK, ACT)}


def faults(calls: dict[str, int], lengths: Sequence[int]) -> Iterator[Fault]:
    """At every call. With several lengths both kinds of each, otherwise the kinds by turns."""
    kinds = (False, True)
    for phase, count in calls.items():
        for at in range(1, count + 1):
            for committed in kinds if len(lengths) > 1 else [kinds[at % 2]]:
                yield from (Fault(phase, at, committed, length) for length in lengths)


async def planned(arena: Arena, failing: Outages, graph: str, lengths: Sequence[int] = (1,)) -> list[Round]:
    calls = await _calls(arena, failing, graph)
    return [Round(f"{graph}-{number}", fault) for number, fault in enumerate(faults(calls, lengths))]


async def all_went(arena: Arena, failing: Outages, graph: str, rounds: list[Round]) -> list[Round]:
    room = asyncio.Semaphore(AT_ONCE)

    async def go(round_run: Round) -> Round:
        async with room:
            return await went(arena, failing, graph, round_run)

    return list(await asyncio.gather(*map(go, rounds)))


def counted(rounds: list[Round]) -> Counter[str]:
    return Counter(round_done.wrong for round_done in rounds if round_done.wrong is not None)


@pytest.mark.promise("DROP-02")
@pytest.mark.scoreboard
@pytest.mark.timeout(900)
@pytest.mark.parametrize("graph", ["gated", "forgiving"])
async def test_a_store_error_at_any_call_has_no_wrong_outcome(
    arena: Arena, failing: Outages, graph: str, count: Count, record_score: RecordScore
) -> None:
    lengths = (1, 2, 4, 8)[: count(full=4, quick=1)]
    rounds = await all_went(arena, failing, graph, await planned(arena, failing, graph, lengths))
    wrong = [(round_done.fault, round_done.wrong, round_done.facts) for round_done in rounds if round_done.wrong]
    tally = counted(rounds)
    where = "SQLite" if arena.house.settings.database.startswith("sqlite") else "Postgres"
    record_score(
        f"store errors at every store call of a gated run: {graph}, {where}",
        "0 stuck, 0 doubled, 0 false success",
        f"{len(rounds)} rounds, {failing.injected} errors: {tally['stuck']} stuck, {tally['doubled']} doubled, "
        f"{tally['false success']} false success; {sum(bool(each.doubts) for each in rounds)} in doubt and settled",
    )
    assert failing.injected >= len(rounds)
    assert not wrong


@pytest.mark.timeout(300)
async def test_control_unnoticed_errors_have_wrong_outcomes(
    arena: Arena, failing: Outages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "is_cut_off", lambda value: False)
    monkeypatch.setattr(losses, "require_none", lambda: None)
    monkeypatch.setattr(losses, "raised_for", lambda lost, error: None)
    monkeypatch.setattr(ServerKeeper, "failed", lambda self, error: None)
    monkeypatch.setattr(runner, "_is_between_steps", lambda snapshot: False)
    for graph in ("gated", "forgiving"):
        assert await _any_wrong(arena, failing, graph), graph


async def _any_wrong(arena: Arena, failing: Outages, graph: str) -> bool:
    """Looks for the first wrong outcome only."""
    rounds = await planned(arena, failing, graph)
    for first in range(0, len(rounds), AT_ONCE):
        if counted(await all_went(arena, failing, graph, rounds[first : first + AT_ONCE])):
            return True
    return False
