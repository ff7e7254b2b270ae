"""Whose run it is: an answer alone continues the run that asked, anything more is a run of its caller; and where duties
are separate, nobody decides what they have shaped themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from assent.identity.model.access import Role, operator
from assent.runs import admission
from tests.faults.arena import Arena, Json
from tests.waiting import until

pytestmark = pytest.mark.promise("P6")

ANSWER = {"responses": [{"call_id": "1", "response": "this one"}]}
SEPARATE = {"default": {"name": "separate", "then": "ask", "separate_duties": True}}


async def asked(arena: Arena, client: httpx.AsyncClient | None = None, tag: str = "asked") -> str:
    """A thread that asks what nobody has to approve, and moves money afterwards. It is shared."""
    thread = await arena.thread(client, visibility="shared")
    done = await arena.run(thread, "asking", client, input={"log": str(arena.log), "tag": tag})
    assert done.status_code == 200, done.text
    return thread


async def actor_of(arena: Arena, run: Json) -> tuple[str, str]:
    """The actor of a run, and the user that its graph sees."""
    from assent.threads.rows import runs

    run_row = await arena.house.services.store.read("default", runs.get, run["run_id"])
    assert run_row is not None
    return run_row.actor, run_row.kwargs["config"]["configurable"]["langgraph_auth_user_id"]


async def answered(arena: Arena, thread: str, client: httpx.AsyncClient, **more: Any) -> Json:
    command = {"resume": ANSWER, **more.pop("command", {})}
    made = await arena.run(thread, "asking", client, "", command=command, **more)
    assert made.status_code == 200, made.text
    await arena.rests(thread)
    body: Json = made.json()
    return body


STEERS: tuple[Json, ...] = (
    {"command": {"goto": "move"}},
    {"command": {"update": {"tag": "steered"}}},
    {"input": {"tag": "steered"}},
    {"context": {"tag": "steered"}},
    {"config": {"configurable": {"tag": "steered"}}},
)


async def test_bare_answer_continues_the_run_of_the_agent_that_asked(arena: Arena) -> None:
    thread = await asked(arena)
    agent = await arena.actor(arena.agent)
    run = await answered(arena, thread, arena.other)
    assert await actor_of(arena, run) == (agent, agent.partition(":")[2])


def commanded(pending: Json) -> Json:
    return {"command": {"resume": ANSWER}}


def resumed_from_outside(pending: Json) -> Json:
    """As a RemoteGraph answers that is a node of another graph."""
    return {"config": {"configurable": {"__pregel_resuming": True, "__pregel_resume_map": {pending["id"]: ANSWER}}}}


FORMS = (commanded, resumed_from_outside)
DELAYED = {"after_seconds": 366 * 86400}


async def pending_of(arena: Arena, thread: str) -> Json:
    interrupts = (await arena.state(thread))["interrupts"]
    [[pending]] = interrupts.values()
    question: Json = pending
    return question


@pytest.mark.promise("P3")
@pytest.mark.parametrize("more", [{}, *STEERS])
async def test_delayed_answer_is_refused_and_the_question_stays_open(arena: Arena, more: Json) -> None:
    """It would count at once, and nobody else could answer until it arrives."""
    thread = await asked(arena)
    command = {"resume": ANSWER, **more.get("command", {})}
    delayed = {**more, "command": command, **DELAYED}
    assert (await arena.run(thread, "asking", arena.other, "", **delayed)).status_code == 422
    await answered(arena, thread, arena.agent)


@pytest.mark.promise("P3")
async def test_delayed_answer_of_a_remote_graph_is_refused_and_the_question_stays_open(arena: Arena) -> None:
    thread = await asked(arena)
    delayed = {**resumed_from_outside(await pending_of(arena, thread)), **DELAYED}
    assert (await arena.run(thread, "asking", arena.other, "", **delayed)).status_code == 422
    await answered(arena, thread, arena.agent)


@pytest.mark.parametrize("form", FORMS)
async def test_control_unchecked_a_delayed_answer_keeps_others_from_answering(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, form: Callable[[Json], Json]
) -> None:
    monkeypatch.setattr(admission, "_require_answered_now", lambda request: None)
    thread = await asked(arena)
    answer = form(await pending_of(arena, thread))
    assert (await arena.run(thread, "asking", arena.other, "", **answer, **DELAYED)).status_code == 200
    assert (await arena.run(thread, "asking", how="", **answer)).status_code == 409


@pytest.mark.parametrize("more", STEERS)
async def test_steered_answer_is_a_run_of_its_caller(arena: Arena, more: Json) -> None:
    thread = await asked(arena)
    other = await arena.actor(arena.other)
    run = await answered(arena, thread, arena.other, **more)
    assert await actor_of(arena, run) == (other, other.partition(":")[2])


async def test_answer_from_an_older_checkpoint_is_a_run_of_its_caller(arena: Arena) -> None:
    thread = await asked(arena)
    past = (await arena.agent.post(f"/threads/{thread}/history", json={"limit": 5})).json()
    other = await arena.actor(arena.other)
    run = await answered(arena, thread, arena.other, checkpoint_id=past[-1]["checkpoint"]["checkpoint_id"])
    assert (await actor_of(arena, run))[0] == other


async def test_answer_by_another_assistant_is_a_run_of_its_caller(arena: Arena) -> None:
    thread = await asked(arena)
    body = {"graph_id": "asking", "context": {"tag": "steered"}, "name": "mine"}
    mine = (await arena.other.post("/assistants", json=body)).json()["assistant_id"]
    made = await arena.run(thread, mine, arena.other, "", command={"resume": ANSWER})
    assert (await actor_of(arena, made.json()))[0] == await arena.actor(arena.other)


async def test_agent_does_not_reach_a_forbidden_tool_by_steering_another_agents_answer(arena: Arena) -> None:
    other = (await arena.actor(arena.other)).partition(":")[2]
    forbidden = {"name": "not the other", "then": "never", "tool": "transfer", "agent": other}
    await arena.policy({"rules": [forbidden], "default": {"name": "default", "then": "ask"}})
    thread = await asked(arena)
    await answered(arena, thread, arena.other, command={"update": {"moves": 1}})
    assert await arena.items(thread) == []
    control = await asked(arena)
    await answered(arena, control, arena.agent, command={"update": {"moves": 1}})
    assert [item["actions"][0]["name"] for item in await arena.items(control)] == ["transfer"]


async def test_reviewer_does_not_approve_what_she_steered_the_agent_into(arena: Arena) -> None:
    await arena.policy(SEPARATE)
    thread = await asked(arena)
    await answered(arena, thread, arena.ana, command={"update": {"moves": 1, "tag": "to ana"}})
    item = await arena.item(thread)
    own = await arena.decide(item, "approve", arena.ana)
    assert (own.status_code, own.json()["code"]) == (403, "self_approval")
    assert arena.effects == []
    assert (await arena.decide(item, "approve", arena.ben)).status_code == 200  # the control
    await arena.rests(thread)
    assert arena.effects == ["to ana"]


async def by_message(arena: Arena, thread: str) -> None:
    given = {"tag": "to ana", "log": str(arena.log), "moves": 1}
    assert (await arena.run(thread, "asking", arena.ana, input=given, multitask_strategy="interrupt")).is_success
    await answered(arena, thread, arena.agent)


async def by_state(arena: Arena, thread: str) -> None:
    update = {"values": {"tag": "to ana", "log": str(arena.log), "moves": 1}, "as_node": "ask"}
    assert (await arena.ana.post(f"/threads/{thread}/state", json=update)).is_success
    assert (await arena.run(thread, "asking", input=None)).is_success


async def by_answer(arena: Arena, thread: str) -> None:
    """Which is all that the agent needs to go on."""
    await arena.run(thread, "asking", input={"moves": 1, "log": str(arena.log)}, multitask_strategy="interrupt")
    await answered(arena, thread, arena.ana)


async def by_answer_in_the_inbox(arena: Arena, thread: str) -> None:
    await arena.run(thread, "asking", input={"moves": 1, "log": str(arena.log)}, multitask_strategy="interrupt")
    item = await arena.item(thread)
    said = [{"key": item["actions"][0]["key"], "verb": "respond", "message": "pay ana"}]
    assert (await arena.decide(item, "respond", arena.ana, actions=said)).status_code == 200
    await arena.rests(thread)


async def by_enqueued_message(arena: Arena, thread: str) -> None:
    """Her message waits while another turn ends. The agent answers what comes of it."""
    given = {"tag": "to ana", "moves": 1}
    assert (await arena.run(thread, "asking", arena.ana, "", input=given, multitask_strategy="enqueue")).is_success
    await answered(arena, thread, arena.agent)

    async def asks_again() -> bool:
        return [item["dialect"] for item in await arena.items(thread)] == ["clarification"]

    await until(asks_again, "the enqueued run does not ask")
    await answered(arena, thread, arena.agent, command={"update": {"log": str(arena.log)}})


@pytest.mark.parametrize("contribute", [by_message, by_state, by_answer, by_answer_in_the_inbox, by_enqueued_message])
async def test_contributor_does_not_decide_where_duties_are_separate(arena: Arena, contribute: Any) -> None:
    await arena.policy(SEPARATE)
    thread = await asked(arena)
    await contribute(arena, thread)
    [item] = [item for item in await arena.items(thread) if item["actions"][0]["name"] == "transfer"]
    own = await arena.decide(item, "approve", arena.ana)
    assert (own.status_code, own.json()["code"]) == (403, "self_approval"), own.text
    assert (await arena.decide(item, "approve", arena.ben)).status_code == 200  # the control
    await arena.rests(thread)


async def test_contributor_of_a_completed_turn_decides_the_next(arena: Arena) -> None:
    await arena.policy(SEPARATE)
    thread = await asked(arena)
    await answered(arena, thread, arena.ana)
    assert (await arena.state(thread))["status"] == "idle"
    assert (await arena.run(thread, "asking", input={"tag": "next", "log": str(arena.log)})).is_success
    await answered(arena, thread, arena.agent, command={"update": {"moves": 1}})
    [item] = [item for item in await arena.items(thread) if item["actions"][0]["name"] == "transfer"]
    assert (await arena.decide(item, "approve", arena.ana)).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["next"]


async def test_bare_approval_is_no_contribution(arena: Arena) -> None:
    """A person approves one call after the other of the same turn."""
    await arena.policy(SEPARATE)
    thread = await asked(arena)
    await answered(arena, thread, arena.agent, command={"update": {"moves": 2}})
    for _ in range(2):
        [item] = await arena.items(thread)
        assert (await arena.decide(item, "approve", arena.ana)).status_code == 200
        await arena.rests(thread)
    assert arena.effects == ["asked", "asked"]


async def test_copy_inherits_the_contributors(arena: Arena) -> None:
    await arena.policy(SEPARATE)
    thread = await asked(arena)
    await answered(arena, thread, arena.ana, command={"update": {"moves": 1, "tag": "to ana"}})
    copy = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    item = await arena.item(copy)
    own = await arena.decide(item, "approve", arena.ana)
    assert (own.status_code, own.json()["code"]) == (403, "self_approval")
    assert (await arena.decide(item, "approve", arena.ben)).status_code == 200
    await arena.rests(copy)
    assert arena.effects == ["to ana"]


async def by_patch(arena: Arena) -> tuple[str, str]:
    thread = await arena.thread(visibility="shared")
    assert (await arena.ana.patch(f"/threads/{thread}", json={"metadata": {"account": "ANA"}})).is_success
    return thread, "wiring"


async def by_creation(arena: Arena) -> tuple[str, str]:
    return await arena.thread(arena.ana, visibility="shared", metadata={"account": "ANA"}), "wiring"


async def by_assistant(arena: Arena) -> tuple[str, str]:
    body = {"graph_id": "wiring", "context": {"account": "ANA"}}
    made = (await arena.ana.post("/assistants", json=body)).json()
    return await arena.thread(), made["assistant_id"]


async def by_changed_assistant(arena: Arena) -> tuple[str, str]:
    """Which an administrator may change that is another's."""
    made = (await arena.agent.post("/assistants", json={"graph_id": "wiring"})).json()["assistant_id"]
    await arena.house.services.users.change(operator(), "ana", role=Role.ADMIN)
    arena.house.forget()
    changed = await arena.ana.patch(f"/assistants/{made}", json={"metadata": {"account": "ANA"}})
    await arena.house.services.users.change(operator(), "ana", role=Role.REVIEWER)
    arena.house.forget()
    assert changed.is_success, changed.text
    return await arena.thread(), made


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("shape", [by_patch, by_creation, by_assistant, by_changed_assistant])
async def test_author_of_the_configuration_does_not_decide(arena: Arena, shape: Any, later: bool) -> None:
    """In no turn that it reaches."""
    await arena.policy(SEPARATE)
    thread, chosen = await shape(arena)
    given = {"log": str(arena.log), "tag": "asked"}
    if later:
        assert (await arena.run(thread, "free", input={**given, "tag": "first"})).is_success
        assert (await arena.state(thread))["status"] == "idle"
    assert (await arena.run(thread, chosen, input=given)).is_success
    item = await arena.item(thread)
    own = await arena.decide(item, "approve", arena.ana)
    assert (own.status_code, own.json()["code"]) == (403, "self_approval"), own.text
    assert "ANA" not in arena.effects
    assert (await arena.decide(item, "approve", arena.ben)).status_code == 200  # the control
    await arena.rests(thread)
    assert arena.effects[-1] == "ANA"


