"""A call that was begun and cut off: whatever the policy says by now, it is neither made again nor denied, and without
a server as well it is settled before the same call is approved once more."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from assent import gated
from assent.errors import ConfirmationRequired, Conflict, InDoubt, InvalidDecision
from assent.kernel.store.transaction import Tx
from assent.review.model.items import Execution
from assent.review.rows import items
from assent.testing import policy, rule
from tests.gate.desk import CONFIG, PAY, SEND, THREAD, Desk, answers, asked, script


class Death(BaseException):
    """Ends everything at once, as far as one process can show it."""


def turn(desk: Desk, tool: str, then: str) -> None:
    desk.inbox.use(policy(rule(tool, then)))


class Mortal:
    """Tools that die in their first call, after the effect."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.dead = False

    def send(self, to: str, body: str) -> str:
        """Sends a message."""
        return self._mortal(self._desk.send(to, body))

    def pay(self, amount: int) -> str:
        """Pays an amount."""
        return self._mortal(self._desk.pay(amount))

    def _mortal(self, result: str) -> str:
        if not self.dead:
            self.dead = True
            raise Death
        return result


class Forgetful(AgentMiddleware[Any, Any, Any]):
    """Stands before the gate, and dies once the call has come back through it."""

    dead = False

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        result = handler(request)
        if not self.dead:
            self.dead = True
            raise Death
        return result


def died(desk: Desk, agent: Any, call: tuple[str, dict[str, Any]] = SEND, **decision: Any) -> str:
    """The item of a call that a person agreed to and that was cut off."""
    agent.invoke(script(call), CONFIG)
    item = desk.decide(**decision)
    with pytest.raises(Death):
        desk.go_on(agent)
    return item.id


@pytest.fixture
def agent(desk: Desk) -> Any:
    mortal = Mortal(desk)
    return desk.agent(tools=[mortal.send, mortal.pay])


@pytest.mark.promise("P2")
@pytest.mark.parametrize("then", ["allow", "never"])
@pytest.mark.parametrize("outcome", ["done", "abandon"])
def test_policy_changed_after_the_start_does_not_affect_the_call(
    desk: Desk, agent: Any, then: str, outcome: Any
) -> None:
    item = died(desk, agent)
    turn(desk, "send", then)
    assert [question["kind"] for question in asked(agent.invoke(None, CONFIG))] == ["assent.in_doubt"]
    assert desk.inbox.get(item).execution is Execution.IN_DOUBT
    desk.inbox.settle(item, outcome, by="ana")
    [message] = answers(desk.go_on(agent))
    assert "not executed" not in str(message.content)
    assert desk.ran == [SEND]


@pytest.mark.promise("P2")
@pytest.mark.parametrize("then", ["allow", "never"])
def test_policy_changed_after_the_start_does_not_affect_an_edited_call(desk: Desk, agent: Any, then: str) -> None:
    died(desk, agent, verb="edit", args={"to": "eve", "body": "hello"})
    turn(desk, "send", then)
    [question] = asked(desk.go_on(agent))
    assert (question["kind"], question["args"]["to"]) == ("assent.in_doubt", "eve")
    assert len(desk.ran) == 1


@pytest.mark.promise("P2")
@pytest.mark.parametrize("then", ["allow", "never"])
def test_finished_call_is_repeated_from_its_record(desk: Desk, then: str) -> None:
    """Killed after the second mark, and before the graph had kept the result."""
    agent = desk.agent(Forgetful(), desk.gate())
    agent.invoke(script(SEND), CONFIG)
    desk.decide()
    with pytest.raises(Death):
        desk.go_on(agent)
    turn(desk, "send", then)
    [message] = answers(agent.invoke(None, CONFIG))
    assert (message.content, desk.ran) == ("sent to bob", [SEND])


def ask_for_passkey(tx: Tx, item_id: str) -> None:
    """As if the rule had said so when the call was asked about."""
    item = items.get(tx, item_id)
    assert item is not None
    rules = [{**rule, "confirm": "passkey"} for rule in item.policy["rules"]]
    items.change(tx, item, policy={**item.policy, "rules": rules})


@pytest.mark.parametrize("confirm", [True, False])
def test_running_a_call_again_needs_its_passkey(desk: Desk, confirm: bool) -> None:
    """The control: without the word among its terms, the library runs it again."""
    agent = desk.agent(desk.gate(), tools=[Mortal(desk).send])
    item = died(desk, agent)
    agent.invoke(None, CONFIG)
    if confirm:
        desk.inbox.run(lambda tx: ask_for_passkey(tx, item))
        with pytest.raises(ConfirmationRequired):
            desk.inbox.settle(item, "run_again", by="ana")
        desk.inbox.settle(item, "done", by="ana")
    else:
        desk.inbox.settle(item, "run_again", by="ana")
    desk.go_on(agent)
    assert len(desk.ran) == (1 if confirm else 2)


