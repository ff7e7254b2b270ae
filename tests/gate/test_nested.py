"""Agents inside agents, and several who go on with one thread at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from assent import gated
from tests.gate.desk import CONFIG, PAY, SEND, THREAD, Desk, asked, ids, script
from tests.graphs.agents import ScriptedModel
from tests.scoreboard import Count, RecordScore


def nested(desk: Desk) -> Any:
    """An agent whose tool runs another agent; the gate stands before the tools of the inner one only."""
    inner: Any = create_agent(ScriptedModel(), [desk.send, desk.pay], middleware=[desk.gate()])

    def delegate(task: str) -> str:
        """Hands a task to another agent."""
        return str(inner.invoke({"messages": [("user", task)]})["messages"][-1].text)

    return desk.agent(desk.gate({"delegate": False}), tools=[delegate])


def task(*calls: Any) -> tuple[str, dict[str, Any]]:
    return ("delegate", {"task": script(*calls)["messages"][0][1]})


@pytest.mark.promise("P1")
def test_nested_agent_asks_and_runs_after_approval(desk: Desk) -> None:
    agent = nested(desk)
    [question] = asked(agent.invoke(script(task(SEND)), CONFIG))
    assert (question["name"], question["args"]) == SEND
    desk.decide()
    result = desk.go_on(agent)
    assert desk.ran == [SEND]
    assert "sent to bob" in result["messages"][-1].text


@pytest.mark.promise("P1")
def test_parallel_nested_agents_with_one_call_id_get_their_own_answers(desk: Desk) -> None:
    agent = nested(desk)
    questions = asked(agent.invoke(script(task(SEND), task(PAY)), CONFIG))
    assert len({question["tool_call_id"] for question in questions}) == 1, "or the test shows nothing"
    assert len(desk.inbox.items()) == 2
    desk.decide("reject", item=desk.item("send"))
    desk.decide("approve", item=desk.item("pay"))
    assert not asked(desk.go_on(agent))
    assert desk.ran == [PAY]


@pytest.mark.parametrize("rejected", [0, 1])
def test_identical_calls_do_not_share_an_approval(desk: Desk, rejected: int) -> None:
    """The same id, tool and arguments: the one that was rejected does not take the other's approval."""
    agent = nested(desk)
    agent.invoke(script(task(SEND), task(SEND)), CONFIG)
    for number, item in enumerate(desk.inbox.items()):
        desk.decide("reject" if number == rejected else "approve", item)
    result = desk.go_on(agent)
    assert not asked(result)
    assert desk.ran == [SEND]


def both(agent: Any, command: Any) -> None:
    """Two who go on at the same moment."""
    ready = threading.Barrier(2)

    def one() -> None:
        ready.wait()
        agent.invoke(command, CONFIG)

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(one), pool.submit(one)]:
            future.exception()  # one of them may be told that a doubt has to be settled first


@pytest.mark.scoreboard
@pytest.mark.promise("P2")
@pytest.mark.timeout(600)
def test_concurrent_continuations_run_the_call_once(desk: Desk, count: Count, record_score: RecordScore) -> None:
    rounds, twice = count(full=200, quick=20), 0
    for _ in range(rounds):
        desk.ran.clear()
        agent = desk.agent()
        agent.invoke(script(SEND), CONFIG)
        desk.decide(item=desk.inbox.items()[-1])
        both(agent, desk.inbox.command(THREAD))
        twice += len(desk.ran) > 1
    record_score("two resumes of one approved call at once", "0 run twice", f"{twice} of {rounds}")
    assert twice == 0


def test_control_without_the_gate_the_call_runs_twice(desk: Desk) -> None:
    """The control."""
    twice = 0
    for _ in range(10):
        desk.ran.clear()
        agent = desk.agent(HumanInTheLoopMiddleware({"send": True}))
        [question] = ids(agent.invoke(script(SEND), CONFIG))
        both(agent, Command(resume={question: {"decisions": [{"type": "approve"}]}}))
        twice += len(desk.ran) > 1
    assert twice > 0


class Booking:
    """A gated call that has an effect and then asks, by itself or in a graph that it calls."""

    def __init__(self, desk: Desk, *, inside: bool = False, question: Any = "which seat?") -> None:
        self.begun, self.seats = 0, list[str]()

        def choose(state: dict[str, Any]) -> dict[str, Any]:
            self.seats.append(interrupt(question))
            return {}

        builder: Any = StateGraph(dict)
        inner = builder.add_node("choose", choose).add_edge(START, "choose").compile()

        @gated(inbox=desk.inbox)
        def book(what: str) -> str:
            self.begun += 1
            inner.invoke({}) if inside else choose({})
            return "booked"

        outer: Any = StateGraph(dict)
        outer.add_node("book", lambda state: {"said": book("train")}).add_edge(START, "book")
        self.graph = outer.compile(checkpointer=InMemorySaver())
        self.graph.invoke({}, CONFIG)
        desk.decide()
        self.asked = desk.go_on(self.graph)["__interrupt__"]


@pytest.mark.promise("P2")
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("keyed", [False, True])
def test_call_that_asks_is_started_again_only_with_an_answer(desk: Desk, inside: bool, keyed: bool) -> None:
    booking = Booking(desk, inside=inside)
    for _ in range(3):
        assert booking.graph.invoke(None, CONFIG)["__interrupt__"] == booking.asked
    assert booking.begun == 1
    booking.graph.invoke(Command(resume={booking.asked[0].id: "12A"} if keyed else "12A"), CONFIG)
    assert (booking.begun, booking.seats) == (2, ["12A"])


@pytest.mark.promise("P2")
def test_a_call_whose_question_cannot_be_asked_again_is_in_doubt(desk: Desk) -> None:
    booking = Booking(desk, question=frozenset({"12A"}))
    [doubt] = asked(booking.graph.invoke(None, CONFIG))
    assert doubt["kind"] == "assent.in_doubt"
    assert booking.begun == 1