async def test_control_maker_of_an_empty_thread_decides(arena: Arena) -> None:
    """The control: neither an empty thread nor a change that leaves its metadata alone shapes anything."""
    await arena.policy(SEPARATE)
    thread = await arena.thread(arena.ana, visibility="shared")
    assert (await arena.ana.patch(f"/threads/{thread}", json={"metadata": {}})).is_success
    assert (await arena.run(thread, "wiring", input={"log": str(arena.log), "tag": "asked"})).is_success
    assert (await arena.decide(await arena.item(thread), "approve", arena.ana)).status_code == 200
    await arena.rests(thread)
    assert arena.effects == ["payroll"]


async def rejected(arena: Arena) -> tuple[str, Json]:
    """A thread that ana's message led to a call, which Ben has rejected, and where it stood before the call."""
    thread = await arena.thread(visibility="shared")
    call = [{"name": "act", "args": {"log": str(arena.log), "tag": "to ana"}}]
    message = {"type": "human", "content": json.dumps(call)}
    assert (await arena.run(thread, "gated", arena.ana, input={"messages": [message]})).is_success
    past = (await arena.agent.post(f"/threads/{thread}/history", json={"limit": 10})).json()
    assert (await arena.decide(await arena.item(thread), "reject", arena.ben)).status_code == 200
    assert (await arena.rests(thread))["status"] == "idle"
    return thread, next(state["checkpoint"] for state in past if state["next"] == ["model"])


