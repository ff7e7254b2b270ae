"""Ways around an approval that work on plain LangGraph: with the gate none of them runs the tool.

Every attack is made twice: on an agent with LangChain's own middleware, where it succeeds (the control), and on the
same agent with our line added.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langgraph.types import Command, Send

from assent.errors import InvalidTransition, StoreBusy
from assent.review.model.items import Execution
from tests.gate.desk import CONFIG, SEND, THREAD, Desk, asked, ids, script

Attack = Callable[[Any, Any], Any]
EVIL = ("send", {"to": "mallory", "body": "hello"})
STOCK = "HumanInTheLoopMiddleware.after_model"


def call(agent: Any, *, args: dict[str, Any] | None = None) -> AIMessage:
    """The model's message as it stands in the state, with other arguments if wanted."""
    [message] = [message for message in agent.get_state(CONFIG).values["messages"] if isinstance(message, AIMessage)]
    [made] = message.tool_calls
    return message.model_copy(update={"tool_calls": [{**made, "args": args or made["args"]}]})


def raw_resume(agent: Any, paused: Any) -> Any:
    return agent.invoke(Command(resume={ids(paused)[0]: {"decisions": [{"type": "approve"}]}}), CONFIG)


def positional_resume(agent: Any, paused: Any) -> Any:
    return agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), CONFIG)


def raw_edit(agent: Any, paused: Any) -> Any:
    edited = {"type": "edit", "edited_action": {"name": "send", "args": EVIL[1]}}
    return agent.invoke(Command(resume={ids(paused)[0]: {"decisions": [edited]}}), CONFIG)


def state_update(agent: Any, paused: Any) -> Any:
    agent.update_state(CONFIG, {"messages": [call(agent)]}, as_node=STOCK)
    return agent.invoke(None, CONFIG)


def state_update_with_other_arguments(agent: Any, paused: Any) -> Any:
    agent.update_state(CONFIG, {"messages": [call(agent, args=EVIL[1])]}, as_node=STOCK)
    return agent.invoke(None, CONFIG)


def goto(agent: Any, paused: Any) -> Any:
    [made] = call(agent).tool_calls
    context = {
        "__type": "tool_call_with_context",
        "tool_call": {**made, "type": "tool_call"},
        "state": {"messages": []},
    }
    return agent.invoke(Command(goto=[Send("tools", context)]), CONFIG)


ATTACKS = [raw_resume, positional_resume, raw_edit, state_update, state_update_with_other_arguments, goto]


@pytest.mark.promise("P1")
@pytest.mark.parametrize("attack", ATTACKS)
def test_attack_on_a_gated_agent_does_not_run_the_tool(desk: Desk, attack: Attack) -> None:
    agent = desk.agent(HumanInTheLoopMiddleware({"send": True}), desk.gate())
    result = attack(agent, agent.invoke(script(SEND), CONFIG))
    assert desk.ran == []
    assert "send" in [question.get("name") for question in asked(result)]


@pytest.mark.parametrize("attack", ATTACKS)
def test_control_without_the_gate_the_attack_runs_the_tool(desk: Desk, attack: Attack) -> None:
    agent = desk.agent(HumanInTheLoopMiddleware({"send": True}))
    attack(agent, agent.invoke(script(SEND), CONFIG))
    assert [name for name, _ in desk.ran] == ["send"]


@pytest.mark.promise("P1")
@pytest.mark.parametrize(
    "answer",
    [
        {"type": "approve"},
        {"type": "edit", "edited_action": {"name": "send", "args": EVIL[1]}},
        {"type": "reject"},
        {"type": "respond", "message": "done already"},
        {"decisions": [{"type": "approve"}]},
        "yes",
        True,
        ["approve"],
    ],
)
@pytest.mark.parametrize("keyed", [True, False])
def test_a_bare_answer_to_the_gate_only_makes_it_ask_again(desk: Desk, answer: Any, keyed: bool) -> None:
    agent = desk.agent()
    first = agent.invoke(script(SEND), CONFIG)
    [question] = ids(first)
    result = agent.invoke(Command(resume={question: answer} if keyed else answer), CONFIG)
    assert desk.ran == []
    assert (ids(result), asked(result)) == ([question], asked(first))
    desk.decide()  # one item still waits for the person, and it works
    desk.go_on(agent)
    assert desk.ran == [SEND]


def approved(desk: Desk) -> Any:
    """An agent whose call is approved, and not made yet."""
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    desk.decide()
    return agent


@pytest.mark.promise("P1")
@pytest.mark.promise("P5")
def test_arguments_swapped_after_the_approval_do_not_run(desk: Desk) -> None:
    agent = approved(desk)
    agent.update_state(CONFIG, {"messages": [call(agent, args=EVIL[1])]}, as_node="model")
    [again] = asked(agent.invoke(None, CONFIG))
    assert desk.ran == []
    assert again["args"] == EVIL[1]
    assert again["reason"] == "the approved call differs from this one"


def test_control_without_the_gate_swapped_arguments_run(desk: Desk) -> None:
    """The control."""
    agent = desk.agent(HumanInTheLoopMiddleware({"send": True}))
    agent.invoke(script(SEND), CONFIG)
    agent.update_state(CONFIG, {"messages": [call(agent, args=EVIL[1])]}, as_node=STOCK)
    agent.invoke(None, CONFIG)
    assert desk.ran == [EVIL]


@pytest.mark.promise("P1")
@pytest.mark.parametrize("tool", ["pay", "send"])
def test_approval_does_not_apply_on_another_thread(desk: Desk, tool: str) -> None:
    agent = approved(desk)
    elsewhere: Any = {"configurable": {"thread_id": "another"}}
    assert asked(agent.invoke(script(SEND), elsewhere))
    assert desk.ran == []


