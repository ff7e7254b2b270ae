"""Tools in one task of a ToolNode, of which one asks a question of its own. If it is gated, only one question is open
at a time, and the paused call goes on with its own answer. If not, it gets its own answer, never a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

from assent import LocalInbox, gated
from tests.gate.desk import by_position

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def _tool_node(calls: Any, *tools: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [AIMessage("", tool_calls=calls)]})
    builder.add_node("tools", ToolNode(list(tools), handle_tool_errors=False))
    builder.add_edge(START, "model")
    builder.add_edge("model", "tools")
    return builder.compile(checkpointer=InMemorySaver())


def _graph(inbox: LocalInbox, effects: list[str]) -> Any:
    @tool
    def order(what: str) -> str:
        """Orders, and asks about the details."""
        effects.append("ordered")
        effects.append(f"told {interrupt({'question': 'which one?'})}")
        return "done"

    @tool
    def pay(price: int) -> str:
        """Pays."""
        effects.append("paid")
        return "paid"

    calls: Any = [
        {"name": "order", "args": {"what": "a room"}, "id": "o"},
        {"name": "pay", "args": {"price": 1}, "id": "p"},
    ]
    guard = gated(inbox=inbox)
    return _tool_node(calls, guard(order), guard(pay))


def _approve(inbox: LocalInbox, graph: Any) -> Any:
    [item] = inbox.items()
    inbox.decide(item.id, "approve", revision=item.revision, hash=item.hash, by="ana")
    return graph.invoke(inbox.command("t"), CONFIG)


@pytest.mark.promise("P2")
def test_paused_call_starts_once_and_gets_its_answer_beside_another_gated_call(tmp_path: Path) -> None:
    inbox, effects = LocalInbox(tmp_path / "gate.db"), list[str]()
    graph = _graph(inbox, effects)
    graph.invoke({"messages": [("user", "go")]}, CONFIG)
    [question] = _approve(inbox, graph)["__interrupt__"]
    assert (question.value, effects, inbox.items()) == ({"question": "which one?"}, ["ordered"], [])
    graph.invoke(Command(resume={question.id: "the red one"}), CONFIG)
    assert "told the red one" in effects
    _approve(inbox, graph)
    assert effects.count("paid") == 1
    assert effects.count("told the red one") == 1


class Beside:
    """A gated `pay` and an ungated `look_up` that asks, in one task of a ToolNode, called in this order."""

    def __init__(self, inbox: LocalInbox, order: str) -> None:
        self.inbox, self.told, self.paid = inbox, list[Any](), 0

        @tool
        def look_up(name: str) -> str:
            """Looks an account up, and asks which one."""
            self.told.append(interrupt({"question": "which account?"}))
            return "looked up"

        @gated(inbox=inbox)
        @tool
        def pay(price: int) -> str:
            """Pays."""
            self.paid += 1
            return "paid"

        made: Any = {
            "look_up": {"name": "look_up", "args": {"name": "bob"}, "id": "l"},
            "pay": {"name": "pay", "args": {"price": 1}, "id": "p"},
        }
        self.graph = _tool_node([made[name] for name in order.split()], look_up, pay)

    def go_on(self, command: Any) -> list[Any]:
        return list(self.graph.invoke(command, CONFIG).get("__interrupt__", ()))

    def answered(self, question: Any, verb: Any, *, by_position: bool) -> Any:
        """What continues the graph: the person's decision, or the answer to the lookup."""
        if "question" in question.value:
            return Command(resume="the blue one" if by_position else {question.id: "the blue one"})
        [item] = self.inbox.items()
        self.inbox.decide(item.id, verb, revision=item.revision, hash=item.hash, by="ana")
        return self.inbox.command("t")


@pytest.mark.promise("P1", "P3")
@pytest.mark.parametrize("by_position", [False, True])
@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize("order", ["look_up pay", "pay look_up"])
def test_ungated_question_beside_a_gated_call_gets_its_own_answer(
    tmp_path: Path, order: str, verb: str, by_position: bool
) -> None:
    beside = Beside(LocalInbox(tmp_path / "gate.db"), order)
    pending = beside.go_on({"messages": [("user", "go")]})
    for _ in range(2):
        [question] = pending
        pending = beside.go_on(beside.answered(question, verb, by_position=by_position))
    assert (pending, set(beside.told), beside.paid) == ([], {"the blue one"}, int(verb == "approve"))


def test_control_with_questions_by_position_the_ungated_question_gets_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_position(monkeypatch)
    beside = Beside(LocalInbox(tmp_path / "gate.db"), "pay look_up")
    [question] = beside.go_on({"messages": [("user", "go")]})
    beside.go_on(beside.answered(question, "approve", by_position=False))
    assert beside.told == [{"type": "approve"}]


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_decision_on_a_question_that_0_2_0_asked_by_position_counts(tmp_path: Path, verb: Any) -> None:
    inbox, effects = LocalInbox(tmp_path / "gate.db"), list[str]()
    graph = _graph(inbox, effects)
    with pytest.MonkeyPatch.context() as before:
        by_position(before)
        graph.invoke({"messages": [("user", "go")]}, CONFIG)
    [item] = inbox.items()
    inbox.decide(item.id, verb, revision=item.revision, hash=item.hash, by="ana")
    [question] = graph.invoke(inbox.command("t"), CONFIG)["__interrupt__"]
    own, next_call = {"question": "which one?"}, "pay"
    assert question.value == own if verb == "approve" else question.value["name"] == next_call
    assert effects == (["ordered"] if verb == "approve" else [])