@pytest.mark.promise("P2", "P5")
def test_second_doubt_of_a_call_is_settled_by_its_own_grant(desk: Desk) -> None:
    """The person who looked into the first doubt has not seen the second."""
    mortal = Mortal(desk)
    agent = desk.agent(desk.gate(), tools=[mortal.send])
    item = died(desk, agent)
    agent.invoke(None, CONFIG)
    first = desk.inbox.get(item)
    desk.inbox.settle(item, "run_again", by="ana", grant_id=first.grant_id)
    mortal.dead = False
    with pytest.raises(Death):
        desk.go_on(agent)
    agent.invoke(None, CONFIG)
    for seen_before in (None, first.grant_id):
        with pytest.raises(InvalidDecision, match="grant_id"):
            desk.inbox.settle(item, "done", by="ana", grant_id=seen_before)
    second = desk.inbox.get(item)
    assert desk.inbox.settle(item, "done", by="ana", grant_id=second.grant_id).execution is Execution.DONE


def test_call_forbidden_by_the_new_policy_is_not_retried(desk: Desk) -> None:
    mortal = Mortal(desk)
    agent = desk.agent(desk.gate(idempotent=["send"]), tools=[mortal.send])
    item = died(desk, agent)
    turn(desk, "send", "never")
    assert [question["kind"] for question in asked(agent.invoke(None, CONFIG))] == ["assent.in_doubt"]
    desk.inbox.settle(item, "run_again", by="ana")
    [message] = answers(desk.go_on(agent))
    assert "never lets" in message.content
    assert desk.ran == [SEND]


@pytest.mark.parametrize(("then", "runs"), [("allow", 1), ("never", 0)])
def test_control_call_that_was_never_started_is_judged_again(desk: Desk, then: str, runs: int) -> None:
    """The control: an approval alone does not hold the policy off."""
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    desk.decide()
    turn(desk, "send", then)
    desk.go_on(agent)
    assert desk.ran == [SEND] * runs


@pytest.mark.promise("P2")
def test_without_a_server_the_doubt_is_settled_first(desk: Desk, agent: Any) -> None:
    first = died(desk, agent)
    assert asked(agent.invoke(script(SEND), CONFIG)), "another turn, and not the task that died"
    assert desk.inbox.get(first).execution is Execution.IN_DOUBT
    with pytest.raises(InDoubt):
        desk.decide()
    with pytest.raises(Conflict, match="has ended"):
        desk.inbox.settle(first, "run_again", by="ana")
    desk.inbox.settle(first, "done", by="ana")
    desk.decide()
    desk.go_on(agent)
    assert desk.ran == [SEND, SEND], "twice, and both times a person knew"


def test_running_call_is_not_in_doubt(desk: Desk) -> None:
    """One task asks while another one of the same turn is behind the gate."""
    held, asks = threading.Event(), threading.Event()

    class Slow(Desk):
        def send(self, to: str, body: str) -> str:
            """Sends a message."""
            held.set()
            assert asks.wait(90)
            seen.append(self.inbox.get(first).execution)
            return super().send(to, body)

    seen: list[Any] = []
    slow = Slow(desk.file.parent)

    class Late(AgentMiddleware[Any, Any, Any]):
        """Lets the payment come to the gate once the message is on its way; then it asks, and the message goes on."""

        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            if request.tool_call["name"] != "pay" or not approved:
                return handler(request)
            assert held.wait(90)
            try:
                return handler(request)
            finally:
                asks.set()

    approved: list[bool] = []
    agent = slow.agent(Late(), slow.gate())
    agent.invoke(script(SEND, PAY), CONFIG)
    first = slow.decide(item=slow.item("send")).id
    approved.append(True)
    agent.invoke(slow.inbox.command(THREAD), CONFIG)
    assert (seen, slow.inbox.get(first).execution) == ([Execution.STARTED], Execution.DONE)
    assert slow.ran == [SEND]


def test_retried_idempotent_call_is_no_longer_in_doubt(desk: Desk) -> None:
    """A tool that knows the key is tried again by itself, also after another task has taken it for dead."""
    mortal = Mortal(desk)
    agent = desk.agent(desk.gate(idempotent=["send"]), tools=[mortal.send])
    item = died(desk, agent)
    desk.hurry(item, execution=Execution.IN_DOUBT)
    agent.invoke(None, CONFIG)
    assert (desk.inbox.get(item).execution, desk.ran) == (Execution.DONE, [SEND, SEND])


def test_call_that_cannot_be_stored_does_not_run(desk: Desk) -> None:
    """No database can be trusted with a NUL, so nobody could find the approval again."""
    pay = gated(name="p\0y", inbox=desk.inbox)(desk.pay)
    graph: Any = StateGraph(dict)
    graph.add_node("work", lambda state: pay(state["amount"]))
    graph.add_edge(START, "work")
    with pytest.raises(ValueError, match="NUL"):
        graph.compile(checkpointer=InMemorySaver()).invoke({"amount": 5}, CONFIG)
    assert (desk.ran, desk.inbox.items()) == ([], [])
