"""Answers over the LangGraph API, as stock clients send them, and every other way past a question: what becomes of
the items."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Kind
from assent.kernel.store.transaction import Tx
from assent.review.rows import items
from assent.settings import Mode
from tests.api.house import Builder
from tests.api.reviewing import Item, Office, email, open_office, problem, script
from tests.waiting import until

ACCEPT = [{"type": "accept", "args": {"action": "send_email", "args": {"to": "a@b.c", "body": "x"}}}]
APPROVE = {"decisions": [{"type": "approve"}]}


@pytest.fixture
async def office(build: Builder) -> Office:
    """Where everything is gated."""
    return await open_office(build)


@pytest.fixture
async def open_door(build: Builder) -> Office:
    """Where everything is advisory, as `assent dev` has it."""
    return await open_office(build, Mode.DEV)


def refused(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """LangGraph routes say it in `detail`, a text, and put the rest beside it."""
    told = dict(problem(response, status, code))
    assert isinstance(told["detail"], str)
    return told


async def undisturbed(office: Office, item: Item) -> None:
    now = await office.get(item["id"])
    assert (now["status"], now["revision"], now["decisions"], now["grants"]) == ("PENDING", 1, [], [])
    assert (await office.state(item["source"]["thread_id"]))["status"] == "interrupted"


# Advisory


async def test_caller_who_may_run_answers_advisory_items(open_door: Office) -> None:
    item = await open_door.asked("hitl", {"text": "x"})
    assert item["gated"] is False
    assert item["expires_at"] is None
    answered = await open_door.answer(item["source"]["thread_id"], "hitl", ACCEPT)
    assert answered.json()["answer"]["type"] == "accept"
    done = await open_door.get(item["id"])
    assert (done["status"], done["resolution"], done["decided_by"]) == ("APPROVED", "accepted", item["requester"])
    [decision] = done["decisions"]
    assert (decision["via"], decision["actions"]) == ("langgraph", [{"key": "0", "verb": "approve"}])
    assert done["grants"] == [], "an agent's word grants nothing"
    assert await open_door.kinds(item["id"]) == ["item.created", "item.approved"]
    await open_door.verified()


async def test_keyless_caller_on_loopback_answers_advisory_items_only(open_door: Office) -> None:
    keyless = open_door.house.client()
    item = await open_door.asked("hitl", {"text": "x"}, client=keyless)
    assert item["requester"] == "agent:local-agent"
    problem(await open_door.decide(item, "approve", keyless), 403, "not_allowed")
    ignored = [{"type": "ignore", "args": None}]
    assert (await open_door.answer(item["source"]["thread_id"], "hitl", ignored, keyless)).status_code == 200
    done = await open_door.get(item["id"])
    assert (done["status"], done["resolution"]) == ("REJECTED", "ignored")


async def test_unreadable_answer_is_recorded_as_such(open_door: Office) -> None:
    item = await open_door.asked("hitl", {"text": "x"})
    answered = await open_door.answer(item["source"]["thread_id"], "hitl", {"anything": 1})
    assert answered.json()["answer"] == {"anything": 1}, "and passes as it is"
    done = await open_door.get(item["id"])
    assert (done["status"], done["resolution"]) == ("APPROVED", "answered_elsewhere")


@pytest.mark.parametrize("resume", [None, {}, {"decisions": []}, {"decisions": [{"type": "shrug"}]}])
async def test_answer_that_would_make_the_thread_unusable_is_refused(open_door: Office, resume: Any) -> None:
    item = await open_door.asked("batched", script(email()))
    answered = await open_door.answer(item["source"]["thread_id"], "batched", resume)
    assert answered.status_code == 422, answered.text
    await undisturbed(open_door, item)
    assert (await open_door.answer(item["source"]["thread_id"], "batched", APPROVE)).status_code == 200


@pytest.mark.promise("REVIEW-02")
async def test_clarification_is_answered_by_any_caller_who_may_run(office: Office) -> None:
    asked = {"kind": "clarification", "clarifications": [{"call_id": "c", "question": "Which?", "context": ""}]}
    item = await office.asked("asking", {"questions": [asked, asked]})
    assert item["gated"] is False
    told = {"responses": [{"call_id": "c", "response": "red"}]}
    assert (await office.answer(item["source"]["thread_id"], "asking", told)).status_code == 200
    [second] = await office.items(f"is:pending thread:{item['source']['thread_id']}")
    assert (await office.decide(second, "respond", office.agent, message="blue")).status_code == 200
    assert (await office.values(item["source"]["thread_id"]))["answers"][1]["responses"][0]["response"] == "blue"


# Gated


@pytest.mark.promise("P6")
@pytest.mark.promise("REVIEW-02")
async def test_agent_cannot_answer_a_gated_item(office: Office, tmp_path: Path) -> None:
    log = tmp_path / "sent"
    item = await office.asked("batched", script(email("x", log)))
    thread = item["source"]["thread_id"]
    service = office.house.client(await office.house.key(Kind.SERVICE))
    assert (await office.agent.patch(f"/threads/{thread}", json={"visibility": "shared"})).status_code == 200
    for client in (office.agent, service):
        for resume in (APPROVE, {item["source"]["interrupt_id"]: APPROVE}):
            told = refused(await office.answer(thread, "batched", resume, client), 403, "not_allowed")
            assert [pending_item["id"] for pending_item in told["pending"]] == [item["source"]["interrupt_id"]]
            assert told["hint"]
        streamed = await client.post(
            f"/threads/{thread}/runs/stream", json={"assistant_id": "batched", "command": {"resume": APPROVE}}
        )
        refused(streamed, 403, "not_allowed")
        started = await client.post(
            f"/threads/{thread}/runs", json={"assistant_id": "batched", "command": {"resume": APPROVE}}
        )
        refused(started, 403, "not_allowed")
    await undisturbed(office, item)
    assert not log.exists()
    assert (await office.kinds(item["id"])).count("item.attempt_refused") == 2, "once for each of them"
    await office.verified()


async def test_answer_of_a_reviewer_decides_the_item_with_grants(office: Office, tmp_path: Path) -> None:
    log = tmp_path / "sent"
    item = await office.asked("batched", script(email("x", log), email("y", log)))
    two = {
        "decisions": [
            {
                "type": "edit",
                "edited_action": {"name": "send_email", "args": {"to": "n", "body": "n", "log": str(log)}},
            },
            {"type": "reject", "message": "no"},
        ]
    }
    answered = await office.answer(item["source"]["thread_id"], "batched", two, office.ana)
    assert answered.status_code == 200, answered.text
    done = await office.get(item["id"])
    assert (done["status"], done["resolution"], done["revision"]) == ("APPROVED", "partial", 2)
    assert [(grant["call_id"], grant["revision"]) for grant in done["grants"]] == [("call_0_0", 2)]
    assert log.read_text() == "n: n\n"
    told = refused(await office.answer(item["source"]["thread_id"], "batched", two, office.ben), 409, "answer_refused")
    assert told["pending"] == []


async def test_answer_to_a_gated_item_must_be_exact(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    told = refused(
        await office.answer(item["source"]["thread_id"], "hitl", {"any": 1}, office.ana), 422, "invalid_answer"
    )
    assert told["errors"]
    await undisturbed(office, item)


@pytest.mark.promise("P6")
async def test_answer_of_one_reviewer_does_not_meet_a_rule_with_two_approvals(office: Office) -> None:
    await office.policy({"default": {"name": "two", "then": "ask", "approvals": 2}})
    item = await office.asked("hitl", {"text": "x"})
    told = await office.answer(item["source"]["thread_id"], "hitl", ACCEPT, office.ana)
    assert told.status_code == 409, told.text
    await undisturbed(office, item)


@pytest.mark.promise("P4")
async def test_answer_within_the_grace_period_is_409_with_the_decision(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    decided = await office.decided(item, "ignore", grace_seconds=60)
    told = refused(await office.answer(item["source"]["thread_id"], "hitl", ACCEPT, office.ben), 409, "answer_refused")
    assert told["decision"]["id"] == decided["decisions"][0]["id"]
    await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")
    assert (await office.answer(item["source"]["thread_id"], "hitl", ACCEPT, office.ben)).status_code == 200
    assert (await office.get(item["id"]))["status"] == "APPROVED"


@pytest.mark.promise("P4")
async def test_concurrent_answers_and_decisions_have_one_winner(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    thread = item["source"]["thread_id"]
    said = await asyncio.gather(
        *(office.answer(thread, "hitl", ACCEPT, client) for client in (office.ana, office.ben)),
        *(office.decide(item, "ignore", client) for client in (office.ana, office.ben)),
    )
    assert sorted(response.status_code for response in said) == [200, 409, 409, 409]
    await office.rests(thread, status="idle")
    done = await office.get(item["id"])
    assert len(done["decisions"]) == 1
    answer = (await office.values(thread))["answer"]["type"]
    assert answer == {"APPROVED": "accept", "REJECTED": "ignore"}[done["status"]]


# Past the question


@pytest.mark.promise("P1")
@pytest.mark.promise("P6")
async def test_agent_cannot_run_a_thread_past_a_gated_item(office: Office, tmp_path: Path) -> None:
    log = tmp_path / "sent"
    item = await office.asked("batched", script(email("x", log)))
    thread = item["source"]["thread_id"]
    history = (await office.agent.get(f"/threads/{thread}/history")).json()
    start = history[-1]["checkpoint"]
    run: dict[str, Any] = {"assistant_id": "batched"}
    new = {**run, "input": script(email("y", log))}
    tries: dict[str, tuple[str, dict[str, Any]]] = {
        "state": (f"/threads/{thread}/state", {"values": {"messages": []}}),
        "as node": (f"/threads/{thread}/state", {"values": None, "as_node": "tools"}),
        "end": (f"/threads/{thread}/state", {"values": None, "as_node": "__end__"}),
        "goto": (f"/threads/{thread}/runs", {**run, "command": {"goto": "tools"}}),
        "update": (f"/threads/{thread}/runs", {**run, "command": {"update": {"messages": []}}}),
        "fork": (f"/threads/{thread}/runs", {**new, "checkpoint": start}),
        "interrupt": (f"/threads/{thread}/runs", {**new, "multitask_strategy": "interrupt"}),
        "rollback": (f"/threads/{thread}/runs", {**new, "multitask_strategy": "rollback"}),
        "reject": (f"/threads/{thread}/runs", {**new, "multitask_strategy": "reject"}),
    }
    for name, (path, body) in tries.items():
        response = await office.agent.post(path, json=body)
        assert response.status_code == 409, (name, response.status_code, response.text)
        await undisturbed(office, item)
    assert "item.attempt_refused" in await office.kinds(item["id"])
    assert not log.exists()
    await office.decided(item, "approve")
    await office.rests(thread, status="idle")
    assert log.read_text() == "a@b.c: x\n"


@pytest.mark.parametrize("way", ["state", "goto", "interrupt", "rollback", "fork"])
async def test_run_by_a_reviewer_closes_the_pending_items(office: Office, way: str) -> None:
    item = await office.asked("hitl", {"text": "x"})
    thread = item["source"]["thread_id"]
    run: dict[str, Any] = {"assistant_id": "hitl", "input": {"text": "new"}}
    history = (await office.agent.get(f"/threads/{thread}/history")).json()
    bodies = {
        "goto": {
            "assistant_id": "hitl",
            "command": {"goto": "review", "update": {"text": "new"}},
            "multitask_strategy": "interrupt",
        },
        "interrupt": {**run, "multitask_strategy": "interrupt"},
        "rollback": {**run, "multitask_strategy": "rollback"},
        "fork": {**run, "checkpoint": history[-1]["checkpoint"], "multitask_strategy": "interrupt"},
    }
    if way == "state":
        moved = await office.ana.post(f"/threads/{thread}/state", json={"values": None, "as_node": "__end__"})
    else:
        moved = await office.ana.post(f"/threads/{thread}/runs/wait", json=bodies[way])
    assert moved.status_code == 200, moved.text
    await office.rests(thread)
    old = await office.get(item["id"])
    assert old["status"] == "CANCELLED", "never left as a ghost"
    assert old["resolution"] == ("thread_ended" if way == "state" else "superseded")
    waiting = await office.items(f"is:pending thread:{thread}")
    assert len(waiting) == (0 if way == "state" else 1)


async def test_queued_run_leaves_the_question_pending(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    thread = item["source"]["thread_id"]
    body = {"assistant_id": "hitl", "input": {"text": "later"}, "multitask_strategy": "enqueue"}
    assert (await office.agent.post(f"/threads/{thread}/runs", json=body)).status_code == 200
    await undisturbed(office, item)
    await office.decided(item, "ignore")

    async def asked_again() -> list[Item]:
        return [
            pending_item
            for pending_item in await office.items(f"is:pending thread:{thread}")
            if pending_item["id"] != item["id"]
        ]

    await until(asked_again)


@pytest.mark.parametrize("who", ["agent", "ana"])
async def test_deleting_a_thread_closes_its_items(office: Office, who: str) -> None:
    item = await office.asked("hitl", {"text": "x"})
    client: httpx.AsyncClient = getattr(office, who)
    gone = await client.delete(f"/threads/{item['source']['thread_id']}")
    assert gone.status_code in (200, 204), gone.text
    closed = await office.get(item["id"])
    assert (closed["status"], closed["resolution"]) == ("CANCELLED", "thread_ended")
    problem(await office.decide(item, "approve"), 409, "invalid_transition")
    await office.verified()


async def test_copy_of_a_waiting_thread_has_its_own_item(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    copied = await office.agent.post(f"/threads/{item['source']['thread_id']}/copy")
    assert copied.status_code == 200, copied.text
    other = copied.json()["thread_id"]
    [second] = await office.items(f"is:pending thread:{other}")
    assert second["gated"] is True
    assert (await office.answer(other, "hitl", ACCEPT)).status_code == 403
    await office.decided(second, "ignore")
    assert (await office.values(other))["answer"]["type"] == "ignore"
    await undisturbed(office, item)
    await office.decided(item, "approve")
    assert (await office.values(item["source"]["thread_id"]))["answer"]["type"] == "accept"


# Breakpoints


async def test_approved_breakpoint_continues_the_run(office: Office) -> None:
    item = await office.asked("breakpoint", {"text": "x"})
    assert (item["type"], item["dialect"], item["actions"][0]["allowed"]) == (
        "breakpoint",
        "breakpoint",
        ["approve", "reject"],
    )
    past = await office.agent.post(
        f"/threads/{item['source']['thread_id']}/runs/wait", json={"assistant_id": "breakpoint"}
    )
    assert past.status_code == 409, past.text
    await undisturbed(office, item)
    await office.decided(item, "approve")
    assert (await office.values(item["source"]["thread_id"]))["answer"] == "published: x, prepared"
    assert await office.items("is:pending") == []


async def test_rejecting_a_breakpoint_ends_the_thread(office: Office) -> None:
    item = await office.asked("breakpoint", {"text": "x"})
    await office.decided(item, "reject")
    state = await office.rests(item["source"]["thread_id"], status="idle")
    assert "answer" not in state["values"]
    done = await office.get(item["id"])
    assert (done["status"], done["resolution"]) == ("REJECTED", "rejected")


async def test_reviewer_passes_a_breakpoint_by_a_run(office: Office) -> None:
    item = await office.asked("breakpoint", {"text": "x"})
    gone_on = await office.ana.post(
        f"/threads/{item['source']['thread_id']}/runs/wait", json={"assistant_id": "breakpoint", "input": None}
    )
    assert gone_on.json()["answer"] == "published: x, prepared"
    done = await office.get(item["id"])
    assert (done["status"], done["decisions"][0]["via"]) == ("APPROVED", "langgraph")


# What agents ask in odd ways


@pytest.mark.promise("INBOX-27")
@pytest.mark.promise("INBOX-28")
@pytest.mark.promise("HITL-23")
async def test_malformed_question_becomes_a_raw_item_with_its_problems(office: Office) -> None:
    odd: dict[str, Any] = {
        "config": {"action_request": {"action": "x", "args": {}}},
        "action_request": {"action_request": {"action": 7, "args": "no"}, "config": {}},
        "review_configs": {"action_requests": [{"name": "x", "args": {}}], "review_configs": "none"},
        "tool_calls": {"kind": "confirmation", "tool_calls": [{"call_id": 1}]},
    }
    for field, question in odd.items():
        item = await office.asked("asking", {"questions": [question]})
        assert (item["dialect"], item["type"]) == ("raw", "question"), question
        assert any(field in one["path"] for one in item["problems"]), (field, item["problems"])
        assert item["asked"] == question
        await office.decided(item, actions=[{"key": "0", "verb": "respond", "args": {"fine": True}}])
        assert (await office.values(item["source"]["thread_id"]))["answers"] == [{"fine": True}]
    for question in (None, 7, "", [], {"a": [{"b": None}]}, "x" * 5000):
        item = await office.asked("asking", {"questions": [question]})
        assert item["dialect"] == "raw"
    assert (await office.page())["counts"] == {"pending": 6, "resolved": 4}


@pytest.mark.promise("INBOX-22")
async def test_the_documented_example_reaches_the_inbox(office: Office) -> None:
    call = {"id": "c1", "name": "email", "args": {"subject": "Hi", "to": "a@b.c", "body": "x"}}
    messages = [{"role": "ai", "content": "", "tool_calls": [call]}]
    item = await office.asked("inbox_example", {"messages": messages})
    assert item["actions"][0]["allowed"] == ["respond", "ignore"]
    assert item["actions"][0]["description"].startswith("# Hi")
    await office.decided(item, "respond", message="looks good")
    assert (await office.values(item["source"]["thread_id"]))["messages"][-1]["content"] == "looks good"


async def test_parallel_questions_are_separate_items(office: Office) -> None:
    thread = await office.run("parallel", {"text": "x"})
    items = {item["title"]: item for item in await office.items(f"is:pending thread:{thread}")}
    assert set(items) == {"left?", "right?"}
    told = refused(await office.answer(thread, "parallel", "both", office.ana), 422, "invalid_answer")
    assert len(told["pending"]) == 2
    await office.decided(items["right?"], "respond", message="R")
    await office.rests(thread, status="interrupted")
    assert [item["id"] for item in await office.items(f"is:pending thread:{thread}")] == [items["left?"]["id"]]
    await office.decided(items["left?"], "respond", message="L")
    assert sorted((await office.values(thread))["answers"]) == ["left=L", "right=R"]
    assert len(await office.items(f"thread:{thread}")) == 2, "no duplicates afterwards"


async def test_parallel_questions_can_be_decided_concurrently(office: Office) -> None:
    thread = await office.run("parallel", {"text": "x"})
    left, right = sorted(await office.items(f"is:pending thread:{thread}"), key=lambda item: str(item["title"]))
    said = await asyncio.gather(
        office.decide(left, "respond", message="L"), office.decide(right, "respond", office.ben, message="R")
    )
    assert [response.status_code for response in said] == [200, 200]
    await office.rests(thread, status="idle")
    assert sorted((await office.values(thread))["answers"]) == ["left=L", "right=R"]
    assert {item["status"] for item in await office.items(f"thread:{thread}")} == {"APPROVED"}


async def test_two_questions_in_one_node_are_asked_one_after_the_other(office: Office) -> None:
    first = await office.asked("twice", {"text": "x"})
    thread = first["source"]["thread_id"]
    await office.decided(first, "respond", message="one")
    await office.rests(thread, status="interrupted")
    [second] = await office.items(f"is:pending thread:{thread}")
    assert second["title"] == "second, after one?"
    assert second["id"] != first["id"] or second["revision"] == 2
    await office.decided(second, "respond", message="two")
    assert (await office.values(thread))["answers"] == ["one", "two"]


async def test_repeated_question_is_a_new_item(office: Office) -> None:
    first = await office.asked("asking", {"questions": ["Why?", "Why?"]})
    thread = first["source"]["thread_id"]
    await office.decided(first, "respond", message="one")
    await office.rests(thread, status="interrupted")
    [second] = await office.items(f"is:pending thread:{thread}")
    assert (second["id"] != first["id"], second["revision"]) == (True, 1)
    problem(await office.decide(first, "respond", message="again"), 409, "already_decided")
    await office.decided(second, "respond", message="two")
    assert (await office.values(thread))["answers"] == ["one", "two"]


async def test_repaired_thread_asks_again_after_a_failed_answer(office: Office) -> None:
    item = await office.asked("fragile", {"text": "x"})
    thread = item["source"]["thread_id"]
    await office.decided(item, "respond", message="break")
    await office.rests(thread, status="error")
    assert await office.items(f"is:pending thread:{thread}") == [], "nothing waits: the answer was taken"
    problem(await office.decide(item, "respond", message="fine"), 409, "already_decided")
    repaired = await office.agent.post(f"/api/threads/{thread}/repair")
    assert repaired.status_code == 200, repaired.text
    await office.run("fragile", None, thread=thread)
    [again] = await office.items(f"is:pending thread:{thread}")
    assert again["id"] != item["id"]
    await office.decided(again, "respond", message="fine")
    await office.rests(thread, status="idle")
    assert (await office.values(thread))["answer"] == "fine"


async def test_question_inside_a_subgraph_becomes_an_item(office: Office) -> None:
    item = await office.asked("subgraph", {"text": "x", "ask": True})
    await office.decided(item, "respond", message="yes")
    assert (await office.values(item["source"]["thread_id"]))["log"][-2:] == ["inner: yes", "last"]


async def test_stateless_run_keeps_its_thread_until_the_item_is_decided(office: Office) -> None:
    ran = await office.agent.post("/runs/wait", json={"assistant_id": "hitl", "input": {"text": "x"}})
    assert ran.status_code == 200, ran.text
    [item] = await office.items("is:pending")
    thread = item["source"]["thread_id"]
    assert (await office.state(thread))["status"] == "interrupted"
    await office.decided(item, "approve")

    async def gone() -> bool:
        return bool((await office.agent.get(f"/threads/{thread}")).status_code == 404)

    await until(gone)
    done = await office.get(item["id"])
    assert (done["status"], done["delivery"]["status"]) == ("APPROVED", "delivered")
    await office.verified()


@pytest.mark.promise("P9")
async def test_reading_an_item_changes_nothing(office: Office) -> None:
    item = await office.asked("hitl", {"text": "x"})
    thread = item["source"]["thread_id"]
    before = await office.kinds(item["id"])
    for path in (
        f"/threads/{thread}",
        f"/threads/{thread}/state",
        f"/threads/{thread}/history",
        f"/threads/{thread}/runs",
    ):
        assert (await office.agent.get(path)).status_code == 200
    assert (await office.agent.post("/threads/search", json={"status": "interrupted"})).status_code == 200
    assert await office.kinds(item["id"]) == before
    await undisturbed(office, item)


# An edit is judged like what is asked


WATCHED = {
    "default": "advise",
    "rules": [
        {"name": "evil", "when": "has(args.to) && args.to == 'evil'", "then": "never"},
        {"name": "locked", "when": "has(args.to) && args.to == 'locked'", "then": "ask", "verbs": ["reject"]},
        {"name": "big", "when": "has(args.to) && args.to == 'big'", "then": "ask", "approvals": 2},
        {"name": "one", "when": "has(args.to) && args.to == 'one'", "then": "ask"},
    ],
}


def edit_to(graph: str, to: str, log: Path) -> dict[str, Any]:
    """The stock client's way to answer with other arguments."""
    args = {"to": to, "body": "x", "log": str(log)}
    said = {"type": "edit", "edited_action": {"name": "send_email", "args": args}}
    return {"decisions": [said]} if graph == "batched" else said