async def by_replay(arena: Arena, thread: str, before: Json) -> None:
    checkpoint = {"checkpoint_id": before["checkpoint_id"]}
    assert (await arena.run(thread, "gated", checkpoint=checkpoint)).is_success


async def by_enqueued_replay(arena: Arena, thread: str, before: Json) -> None:
    """It begins after another turn has ended."""
    checkpoint = {"checkpoint_id": before["checkpoint_id"]}
    later = await arena.run(thread, "gated", how="", checkpoint=checkpoint, after_seconds=1)
    assert later.is_success
    free = {"type": "human", "content": "[]"}
    assert (await arena.run(thread, "gated", input={"messages": [free]})).is_success
    assert (await arena.state(thread))["status"] in ("idle", "busy", "interrupted")  # and did not fail

    async def asks() -> bool:
        return bool(await arena.items(thread))

    await until(asks, "the delayed run does not ask")


async def by_edit(arena: Arena, thread: str, before: Json) -> None:
    update = {"checkpoint_id": before["checkpoint_id"], "values": None, "as_node": "__copy__"}
    assert (await arena.agent.post(f"/threads/{thread}/state", json=update)).is_success
    assert (await arena.run(thread, "gated", input=None)).is_success


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("go_back", [by_replay, by_enqueued_replay, by_edit])
async def test_contributor_does_not_decide_what_an_older_checkpoint_leads_to(
    arena: Arena, go_back: Any, copied: bool
) -> None:
    await arena.policy(SEPARATE)
    thread, before = await rejected(arena)
    if copied:
        thread = (await arena.agent.post(f"/threads/{thread}/copy")).json()["thread_id"]
    await go_back(arena, thread, before)
    item = await arena.item(thread)
    own = await arena.decide(item, "approve", arena.ana)
    assert (own.status_code, own.json()["code"]) == (403, "self_approval"), own.text
    cleo = arena.house.client(await arena.house.person(f"cleo-{thread[-8:]}"))
    assert (await arena.decide(item, "approve", cleo)).status_code == 200  # the control
    await arena.rests(thread)
    assert arena.effects == ["to ana"]


