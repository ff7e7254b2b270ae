"""Several gated calls at once: every answer reaches the call it was given to."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from assent import gated
from assent.gate import task
from assent.gate.upstream import NS_SEP, interrupt_id
from assent.kernel import canonical
from assent.review.model.grants import Call
from assent.review.rows import grant_scopes
from tests.gate.desk import CONFIG, PAY, SEND, THREAD, Desk, asked, ids, script
from tests.scoreboard import Count, RecordScore


def plain_graph(*tools: Any) -> Any:
    """A model's turn with all calls in one ToolNode task, as in a graph of one's own."""
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode(list(tools), handle_tool_errors=False))
    builder.add_edge(START, "tools")
    return builder.compile(checkpointer=InMemorySaver())


def turn(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    made = [{"name": name, "args": args, "id": f"call-{index}"} for index, (name, args) in enumerate(calls)]
    return {"messages": [AIMessage("", tool_calls=made)]}


def thread(number: int) -> Any:
    return {"configurable": {"thread_id": f"thread-{number}"}}


def jitter(dice: random.Random) -> None:
    """What a network does to the order of things."""
    threading.Event().wait(dice.uniform(0, 0.004))


def approve_one(desk: Desk, number: int, which: str) -> None:
    """Approves the waiting call of the tool `which` and rejects the other, in whatever order they come."""
    for item in desk.inbox.items():
        if item.thread_id == f"thread-{number}":
            desk.decide("approve" if item.tool == which else "reject", item)


@pytest.mark.scoreboard
@pytest.mark.promise("P1")
@pytest.mark.timeout(900)
def test_two_calls_of_one_turn_get_their_own_answers(desk: Desk, count: Count, record_score: RecordScore) -> None:
    """Of two calls one is approved and one rejected: as tasks of their own, asked at once."""
    dice, agent, rounds = random.Random(7), desk.agent(), count(full=200, quick=20)
    wrong = 0
    for number in range(rounds):
        which = dice.choice(["send", "pay"])
        desk.ran.clear()
        assert len(asked(agent.invoke(script(*dice.sample([SEND, PAY], 2)), thread(number)))) == 2
        approve_one(desk, number, which)
        agent.invoke(desk.inbox.command(f"thread-{number}"), thread(number))
        wrong += desk.ran != [SEND if which == "send" else PAY]
    record_score("two gated calls in one turn, one approved", "0 answers to the wrong call", f"{wrong} of {rounds}")
    assert wrong == 0


@pytest.mark.scoreboard
@pytest.mark.promise("P1")
@pytest.mark.timeout(900)
def test_two_calls_in_one_task_get_their_own_answers(
    desk: Desk, count: Count, record_score: RecordScore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same in one task of a plain ToolNode, where both run in threads: they are asked one after the other."""
    send, pay = gated(inbox=desk.inbox)(tool(desk.send)), gated(inbox=desk.inbox)(tool(desk.pay))
    dice, graph, rounds = random.Random(7), plain_graph(send, pay), count(full=200, quick=20)
    run = desk.inbox.run

    def late(function: Any) -> Any:
        jitter(dice)
        return run(function)

    monkeypatch.setattr(desk.inbox, "run", late)
    wrong = 0
    for number in range(rounds):
        which = dice.choice(["send", "pay"])
        desk.ran.clear()
        result = graph.invoke(turn(*dice.sample([SEND, PAY], 2)), thread(number))
        for _ in range(2):
            assert len(asked(result)) == 1
            approve_one(desk, number, which)
            result = graph.invoke(desk.inbox.command(f"thread-{number}"), thread(number))
        assert not asked(result)
        wrong += desk.ran != [SEND if which == "send" else PAY]
    record_score("two gated calls in one ToolNode task", "0 answers to the wrong call", f"{wrong} of {rounds}")
    assert wrong == 0


def test_control_without_the_gate_answers_are_swapped() -> None:
    """The control: two tools in one task that call `interrupt` by themselves get each other's answer."""

    def asking(name: str) -> Callable[[str], str]:
        @tool(name)
        def ask(text: str) -> str:
            """Asks, after a little while."""
            jitter(dice)
            return f"{name} got {interrupt(name)}"

        return ask  # type: ignore[return-value]

    dice, swapped = random.Random(7), 0
    graph = plain_graph(asking("one"), asking("two"))
    for number in range(40):
        config = thread(number)
        result = graph.invoke(turn(("one", {"text": "x"}), ("two", {"text": "x"})), config)
        while pending := result.get("__interrupt__"):
            result = graph.invoke(Command(resume={pending[0].id: pending[0].value}), config)
        swapped += any(text.content in ("one got two", "two got one") for text in result["messages"][1:])
    assert swapped > 0


@pytest.mark.promise("P2")
def test_finished_call_of_a_task_is_not_made_again(desk: Desk) -> None:
    """The task starts from its beginning with every answer; the first call's result is repeated, not the call."""
    send, pay = gated(inbox=desk.inbox)(tool(desk.send)), gated(inbox=desk.inbox)(tool(desk.pay))
    graph = plain_graph(send, pay)
    result = graph.invoke(turn(SEND, PAY, ("pay", {"amount": 7})), CONFIG)
    for _ in range(3):
        assert len(asked(result)) == 1
        desk.decide()
        result = desk.go_on(graph)
    assert sorted(map(str, desk.ran)) == sorted(map(str, [SEND, PAY, ("pay", {"amount": 7})]))
    assert sorted(message.content for message in result["messages"][1:]) == ["paid 5", "paid 7", "sent to bob"]


