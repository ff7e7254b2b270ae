"""An answer that the graph, or its checkpoint, refuses: the question returns, and says why."""

import logging
from pathlib import Path
from typing import Any

import pytest

from assent.settings import Mode
from tests.api.house import Builder
from tests.api.reviewing import Item, Office, open_office


@pytest.fixture
async def office(build_on_both: Builder) -> Office:
    return await open_office(build_on_both)


async def answered(office: Office, how: str, *, graph: str = "strict", **said: Any) -> Item:
    """The item of a question, after its answer made the run fail."""
    item = await office.asked(graph, {"how": how})
    assert item["failure"] is None
    await office.decided(item, **said)
    await office.rests(item["source"]["thread_id"], status="error")
    return await office.get(item["id"])


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(getattr(record, "reason", "")) for record in caplog.records if record.levelno >= logging.ERROR]


ODD = [{"key": "0", "verb": "accept", "args": {"seats": 3}}]


async def test_a_model_that_refuses_an_answer_is_named_on_the_item(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    item = await answered(office, "", actions=ODD)
    assert item["failure"]["error"] == "ValidationError"
    assert item["failure"]["run_id"] in item["failure"]["message"], "callers of serve find the text in the log"
    assert (await office.state(item["source"]["thread_id"]))["error"]["error"] == "ValidationError"
    assert any("seats come in pairs" in reason for reason in reasons(caplog))


async def test_a_repaired_thread_asks_again_and_takes_another_answer(office: Office) -> None:
    thread = (await answered(office, "", actions=ODD))["source"]["thread_id"]
    assert (await office.agent.post(f"/api/threads/{thread}/repair")).status_code == 200
    again = await office.asked("strict", thread=thread)
    await office.decided(again, actions=[{"key": "0", "verb": "accept", "args": {"seats": 2}}])
    assert (await office.rests(thread, status="idle"))["values"]["kept"] == 2


CONTINUED: dict[str, tuple[str, dict[str, Any]]] = {
    "null input": ("strict", {"input": None}),
    "null input, in a subgraph": ("strict_nested", {"input": None}),
    "empty command": ("strict", {"command": {}}),
    "enqueued": ("strict", {"input": None, "multitask_strategy": "enqueue"}),
    "stored at the end": ("strict", {"input": None, "durability": "exit"}),
}


@pytest.mark.parametrize(("graph", "how"), CONTINUED.values(), ids=CONTINUED)
async def test_a_run_without_input_asks_a_refused_question_again(
    office: Office, graph: str, how: dict[str, Any]
) -> None:
    item = await answered(office, "", graph=graph, actions=ODD)
    thread = item["source"]["thread_id"]
    started = await office.agent.post(f"/threads/{thread}/runs", json={"assistant_id": graph, **how})
    assert started.status_code == 200, started.text
    run = f"/threads/{thread}/runs/{started.json()['run_id']}"
    await office.agent.get(f"{run}/join")
    assert (await office.state(thread))["status"] == "interrupted"
    await takes_an_even_answer(office, thread, follows=item["id"])


async def test_a_node_that_failed_before_it_asked_asks_when_it_is_run_again(office: Office, tmp_path: Path) -> None:
    thread = await office.run("strict", {"how": "fails first", "marker": str(tmp_path / "marker")})
    assert (await office.state(thread))["status"] == "error"
    await office.run("strict", None, thread=thread)
    assert (await office.state(thread))["status"] == "interrupted"
    await takes_an_even_answer(office, thread, follows=None)


async def takes_an_even_answer(office: Office, thread: str, *, follows: str | None) -> None:
    """The thread shows one question, which is that of the node and no breakpoint, and goes on with its answer."""
    state = (await office.agent.get(f"/threads/{thread}/state")).json()
    [question] = [asked["value"] for task in state["tasks"] for asked in task["interrupts"]]
    assert (question, [task["error"] for task in state["tasks"]]) == ("How many seats?", [None])
    [row] = await office.items(f"is:pending thread:{thread}")
    again = await office.get(row["id"])
    assert (again["title"], again["follows"]) == ("How many seats?", follows)
    await office.decided(again, actions=[{"key": "0", "verb": "accept", "args": {"seats": 2}}])
    assert (await office.rests(thread, status="idle"))["values"]["kept"] == 2


async def test_an_answer_that_is_taken_has_no_failure(office: Office) -> None:
    item = await office.asked("strict", {"how": ""})
    await office.decided(item, actions=[{"key": "0", "verb": "accept", "args": {"seats": 2}}])
    assert (await office.rests(item["source"]["thread_id"], status="idle"))["values"]["kept"] == 2
    assert (await office.get(item["id"]))["failure"] is None


async def test_a_developer_reads_the_reason_on_the_item(build: Builder) -> None:
    office = await open_office(build, Mode.DEV)
    assert "seats come in pairs" in (await answered(office, "", actions=ODD))["failure"]["message"]


async def test_a_secret_in_the_reason_is_masked(build: Builder) -> None:
    office = await open_office(build, Mode.DEV)
    item = await office.asked("strict", {"how": "leaks", "password": "hunter2-hunter2"})
    await office.decided(item, "respond", message="mine")
    await office.rests(item["source"]["thread_id"], status="error")
    failure = (await office.get(item["id"]))["failure"]
    assert failure["message"].startswith("cannot sign in with ")
    assert "hunter2" not in failure["message"]


async def test_answer_type_blocked_in_checkpoints_is_named_on_item_and_run(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    item = await answered(office, "keeps", verb="respond", message="200")
    thread = item["source"]["thread_id"]
    [row] = await office.items(f"is:pending thread:{thread}")
    again, state = await office.get(row["id"]), await office.state(thread)
    assert again["follows"] == item["id"]
    for told in (again["failure"]["message"], str(state["error"]), *reasons(caplog)):
        assert "of the state: http:HTTPStatus" in told
        assert "kept" in told
        assert "checkpoint_types" in told


async def test_question_type_blocked_in_checkpoints_fails_the_run_and_is_named(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    thread = await office.run("strict", {"how": "raises"})
    assert "question: http:HTTPStatus" in str((await office.state(thread))["error"])
    assert await office.items(f"thread:{thread}") == []
    assert any("http:HTTPStatus" in reason for reason in reasons(caplog))