def before_the_tools(agent: Any) -> Any:
    return next(state.config for state in agent.get_state_history(CONFIG) if state.next == ("tools",))


@pytest.mark.promise("P2")
@pytest.mark.parametrize("forked", [False, True])
def test_a_replayed_or_forked_checkpoint_asks_again(desk: Desk, forked: bool) -> None:
    agent = approved(desk)
    desk.go_on(agent)
    place = before_the_tools(agent)
    [again] = asked(agent.invoke(None, agent.update_state(place, None) if forked else place))
    assert desk.ran == [SEND]
    assert again["reason"] == "the approval was already used"


@pytest.mark.parametrize("forked", [False, True])
def test_control_without_the_gate_replay_and_fork_run_twice(desk: Desk, forked: bool) -> None:
    """The control."""
    agent = desk.agent(HumanInTheLoopMiddleware({"send": True}))
    raw_resume(agent, agent.invoke(script(SEND), CONFIG))
    place = before_the_tools(agent)
    agent.invoke(None, agent.update_state(place, None) if forked else place)
    assert desk.ran == [SEND, SEND]


@pytest.mark.promise("P8")
@pytest.mark.parametrize(("minutes", "runs"), [(14, True), (16, False)])
def test_approval_expires(desk: Desk, minutes: int, runs: bool) -> None:
    agent = approved(desk)
    desk.inbox.clock.advance(timedelta(minutes=minutes))
    result = desk.go_on(agent)
    assert (desk.ran == [SEND]) is runs
    assert [question["reason"] for question in asked(result)] == ([] if runs else ["the approval has expired"])


@pytest.mark.promise("P8")
def test_question_expires(desk: Desk) -> None:
    desk.agent().invoke(script(SEND), CONFIG)
    item = desk.item()
    desk.inbox.clock.advance(timedelta(days=8))
    with pytest.raises(InvalidTransition, match="EXPIRED"):
        desk.decide(item=item)


@pytest.mark.promise("P8")
@pytest.mark.parametrize("look_first", ["items", "get"])
def test_expired_question_is_shown_as_expired(desk: Desk, look_first: str) -> None:
    """Without a server nobody looks at the time but who looks at the items."""
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    item = desk.item()
    desk.inbox.clock.advance(timedelta(days=6))
    assert [item.id for item in desk.inbox.items()] == [item.id], "the control: its time is not over"
    desk.inbox.clock.advance(timedelta(days=2))
    if look_first == "get":
        assert desk.inbox.get(item.id).status == "EXPIRED"
    assert desk.inbox.items() == []
    assert [item.id for item in desk.inbox.items("expired")] == [item.id]
    assert desk.inbox.get(item.id).resolution == "expired"
    with pytest.raises(InvalidTransition, match="EXPIRED"):
        desk.decide(item=item)
    assert asked(agent.invoke(None, CONFIG))
    desk.decide()
    desk.go_on(agent)
    assert desk.ran == [SEND]


def test_expired_question_can_be_asked_again(desk: Desk) -> None:
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    before = desk.item()
    desk.inbox.clock.advance(timedelta(days=8))
    assert asked(agent.invoke(None, CONFIG))
    assert desk.inbox.get(before.id).status == "EXPIRED"
    desk.decide()
    desk.go_on(agent)
    assert desk.ran == [SEND]


@pytest.mark.promise("P7")
def test_failing_store_runs_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = approved(desk)

    def fail(function: Any) -> Any:
        raise OSError("disk on fire")

    monkeypatch.setattr(desk.inbox, "run", fail)
    with pytest.raises(OSError, match="disk on fire"):
        agent.invoke(Command(resume={"0" * 32: {"type": "approve"}}), CONFIG)
    assert desk.ran == []


@pytest.mark.promise("P2")
def test_a_grant_is_consumed_before_the_effect(desk: Desk) -> None:
    seen: list[str] = []

    def look(to: str) -> str:
        """Looks at its own item."""
        seen.append(str(desk.inbox.items("approved")[0].execution))
        return to

    agent = desk.agent(tools=[look])
    agent.invoke(script(("look", {"to": "x"})), CONFIG)
    desk.decide()
    desk.go_on(agent)
    assert seen == [Execution.STARTED]


@pytest.mark.promise("P2")
@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_busy_store_does_not_put_a_finished_call_in_doubt(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, asynchronous: bool
) -> None:
    agent = approved(desk)
    busy, write = [1, 1], desk.inbox._store.write

    def sometimes(function: Any) -> Any:
        if desk.ran and busy:
            busy.pop()
            raise StoreBusy
        return write(function)

    monkeypatch.setattr(desk.inbox._store, "write", sometimes)
    command = desk.inbox.command(THREAD)
    result = await agent.ainvoke(command, CONFIG) if asynchronous else agent.invoke(command, CONFIG)
    assert not asked(result)
    assert (desk.ran, busy) == ([SEND], [])
    assert desk.inbox.items(None)[0].execution is Execution.DONE


@pytest.mark.promise("P1")
def test_a_bare_answer_to_the_stock_middleware_is_not_enough(desk: Desk) -> None:
    """Per call, both ask in the same task: each gets its own answers."""
    agent = desk.agent(HumanInTheLoopMiddleware({"send": True}, interrupt_mode="per_call"), desk.gate())
    [question] = ids(agent.invoke(script(SEND), CONFIG))
    [again] = asked(agent.invoke(Command(resume={question: {"type": "approve"}}), CONFIG))
    assert again["gate"] == "assent"
    assert desk.ran == []
    desk.decide("edit", args=EVIL[1])
    assert not asked(desk.go_on(agent))
    assert desk.ran == [EVIL]