@pytest.mark.promise("P1")
@pytest.mark.promise("P6")
@pytest.mark.parametrize("graph", ["batched", "per_call"])
@pytest.mark.parametrize(
    ("to", "who", "status"),
    [
        ("evil", "agent", 422),
        ("evil", "ana", 422),
        ("locked", "agent", 422),
        ("locked", "ana", 422),
        ("big", "agent", 403),
        ("big", "ana", 409),
        ("one", "agent", 403),
    ],
)
async def test_edit_is_judged_by_the_policy_before_it_runs(
    office: Office, tmp_path: Path, graph: str, to: str, who: str, status: int
) -> None:
    await office.policy(WATCHED)
    log = tmp_path / "sent"
    item = await office.asked(graph, script(email("x", log)))
    assert item["gated"] is False
    client: httpx.AsyncClient = getattr(office, who)
    told = await office.answer(item["source"]["thread_id"], graph, edit_to(graph, to, log), client)
    assert told.status_code == status, told.text
    if status == 422:
        assert [error["path"] for error in told.json()["errors"]] == ["actions[0].args"]
    await undisturbed(office, item)
    assert not log.exists()
    await office.verified()


@pytest.mark.parametrize(("to", "who", "grants"), [("fine", "agent", 0), ("fine", "ana", 1), ("one", "ana", 1)])
async def test_edit_allowed_by_the_policy_runs(office: Office, tmp_path: Path, to: str, who: str, grants: int) -> None:
    await office.policy(WATCHED)
    log = tmp_path / "sent"
    item = await office.asked("batched", script(email("x", log)))
    client: httpx.AsyncClient = getattr(office, who)
    told = await office.answer(item["source"]["thread_id"], "batched", edit_to("batched", to, log), client)
    assert told.status_code == 200, told.text
    assert log.read_text() == f"{to}: x\n"
    done = await office.get(item["id"])
    assert (done["status"], done["resolution"], done["revision"]) == ("APPROVED", "edited", 2)
    assert len(done["grants"]) == grants, "an agent's word grants nothing"


