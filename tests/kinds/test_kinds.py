"""Each kind of graph that asks, answered through each surface: what is asked can be read, the effect of the answer
happens once, and the author's own classes stay what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kinds.cases import CASES, TYPES, WHY, YES, Case
from tests.kinds.office import Office
from tests.kinds.surfaces import Surface

COLUMNS = [("sqlite", name) for name in ("rest", "sdk", "cli", "web")] + [("postgres", "rest"), ("postgres", "sdk")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize(("database", "surface"), COLUMNS)
async def test_question_is_shown_answered_and_takes_effect_once(
    office: Office, answering: Surface, case: Case, tmp_path: Path
) -> None:
    log = tmp_path / "effects"
    thread = await office.run(case, log)
    items = await office.items(thread)
    assert [item["gated"] for item in items] == [case.gated] * len(items)
    assert not log.exists()
    await answering.answer(case, thread, items)
    values = await office.ended(thread)
    assert values["types"] == TYPES
    assert sorted(log.read_text().splitlines() if log.exists() else []) == case.effects()
    assert (WHY in json.dumps(values)) == case.is_told_why
    assert await office.items(thread) == []


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_state_saved_by_a_workflow_keeps_its_own_classes(office: Office, database: str, tmp_path: Path) -> None:
    [case] = [case for case in CASES if case.graph == "functional"]
    thread = await office.run(case, tmp_path / "effects")
    for earlier in ([], TYPES):
        answered: Any = await office.person.runs.wait(thread, case.graph, command={"resume": YES})
        assert answered["previous"] == earlier
        await office.agent.runs.wait(thread, case.graph, input=case.input(tmp_path / "effects"))


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_edit_refused_by_an_own_class_is_asked_again(office: Office, database: str, tmp_path: Path) -> None:
    log, case = tmp_path / "effects", Case("per_call", ("edit",))
    thread = await office.run(case, log)
    [item] = await office.items(thread)
    args = item["actions"][0]["args"]
    unknown = {"key": "0", "verb": "edit", "args": {**args, "order": {**args["order"], "number": 101}}}
    await office.decide(item, [unknown])
    await office.failed(thread)
    await office.agent.runs.wait(thread, case.graph, input=None)
    [again] = await office.items(thread)
    assert (again["follows"], again["actions"][0]["args"]) == (item["id"], args)
    await office.decide(again, [{"key": "0", "verb": "approve"}])
    assert (await office.ended(thread))["types"] == TYPES
    assert log.read_text().splitlines() == ["1 Bern HIGH 598 EUR"]
