"""`@gated` on tools, functions and nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import InjectedState, ToolRuntime
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from assent import gated
from assent.gate.decorator import Declined
from assent.gate.graphs import is_gated
from assent.gate.keeper import current_grant
from assent.gate.task import NotInGraph
from tests.gate.desk import CONFIG, SEND, THREAD, Desk, asked, ids, script
from tests.gate.test_parallel import plain_graph, turn


class State(TypedDict, total=False):
    amount: int
    done: str


def graph_of(node: Callable[..., Any]) -> Any:
    builder = StateGraph(State)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile(checkpointer=InMemorySaver())


def tools(desk: Desk) -> dict[str, Any]:
    """The same tool, with the gate in every place that it can have."""

    def below(to: str, body: str) -> str:
        """Sends."""
        return desk.send(to, body)

    async def asynchronous(to: str, body: str) -> str:
        """Sends."""
        return desk.send(to, body)

    class OfAClass(BaseTool):
        name: str = "of_a_class"
        description: str = "Sends."

        def _run(self, to: str, body: str) -> str:
            return desk.send(to, body)

    guard = gated(inbox=desk.inbox)
    return {
        "above": guard(tool(desk.send)),
        "below": tool(guard(below)),
        "bare function": guard(desk.send),
        "async above": guard(tool(asynchronous)),
        "async below": tool(guard(asynchronous)),
        "a class": guard(OfAClass()),
    }


PLACES = ["above", "below", "bare function", "async above", "async below", "a class"]


@pytest.mark.promise("P1")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("prebuilt", [True, False])
async def test_gated_tool_asks_and_runs_after_approval(desk: Desk, place: str, prebuilt: bool) -> None:
    made = tools(desk)[place]
    name = getattr(made, "name", "send")
    # The agent has no middleware of ours: the tool itself is guarded.
    graph = desk.agent(AgentMiddleware(), tools=[made]) if prebuilt else plain_graph(made)
    assert is_gated(graph)
    given = script((name, SEND[1])) if prebuilt else turn((name, SEND[1]))
    [question] = asked(await graph.ainvoke(given, CONFIG))
    assert (question["name"], question["args"]) == (name, SEND[1])
    assert question["tool_call_id"].startswith("call")
    desk.decide()
    result = await graph.ainvoke(desk.inbox.command(THREAD), CONFIG)
    assert not asked(result)
    assert desk.ran == [SEND]
    assert "sent to bob" in str(result["messages"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("verb", "said", "heard", "ran"),
    [
        ("reject", {"message": "no"}, "with reason: no", []),
        ("respond", {"message": "told him"}, "told him", []),
        ("edit", {"args": {"to": "eve", "body": "x"}}, "sent to eve", [("send", {"to": "eve", "body": "x"})]),
    ],
)
async def test_decision_gives_its_result_to_the_tool_call(
    desk: Desk, place: str, verb: str, said: dict[str, Any], heard: str, ran: list[Any]
) -> None:
    made = tools(desk)[place]
    graph = plain_graph(made)
    await graph.ainvoke(turn((getattr(made, "name", "send"), SEND[1])), CONFIG)
    desk.decide(verb, **said)
    result = await graph.ainvoke(desk.inbox.command(THREAD), CONFIG)
    assert desk.ran == ran
    assert heard in result["messages"][-1].content


def test_injected_arguments_are_not_shown(desk: Desk) -> None:
    @gated(inbox=desk.inbox)
    @tool
    def ship(
        order: str,
        state: Annotated[dict[str, Any], InjectedState],
        call_id: Annotated[str, InjectedToolCallId],
        runtime: ToolRuntime,
        config: RunnableConfig,
    ) -> str:
        """Ships."""
        desk.ran.append((order, call_id))
        assert state["messages"]
        assert runtime.tool_call_id == call_id
        assert config["configurable"]["thread_id"] == THREAD
        return "shipped"

    graph = plain_graph(ship)
    [question] = asked(graph.invoke(turn(("ship", {"order": "7"})), CONFIG))
    assert question["args"] == {"order": "7"}
    desk.decide()
    assert desk.go_on(graph)["messages"][-1].content == "shipped"
    assert desk.ran == [("7", "call-0")]


@pytest.mark.promise("P1")
def test_gated_function_of_a_node_asks_and_runs_after_approval(desk: Desk) -> None:
    @gated(inbox=desk.inbox)
    def transfer(amount: int, *, currency: str = "EUR") -> str:
        desk.ran.append((currency, amount))
        grant = current_grant()
        assert grant is not None
        return grant.id

    def node(state: State) -> State:
        return {"done": " ".join(transfer(amount) for amount in (state["amount"], 7, 7))}

    graph = graph_of(node)
    result = graph.invoke({"amount": 5}, CONFIG)
    for _ in range(3):
        assert asked(result)[0]["name"] == "transfer"
        desk.decide()
        result = desk.go_on(graph)
    assert desk.ran == [("EUR", 5), ("EUR", 7), ("EUR", 7)]
    assert len(set(result["done"].split())) == 3


def test_edited_function_call_runs_the_edited_arguments(desk: Desk) -> None:
    @gated(inbox=desk.inbox)
    def transfer(amount: int, *, currency: str = "EUR") -> str:
        desk.ran.append((currency, amount))
        return "ok"

    graph = graph_of(lambda state: {"done": transfer(state["amount"])})
    graph.invoke({"amount": 5}, CONFIG)
    desk.decide("edit", args={"amount": 1, "currency": "USD"})
    assert desk.go_on(graph)["done"] == "ok"
    assert desk.ran == [("USD", 1)]


def test_rejected_function_call_raises(desk: Desk) -> None:
    @gated(inbox=desk.inbox)
    def transfer(amount: int) -> str:
        desk.ran.append(("transfer", amount))
        return "ok"

    def node(state: State) -> State:
        try:
            return {"done": transfer(state["amount"])}
        except Declined as error:
            return {"done": str(error)}

    graph = graph_of(node)
    graph.invoke({"amount": 5}, CONFIG)
    assert desk.item().allowed == ("approve", "edit", "reject")
    desk.decide("reject", message="too much")
    assert desk.go_on(graph)["done"].endswith("too much")
    assert desk.ran == []


@pytest.mark.parametrize("asynchronous", [True, False])
async def test_gated_node_asks_and_runs_after_approval(desk: Desk, asynchronous: bool) -> None:
    def pay_out(state: State, config: RunnableConfig) -> State:
        desk.ran.append(("paid", state["amount"]))
        return {"done": "yes"}

    async def apay_out(state: State) -> State:
        desk.ran.append(("paid", state["amount"]))
        return {"done": "yes"}

    graph = graph_of(gated(name="pay_out", inbox=desk.inbox)(apay_out if asynchronous else pay_out))
    assert is_gated(graph)
    [question] = asked(await graph.ainvoke({"amount": 5}, CONFIG))
    assert (question["name"], question["args"]) == ("pay_out", {"state": {"amount": 5}})
    desk.decide()
    assert (await graph.ainvoke(desk.inbox.command(THREAD), CONFIG))["done"] == "yes"
    assert desk.ran == [("paid", 5)]


def test_arguments_must_be_json(desk: Desk) -> None:
    @gated(inbox=desk.inbox)
    def store(thing: object) -> None:
        desk.ran.append(("stored", thing))

    graph = graph_of(lambda state: store(object()))
    with pytest.raises(TypeError, match="store is gated, so its arguments must be JSON: thing: object"):
        graph.invoke({"amount": 5}, CONFIG)
    assert desk.ran == []


def test_gated_call_outside_a_graph_raises(desk: Desk) -> None:
    with pytest.raises(NotInGraph, match="inside a graph"):
        gated(inbox=desk.inbox)(desk.pay)(5)
    assert desk.ran == []


@pytest.mark.promise("P2")
def test_tool_that_asks_a_question_is_approved_once(desk: Desk) -> None:
    """It is approved once, pauses, gets its own answer and not the gate's, and is not in doubt."""

    def book(what: str) -> str:
        """Books."""
        seat = interrupt("which seat?")
        card = interrupt("which card?")
        desk.ran.append((what, (seat, card)))
        return f"{what} {seat} {card}"

    agent = desk.agent(tools=[book])
    agent.invoke(script(("book", {"what": "train"})), CONFIG)
    desk.decide()
    result = desk.go_on(agent)
    for question, answer in (("which seat?", "12A"), ("which card?", "blue")):
        assert asked(result) == [question]
        result = agent.invoke(Command(resume={ids(result)[0]: answer}), CONFIG)
    assert desk.ran == [("train", ("12A", "blue"))]
    assert not asked(result)
    [item] = desk.inbox.items(None)
    assert item.execution == "done"