@pytest.mark.promise("P1")
@pytest.mark.parametrize("to", ["evil", "locked"])
async def test_edit_of_a_gated_item_is_judged_on_both_apis(office: Office, tmp_path: Path, to: str) -> None:
    await office.policy({**WATCHED, "default": "ask"})
    log = tmp_path / "sent"
    item = await office.asked("batched", script(email("x", log)))
    resume = edit_to("batched", to, log)
    told = refused(
        await office.answer(item["source"]["thread_id"], "batched", resume, office.ana), 422, "invalid_answer"
    )
    assert [error["path"] for error in told["errors"]] == ["actions[0].args"]
    args = {"to": to, "body": "x", "log": str(log)}
    said = await office.decide(item, actions=[{"key": "0", "verb": "edit", "args": args}])
    assert [error["path"] for error in problem(said, 422, "invalid_decision")["errors"]] == ["actions[0].args"]
    await undisturbed(office, item)
    assert not log.exists()


# Too late


@pytest.mark.promise("P3")
@pytest.mark.promise("P4")
@pytest.mark.parametrize("default", ["ask", "advise"])
@pytest.mark.parametrize("said", ["approve", "edit", "reject"])
async def test_a_revision_that_was_asked_for_is_not_overridden(
    office: Office, tmp_path: Path, default: str, said: str
) -> None:
    await office.policy({"default": default})
    log = tmp_path / "sent"
    item = await office.asked("batched", script(email("x", log)))
    asked = await office.ask_revision(item, grace_seconds=60)
    assert asked.status_code == 200, asked.text
    resume = edit_to("batched", "b", log) if said == "edit" else {"decisions": [{"type": said}]}
    thread = item["source"]["thread_id"]
    for client in (office.ben, office.agent):
        told = refused(await office.answer(thread, "batched", resume, client), 409, "already_decided")
        assert told["decision"]["kind"] == "revision_request"
    now = await office.get(item["id"])
    assert (now["status"], now["revision"], len(now["decisions"])) == ("REVISION_REQUESTED", 1, 1)
    assert (await office.ana.delete(f"/api/inbox/items/{item['id']}/decision")).status_code == 200
    assert (await office.answer(thread, "batched", APPROVE, office.ben)).status_code == 200
    assert log.read_text() == "a@b.c: x\n"