async def test_decision_on_a_copy_continues_as_its_maker(arena: Arena) -> None:
    """Not as the agent whose thread was copied."""
    thread = await asked(arena)
    await answered(arena, thread, arena.agent, command={"update": {"moves": 1}})
    copy = (await arena.other.post(f"/threads/{thread}/copy")).json()["thread_id"]
    item = await arena.item(copy)
    other = await arena.actor(arena.other)
    assert item["requester"] == other
    assert (await arena.decide(item, "approve")).status_code == 200
    await arena.rests(copy)
    for run in (await arena.ana.get(f"/threads/{copy}/runs")).json():
        assert await actor_of(arena, run) == (other, other.partition(":")[2])


@pytest.mark.parametrize("told", ["notes", "comment"])
async def test_author_of_notes_does_not_decide_the_resubmission(arena: Arena, told: str) -> None:
    await arena.policy(SEPARATE)
    body = {"type": "payment", "title": "Pay", "payload": {"to": "bob"}}
    item = (await arena.agent.post("/api/inbox/items", json=body)).json()
    path, seen = f"/api/inbox/items/{item['id']}", {"revision": item["revision"], "hash": item["hash"]}
    if told == "comment":
        assert (await arena.ana.post(f"{path}/comments", json={"text": "pay ana"})).is_success
    author = arena.ana if told == "notes" else arena.ben
    assert (await author.post(f"{path}/revision-request", json={**seen, "notes": "pay ana"})).is_success
    again = (await arena.agent.post(f"{path}/resubmission", json={"payload": {"to": "ana"}})).json()
    own = await arena.decide(again, "approve", arena.ana)
    assert (own.status_code, own.json()["code"]) == (403, "self_approval")
    cleo = arena.house.client(await arena.house.person(f"cleo-{told}-{item['id'][:8]}"))
    assert (await arena.decide(again, "approve", cleo)).status_code == 200  # the control


