"""Decisions over a network that fails at random, on both databases: none is lost, and none takes effect twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from assent.settings import Mode
from tests.api.house import Builder
from tests.federation.desk import Desk, answered, ask, settled
from tests.federation.faults import Fault, faulty
from tests.scoreboard import Count, RecordScore


@pytest.mark.scoreboard
async def test_faulty_network_loses_and_doubles_no_decision(
    build_on_both: Builder,
    request: pytest.FixtureRequest,
    assent_url: str,
    tmp_path: Path,
    count: Count,
    record_score: RecordScore,
) -> None:
    decisions, log = count(full=200, quick=8), tmp_path / "effects"
    desk = await Desk.at(await build_on_both(Mode.DEV))
    threads = [await ask(assent_url, f"question {number}", log=str(log)) for number in range(decisions)]
    async with faulty(assent_url, seed=15, percent=20) as network:
        added, items = await desk.add(network.url), list[str]()
        for number, thread_id in enumerate(threads):
            item = await desk.item_of(added, thread_id)
            await desk.decide(item, verb="respond", message=f"answer {number}")

            items.append(item["id"])
        for item_id in items:
            await settled(desk, item_id)
    given = [await answered(assent_url, thread_id) for thread_id in threads]
    effects = Counter(log.read_text().splitlines())
    lost = sum(answers != [f"answer {number}"] for number, answers in enumerate(given))
    doubled = sum(times > 1 for times in effects.values())
    met = ", ".join(f"{network.faults[fault]} {fault}" for fault in Fault)
    database = request.node.callspec.params["build_on_both"]
    measure = f"{decisions} decisions over a network with faults, {database}"
    record_score(measure, "0 lost, 0 doubled", f"{lost} lost, {doubled} doubled; {met}")
    assert set(network.faults) == set(Fault)
    assert (lost, doubled, len(effects)) == (0, 0, decisions)