async def test_two_calls_in_coroutines_get_their_own_answers(desk: Desk) -> None:
    @gated(inbox=desk.inbox)
    async def post(text: str) -> str:
        """Posts."""
        desk.ran.append(("post", text))
        return f"posted {text}"

    graph = plain_graph(tool(post))
    result = await graph.ainvoke(turn(("post", {"text": "a"}), ("post", {"text": "b"})), CONFIG)
    seen = []
    for _ in range(2):
        [question] = asked(result)
        seen.append(question["args"]["text"])
        desk.decide("approve" if question["args"]["text"] == "a" else "reject")
        result = await graph.ainvoke(desk.inbox.command(THREAD), CONFIG)
    assert sorted(seen) == ["a", "b"]
    assert desk.ran == [("post", "a")]


def test_decided_call_runs_while_the_other_is_pending(desk: Desk) -> None:
    """With one of two decided, that one runs and the other still waits, under the same id and the same item."""
    agent = desk.agent()
    paused = agent.invoke(script(SEND, PAY), CONFIG)
    waiting = desk.item("pay")
    desk.decide(item=desk.item("send"))
    result = desk.go_on(agent)
    assert desk.ran == [SEND]
    assert set(ids(result)) < set(ids(paused))
    assert desk.item("pay") == waiting
    desk.decide(item=waiting)
    desk.go_on(agent)
    assert desk.ran == [SEND, PAY]


def one_id(*amounts: int) -> dict[str, Any]:
    """Payments that a model makes at once under one call id."""
    made = [{"name": "pay", "args": {"amount": amount}, "id": "x"} for amount in amounts]
    return {"messages": [AIMessage("", tool_calls=made)]}


def decided_by_amount(desk: Desk, verdicts: dict[int, tuple[str, dict[str, Any]]]) -> tuple[list[int], list[str]]:
    """The amounts that were asked about, and the messages that the model gets for them in its order."""
    graph = plain_graph(gated(inbox=desk.inbox)(tool(desk.pay)))
    result, seen = graph.invoke(one_id(*verdicts), CONFIG), []
    while asked(result):
        for item in desk.inbox.items():
            verb, said = verdicts[item.args["amount"]]
            seen.append(item.args["amount"])
            desk.decide(verb, item, **said)
        result = desk.go_on(graph)
    return sorted(seen), [message.content for message in result["messages"][1:]]


REJECTED = "User rejected the tool call for `pay` with reason: no"
REJECT = ("reject", {"message": "no"})
APPROVE: tuple[str, dict[str, Any]] = ("approve", {})


@pytest.mark.promise("P1", "P3")
@pytest.mark.parametrize(
    ("verdicts", "paid", "messages"),
    [
        ({1: APPROVE, 2: REJECT}, [1], ["paid 1", REJECTED]),
        ({1: REJECT, 2: APPROVE}, [2], [REJECTED, "paid 2"]),
        ({1: APPROVE, 2: APPROVE}, [1, 2], ["paid 1", "paid 2"]),
        ({1: ("edit", {"args": {"amount": 7}}), 2: REJECT}, [7], ["paid 7", REJECTED]),
        ({1: ("edit", {"args": {"amount": 7}}), 2: APPROVE}, [2, 7], ["paid 7", "paid 2"]),
        ({1: ("edit", {"args": {"amount": 2}}), 2: REJECT}, [2], ["paid 2", REJECTED]),
        ({1: ("edit", {"args": {"amount": 2}}), 2: APPROVE}, [2, 2], ["paid 2", "paid 2"]),
        ({1: REJECT, 2: ("edit", {"args": {"amount": 1}})}, [1], [REJECTED, "paid 1"]),
        ({1: ("respond", {"message": "later"}), 2: APPROVE}, [2], ["later", "paid 2"]),
    ],
)
def test_two_calls_under_one_call_id_get_their_own_answers(
    desk: Desk, verdicts: dict[int, tuple[str, dict[str, Any]]], paid: list[int], messages: list[str]
) -> None:
    assert decided_by_amount(desk, verdicts) == ([1, 2], messages)
    assert sorted(args["amount"] for _, args in desk.ran) == paid


def test_control_with_one_series_for_a_call_id_a_call_is_never_asked_about(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shared(call: Call, answered: int) -> str:
        return interrupt_id(f"{call.task}{NS_SEP}gate {canonical.digest([call.call_id, call.tool])}", answered)

    monkeypatch.setattr(task, "question_id", shared)
    monkeypatch.setattr(grant_scopes, "answers", lambda tx, grant, call: True)
    seen, messages = decided_by_amount(desk, {1: ("edit", {"args": {"amount": 7}}), 2: REJECT})
    assert len(seen) == 1
    assert messages[0] == messages[1]