def test_both_gates_on_one_tool_ask_once(desk: Desk) -> None:
    agent = desk.agent(desk.gate(), tools=[gated(inbox=desk.inbox)(tool(desk.send))])
    agent.invoke(script(SEND), CONFIG)
    desk.decide()
    assert not asked(desk.go_on(agent))
    assert desk.ran == [SEND]


@pytest.mark.promise("P2")
def test_retry_behind_the_outer_gate_does_not_pass_the_inner_gate(desk: Desk) -> None:
    """Middleware that tries again between the two gates: the inner one has let the call through once."""

    class Twice(AgentMiddleware[Any, Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            return handler(request)

    agent = desk.agent(desk.gate(), Twice(), tools=[gated(inbox=desk.inbox)(tool(desk.send))])
    agent.invoke(script(SEND), CONFIG)
    desk.decide()
    [question] = asked(desk.go_on(agent))
    assert question["kind"] == "assent.in_doubt"
    assert desk.ran == [SEND]


def test_gated_function_inside_a_gated_tool_asks_separately(desk: Desk) -> None:
    inner = gated(inbox=desk.inbox)(desk.pay)

    def order(amount: int) -> str:
        """Orders."""
        return inner(amount)

    agent = desk.agent(tools=[order])
    agent.invoke(script(("order", {"amount": 5})), CONFIG)
    desk.decide(item=desk.item("order"))
    assert [question["name"] for question in asked(desk.go_on(agent))] == ["pay"]
    assert desk.ran == []
    desk.decide(item=desk.item("pay"))
    assert not asked(desk.go_on(agent))
    assert desk.ran == [("pay", {"amount": 5})]


def test_ungated_graph_is_not_recognised_as_gated(desk: Desk) -> None:
    assert not is_gated(plain_graph(tool(desk.send)))
    assert not is_gated(graph_of(lambda state: {"done": "yes"}))


def test_gated_function_in_the_functional_api_asks_and_runs(desk: Desk) -> None:
    @gated(inbox=desk.inbox)
    def transfer(amount: int) -> str:
        desk.ran.append(("transfer", amount))
        return f"moved {amount}"

    @task
    def step(amount: int) -> str:
        return transfer(amount)

    @entrypoint(checkpointer=InMemorySaver())
    def workflow(amounts: list[int]) -> list[str]:
        return [future.result() for future in [step(amount) for amount in amounts]]

    result: Any = workflow.invoke([1, 2], CONFIG)
    while desk.inbox.items():
        assert asked(result)
        for item in desk.inbox.items():
            desk.decide(item=item)
        result = workflow.invoke(desk.inbox.command(THREAD), CONFIG)
    assert result == ["moved 1", "moved 2"]
    assert sorted(desk.ran) == [("transfer", 1), ("transfer", 2)]


def test_identical_parallel_calls_need_two_approvals(desk: Desk) -> None:
    """Calls that look the same are two calls, and each needs its own approval."""
    send = gated(inbox=desk.inbox)(tool(desk.send))
    graph = plain_graph(send)
    made = [{"name": "send", "args": SEND[1], "id": "same"}, {"name": "send", "args": SEND[1], "id": "other"}]
    result = graph.invoke({"messages": [AIMessage("", tool_calls=made)]}, CONFIG)
    desk.decide()
    result = desk.go_on(graph)
    assert (len(desk.ran), len(asked(result))) == (1, 1)
    desk.decide("reject")
    desk.go_on(graph)
    assert desk.ran == [SEND]
