"""Answers over the LangGraph API: exact, once, and never to a question that nobody has seen."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, UnprocessableEntityError

from tests.servers import ServerProcess

ACCEPT: Any = [{"type": "accept", "args": None}]


async def paused(client: LangGraphClient, graph: str, **input: Any) -> tuple[str, list[dict[str, Any]]]:
    """A thread that waits, and what it asks."""
    thread = str((await client.threads.create())["thread_id"])
    result: Any = await client.runs.wait(thread, graph, input={"text": "draft", **input})
    return thread, result["__interrupt__"]


async def pending(client: LangGraphClient, thread: str) -> list[str]:
    response = await client.threads.get(thread)
    return [interrupt["id"] for task in response["interrupts"].values() for interrupt in task]


@pytest.mark.promise("INBOX-11", "INBOX-16")
async def test_positional_answer_reaches_the_only_question(client: LangGraphClient) -> None:
    thread, _ = await paused(client, "hitl")
    result: Any = await client.runs.wait(thread, "hitl", command={"resume": ACCEPT})
    assert result["answer"]["args"] == {"action": "send_email", "args": {"to": "a@b.c", "body": "draft"}}
    assert (await client.threads.get(thread))["status"] == "idle"


WRONG: list[tuple[str, Any]] = [
    ("hitl", None),
    ("hitl", {}),
    ("hitl_batched", {"decisions": []}),
    ("hitl_batched", {"decisions": [{"type": "approve"}, {"type": "approve"}]}),
    ("hitl_batched", {"decisions": [{"type": "nonsense"}]}),
    ("hitl_batched", {"decisions": "approve"}),
    ("hitl_batched", [{"type": "accept", "args": None}]),
    ("hitl_batched", {"decisions": [{"type": "edit"}]}),
    ("hitl_per_call", {"type": "nonsense"}),
    ("hitl_per_call", "approve"),
    ("hitl_per_call", {"type": "edit", "edited_action": {"name": "send_email"}}),
]
RIGHT: dict[str, Any] = {
    "hitl": ACCEPT,
    "hitl_batched": {"decisions": [{"type": "approve"}]},
    "hitl_per_call": {"type": "approve"},
}


@pytest.mark.promise("HITL-06", "HITL-07")
@pytest.mark.parametrize(("graph", "answer"), WRONG)
async def test_a_wrong_answer_is_refused_and_the_question_stays(
    client: LangGraphClient, server: ServerProcess, graph: str, answer: Any
) -> None:
    thread, questions = await paused(client, graph, messages=[{"role": "user", "content": "hello"}])
    (question,) = questions
    body = {"assistant_id": graph, "command": {"resume": {question["id"]: answer}}}
    async with httpx.AsyncClient(base_url=server.url) as http:
        refused = await http.post(f"/threads/{thread}/runs/wait", json=body)
    assert refused.status_code == 422
    assert refused.json()["code"] == "invalid_answer"
    assert await pending(client, thread) == [question["id"]]
    await client.runs.wait(thread, graph, command={"resume": {question["id"]: RIGHT[graph]}})
    assert (await client.threads.get(thread))["status"] == "idle"


async def test_two_answers_to_one_question_have_one_winner(client: LangGraphClient) -> None:
    thread, questions = await paused(client, "hitl")
    command: Any = {"resume": {questions[0]["id"]: ACCEPT}}
    answers = await asyncio.gather(
        *(client.runs.create(thread, "hitl", command=command) for _ in range(8)), return_exceptions=True
    )
    winners = [answer for answer in answers if isinstance(answer, dict)]
    losers = [answer for answer in answers if isinstance(answer, ConflictError)]
    assert (len(winners), len(losers)) == (1, 7)
    told: Any = losers[0].body
    assert told["decision"]["run_id"] == winners[0]["run_id"]
    await client.runs.join(thread, winners[0]["run_id"])


async def test_a_second_click_never_answers_the_next_question(client: LangGraphClient) -> None:
    """The graph asks twice; the same positional answer, sent again, must not reach the second question."""
    thread, first = await paused(client, "twice")
    run = await client.runs.create(thread, "twice", command={"resume": "yes"})
    with pytest.raises(ConflictError):
        await client.runs.create(thread, "twice", command={"resume": "yes"})
    async with asyncio.timeout(90):
        while (await client.runs.get(thread, run["run_id"]))["status"] in ("pending", "running"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    with pytest.raises(ConflictError):  # nobody has seen the second question yet
        await client.runs.create(thread, "twice", command={"resume": "yes"})
    with pytest.raises(ConflictError):  # and the first one is answered
        await client.runs.create(thread, "twice", command={"resume": {first[0]["id"]: "yes"}})
    (second,) = await pending(client, thread)
    assert second != first[0]["id"]
    await client.runs.wait(thread, "twice", command={"resume": {second: "no"}})
    assert (await client.threads.get(thread))["status"] == "idle"


async def test_several_questions_are_answered_by_id_one_after_another(client: LangGraphClient) -> None:
    thread, questions = await paused(client, "parallel")
    first, other = (question["id"] for question in questions)
    with pytest.raises(UnprocessableEntityError, match=first):
        await client.runs.create(thread, "parallel", command={"resume": "yes"})
    await client.runs.wait(thread, "parallel", command={"resume": {first: "yes"}})
    assert await pending(client, thread) == [other]
    await client.runs.wait(thread, "parallel", command={"resume": {other: "no"}})
    assert (await client.threads.get(thread))["status"] == "idle"


async def test_answer_to_an_unknown_question_is_a_conflict_with_the_pending_ids(client: LangGraphClient) -> None:
    thread, questions = await paused(client, "hitl")
    with pytest.raises(ConflictError) as refused:
        await client.runs.create(thread, "hitl", command={"resume": {"0" * 32: ACCEPT}})
    told: Any = refused.value.body
    assert [pending_item["id"] for pending_item in told["pending"]] == [questions[0]["id"]]


@pytest.mark.promise("SERVE-17")
async def test_new_input_to_a_waiting_thread_is_refused(client: LangGraphClient) -> None:
    thread, questions = await paused(client, "hitl")
    with pytest.raises(ConflictError) as refused:
        await client.runs.create(thread, "hitl", input={"text": "another"})
    told: Any = refused.value.body
    assert [pending_item["id"] for pending_item in told["pending"]] == [questions[0]["id"]]
    assert await pending(client, thread) == [questions[0]["id"]]


@pytest.mark.promise("SERVE-17")
async def test_run_enqueued_behind_a_question_waits_for_its_answer(client: LangGraphClient) -> None:
    thread, _ = await paused(client, "hitl")
    later = await client.runs.create(thread, "echo", input={"text": "later"}, multitask_strategy="enqueue")
    assert (await client.threads.get(thread))["status"] == "interrupted"
    await client.runs.wait(thread, "hitl", command={"resume": ACCEPT})
    result = await client.runs.join(thread, later["run_id"])
    assert result["reply"] == "later"


@pytest.mark.promise("SERVE-17")
@pytest.mark.parametrize("strategy", ["interrupt", "rollback"])
async def test_a_newer_message_supersedes_the_question(client: LangGraphClient, strategy: Any) -> None:
    thread, questions = await paused(client, "hitl")
    again: Any = await client.runs.wait(thread, "hitl", input={"text": "new"}, multitask_strategy=strategy)
    (question,) = again["__interrupt__"]
    assert question["value"]["action_request"]["args"]["body"] == "new"
    with pytest.raises(ConflictError):
        await client.runs.create(thread, "hitl", command={"resume": {questions[0]["id"]: ACCEPT}})


async def test_accepted_answer_stays_accepted_when_the_agent_fails(client: LangGraphClient) -> None:
    """LangGraph keeps the first answer, so a second one must not be accepted and then ignored."""
    thread, questions = await paused(client, "fragile")
    answered: Any = {"resume": {questions[0]["id"]: "break"}}
    failed: Any = await client.runs.wait(thread, "fragile", command=answered, raise_error=False)
    assert failed["__error__"]["message"] == "could not do that"
    response = await client.threads.get(thread)
    assert (response["status"], response["interrupts"]) == ("error", {})
    with pytest.raises(ConflictError) as refused:
        await client.runs.create(thread, "fragile", command={"resume": {questions[0]["id"]: "fine"}})
    told: Any = refused.value.body
    assert told["decision"]["value"] == "break"
    again: Any = await client.runs.wait(thread, "fragile", input={"text": "start over"})
    assert again["__interrupt__"]