async def let_expire(office: Office, item: Item) -> None:
    """Its time is over, and nobody has come by to close it yet."""

    def write(tx: Tx) -> None:
        stored_item = items.get(tx, item["id"])
        assert stored_item is not None
        items.change(tx, stored_item, expires_at=tx.now())

    await office.house.services.store.write("default", write)


@pytest.mark.promise("P8")
@pytest.mark.parametrize("default", ["ask", "advise"])
async def test_expired_item_cannot_be_answered(office: Office, tmp_path: Path, default: str) -> None:
    await office.policy({"default": default})
    log = tmp_path / "sent"
    item = await office.asked("batched", script(email("x", log)))
    await let_expire(office, item)
    told = await office.answer(item["source"]["thread_id"], "batched", APPROVE, office.ana)
    refused(told, 409, "invalid_transition")
    await undisturbed(office, item)
    assert not log.exists()


@pytest.mark.promise("P8")
async def test_expired_breakpoint_cannot_be_passed(office: Office) -> None:
    item = await office.asked("breakpoint", {"text": "x"})
    await let_expire(office, item)
    body = {"assistant_id": "breakpoint", "input": None}
    past = await office.ana.post(f"/threads/{item['source']['thread_id']}/runs/wait", json=body)
    refused(past, 409, "invalid_transition")
    await undisturbed(office, item)