@pytest.mark.promise("P5")
@pytest.mark.parametrize("more", [{"update": {"tag": "to ana"}}, {"goto": "move"}])
async def test_approving_answer_beside_a_steer_is_refused(arena: Arena, more: Json) -> None:
    """Beside a steer it would approve what nobody was shown."""
    thread = await asked(arena)
    await answered(arena, thread, arena.agent, command={"update": {"moves": 1}})
    refused = await arena.run(thread, "asking", arena.ana, command={"resume": {"type": "approve"}, **more})
    assert refused.status_code == 409, refused.text
    assert [item["status"] for item in await arena.items(thread)] == ["PENDING"]
    alone = await arena.run(thread, "asking", arena.ana, command={"resume": {"type": "approve"}})
    assert alone.status_code == 200, alone.text  # the control
    assert arena.effects == ["asked"]


async def test_author_of_cancellation_notes_does_not_decide_the_next_question(arena: Arena) -> None:
    await arena.policy(SEPARATE)
    thread = await asked(arena)
    await answered(arena, thread, arena.agent, command={"update": {"moves": 1}})
    item = await arena.item(thread)
    path = f"/api/inbox/items/{item['id']}/cancellation"
    assert (await arena.ana.post(path, json={"notes": "pay ana instead"})).is_success
    await arena.rests(thread)
    from assent.threads.rows import contributors

    people = await arena.house.services.store.read("default", contributors.of_turn, thread)
    assert await arena.actor(arena.ana) in people
