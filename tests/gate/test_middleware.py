"""`ApprovalMiddleware` without a server: what it asks, what each answer does, and what it lets through."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.types import Command

from assent import ApprovalMiddleware
from assent.domain.items import Execution, ItemStatus
from assent.domain.policies import Policy, parse
from assent.errors import AlreadyDecided, Conflict, InvalidDecision, StaleRevision
from assent.gate.graphs import is_gated
from assent.gate.task import NotInGraph
from assent.store import events, policies
from tests.gate.desk import CONFIG, PAY, SEND, Desk, answers, asked, ids, script
from tests.graphs.agents import ScriptedModel


@pytest.mark.promise("P1")
@pytest.mark.promise("HITL-02")
@pytest.mark.promise("HITL-03")
def test_a_call_waits_and_runs_once_it_is_approved(desk: Desk) -> None:
    agent = desk.agent()
    [question] = asked(agent.invoke(script(SEND), CONFIG))
    assert desk.ran == []
    assert (question["type"], question["name"], question["args"], question["gate"]) == (
        "tool_approval",
        *SEND,
        "assent",
    )
    item = desk.decide()
    assert item.status is ItemStatus.APPROVED
    [message] = answers(desk.go_on(agent))
    assert desk.ran == [SEND]
    assert message.content == "sent to bob"
    assert desk.inbox.get(item.id).execution is Execution.DONE


async def test_the_same_by_coroutines(desk: Desk) -> None:
    agent = desk.agent()
    assert asked(await agent.ainvoke(script(SEND), CONFIG))
    desk.decide()
    [message] = answers(await agent.ainvoke(desk.inbox.command("thread-1"), CONFIG))
    assert (desk.ran, message.content) == ([SEND], "sent to bob")


@pytest.mark.promise("P2")
def test_the_tool_knows_its_grant(desk: Desk) -> None:
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    item = desk.decide()
    [grant] = desk.grants(item.id)
    desk.go_on(agent)
    assert [one and one.id for one in desk.under] == [grant.id]


@pytest.mark.promise("HITL-04")
@pytest.mark.promise("P5")
def test_an_edit_runs_the_edited_arguments_only(desk: Desk) -> None:
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    desk.decide("edit", args={"to": "eve", "body": "hi"})
    [message] = answers(desk.go_on(agent))
    assert desk.ran == [("send", {"to": "eve", "body": "hi"})]
    assert "human reviewer replaced this tool call" in message.content
    assert message.text.endswith("sent to eve")


def test_the_notice_of_an_edit_can_be_left_out(desk: Desk) -> None:
    agent = desk.agent(desk.gate(edit_notice=None))
    agent.invoke(script(SEND), CONFIG)
    desk.decide("edit", args={"to": "eve", "body": "hi"})
    assert [one.content for one in answers(desk.go_on(agent))] == ["sent to eve"]


@pytest.mark.promise("HITL-05")
@pytest.mark.promise("HITL-19")
@pytest.mark.promise("HITL-22")
@pytest.mark.parametrize(
    ("said", "heard"),
    [({"message": "not today"}, "with reason: not today"), ({}, "The tool was not executed. Do not retry")],
)
def test_a_rejected_call_never_runs(desk: Desk, said: dict[str, Any], heard: str) -> None:
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    desk.decide("reject", **said)
    [message] = answers(desk.go_on(agent))
    assert desk.ran == []
    assert message.status == "error"
    assert heard in message.content


@pytest.mark.promise("HITL-26")
def test_a_response_takes_the_place_of_the_result(desk: Desk) -> None:
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    desk.decide("respond", message="I told him myself")
    [message] = answers(desk.go_on(agent))
    assert desk.ran == []
    assert (message.status, message.content) == ("success", "I told him myself")


@pytest.mark.promise("P7")
def test_a_tool_that_nobody_named_asks(desk: Desk) -> None:
    agent = desk.agent(desk.gate({"pay": True}))
    result = agent.invoke(script(SEND, PAY), CONFIG)
    assert sorted(one["name"] for one in asked(result)) == ["pay", "send"]
    assert desk.ran == []


def test_the_stock_middleware_lets_it_run(desk: Desk) -> None:
    """The control: there, a tool that nobody named runs freely."""
    agent = desk.agent(HumanInTheLoopMiddleware({"pay": True}))
    agent.invoke(script(SEND), CONFIG)
    assert desk.ran == [SEND]


@pytest.mark.promise("HITL-10")
def test_false_runs_freely(desk: Desk) -> None:
    agent = desk.agent(desk.gate({"send": False}))
    result = agent.invoke(script(SEND, PAY), CONFIG)
    assert desk.ran == [SEND]
    assert desk.under == [None]
    assert [one["name"] for one in asked(result)] == ["pay"]


@pytest.mark.promise("HITL-09")
@pytest.mark.promise("HITL-06")
def test_only_what_is_allowed_can_be_decided(desk: Desk) -> None:
    agent = desk.agent(desk.gate({"send": {"allowed_decisions": ["approve", "reject"]}}))
    agent.invoke(script(SEND), CONFIG)
    assert desk.item().allowed == ("approve", "reject")
    with pytest.raises(InvalidDecision):
        desk.decide("edit", args={"to": "eve", "body": "x"})
    assert desk.item().status is ItemStatus.PENDING


def test_edited_arguments_must_fit_the_tool(desk: Desk) -> None:
    agent = desk.agent()
    agent.invoke(script(PAY), CONFIG)
    with pytest.raises(InvalidDecision, match="amount"):
        desk.decide("edit", args={"amount": "a lot"})


@pytest.mark.promise("HITL-11")
@pytest.mark.promise("HITL-12")
def test_what_the_person_reads(desk: Desk) -> None:
    described = desk.gate(
        {"pay": {"allowed_decisions": ["approve"], "description": lambda call, state, runtime: f"Pay {call['args']}?"}},
        description_prefix="Please look",
    )
    result = desk.agent(described).invoke(script(SEND, PAY), CONFIG)
    said = {one["name"]: one["description"] for one in asked(result)}
    assert said["pay"] == "Pay {'amount': 5}?"
    assert said["send"].startswith("Please look\n\nTool: send\nArgs:")


def test_a_misspelt_config_is_refused() -> None:
    with pytest.raises(ValueError, match="allowed_decisions"):
        ApprovalMiddleware({"send": {"allowed_decisions": []}})
    with pytest.raises(ValueError, match="allowed_decisions"):
        ApprovalMiddleware({"send": {"allowed_decisions": ["aprove"]}})  # type: ignore[dict-item]


@pytest.mark.promise("HITL-26")
def test_when_decides_whether_to_ask(desk: Desk) -> None:
    large = {"allowed_decisions": ["approve"], "when": lambda request: request.tool_call["args"]["amount"] > 100}
    agent = desk.agent(desk.gate({"pay": large}))
    result = agent.invoke(script(PAY, ("pay", {"amount": 500})), CONFIG)
    assert desk.ran == [PAY]
    assert [one["args"] for one in asked(result)] == [{"amount": 500}]


@pytest.mark.promise("P7")
def test_a_condition_that_flips_does_not_open_the_gate(desk: Desk) -> None:
    asks = [True]
    agent = desk.agent(desk.gate({"pay": {"allowed_decisions": ["approve"], "when": lambda request: asks[0]}}))
    agent.invoke(script(PAY), CONFIG)
    asks[0] = False
    assert asked(agent.invoke(None, CONFIG))
    assert desk.ran == []


def test_the_stock_middleware_is_opened_by_it(desk: Desk) -> None:
    """The control: there, the tool runs, whatever the person said."""
    asks = [True]
    config: Any = {"pay": {"allowed_decisions": ["reject"], "when": lambda request: asks[0]}}
    agent = desk.agent(HumanInTheLoopMiddleware(config, interrupt_mode="per_call"))
    [question] = ids(agent.invoke(script(PAY), CONFIG))
    asks[0] = False
    agent.invoke(Command(resume={question: {"type": "reject"}}), CONFIG)
    assert desk.ran == [PAY]


def put(desk: Desk, policy: Policy) -> None:
    desk.inbox.run(lambda tx: policies.put(tx, policy, source="test", actor="test"))


@pytest.mark.promise("HITL-01")
@pytest.mark.promise("P7")
@pytest.mark.parametrize("config", [{"send": True}, {"send": False}, {}])
def test_what_the_policy_never_lets_run_is_not_even_asked(desk: Desk, config: dict[str, bool]) -> None:
    put(desk, parse('[[rules]]\nname = "no mail"\ntool = "send"\nthen = "never"'))
    [message] = answers(desk.agent(desk.gate(config)).invoke(script(SEND), CONFIG))
    assert desk.ran == []
    assert message.status == "error"
    assert "no mail" in message.content
    assert desk.inbox.items() == []


@pytest.mark.promise("P7")
@pytest.mark.parametrize("before", [True, False])
def test_an_edit_cannot_lead_to_what_the_policy_never_lets_run(desk: Desk, before: bool) -> None:
    """Nor if the policy came only after the decision."""
    policy = parse('[[rules]]\nname = "large"\ntool = "pay"\nthen = "never"\nwhen = "args.amount > 100"')
    agent = desk.agent()
    agent.invoke(script(PAY), CONFIG)
    if before:
        put(desk, policy)
        with pytest.raises(InvalidDecision, match="never lets pay run"):
            desk.decide("edit", args={"amount": 5000})
        return
    desk.decide("edit", args={"amount": 5000})
    put(desk, policy)
    [message] = answers(desk.go_on(agent))
    assert desk.ran == []
    assert "large" in message.text


@pytest.mark.parametrize(
    ("policy", "config", "runs"),
    [
        ('[[rules]]\nname = "r"\ntool = "send"\nthen = "allow"', {}, True),
        ('[[rules]]\nname = "r"\ntool = "send"\nthen = "allow"', {"send": True}, False),
        ('[[rules]]\nname = "r"\ntool = "send"\nthen = "ask"', {"send": False}, False),
        ('[[rules]]\nname = "r"\ntool = "send"\nthen = "allow"\nwhen = "args.nothing == 1"', {}, False),
        ('default = "advise"', {}, False),
        ('default = "allow"', {}, False),
        ('default = "ask"', {"send": False}, True),
    ],
)
def test_policy_and_author_together(desk: Desk, policy: str, config: dict[str, bool], runs: bool) -> None:
    put(desk, parse(policy))
    result = desk.agent(desk.gate(config)).invoke(script(SEND), CONFIG)
    assert (desk.ran == [SEND]) is runs
    assert bool(asked(result)) is not runs


def test_a_standing_approval_answers_for_the_person(desk: Desk) -> None:
    def stand(tx: Any) -> None:
        policies.insert_approval(
            tx, approval_id="a", tool="send", actor="ana", expires_at=tx.now() + timedelta(hours=1), uses_left=1
        )

    desk.inbox.run(stand)
    agent = desk.agent()
    assert not asked(agent.invoke(script(SEND), CONFIG))
    assert desk.ran == [SEND]
    assert asked(agent.invoke(script(SEND), {"configurable": {"thread_id": "another"}}))
    assert desk.ran == [SEND]


@pytest.mark.parametrize(("verbs", "runs"), [('["reject"]', False), ('["approve", "reject"]', True)])
def test_a_standing_approval_says_nothing_where_nobody_may_approve(desk: Desk, verbs: str, runs: bool) -> None:
    until = timedelta(hours=1)
    put(desk, parse(f'[[rules]]\nname = "r"\ntool = "send"\nthen = "ask"\nverbs = {verbs}'))
    desk.inbox.run(
        lambda tx: policies.insert_approval(
            tx, approval_id="a", tool="send", actor="ana", expires_at=tx.now() + until, uses_left=1
        )
    )
    assert bool(asked(desk.agent().invoke(script(SEND), CONFIG))) is not runs
    assert (desk.ran == [SEND]) is runs


@pytest.mark.promise("HITL-13")
def test_without_a_checkpointer_it_says_so(desk: Desk) -> None:
    agent: Any = create_agent(ScriptedModel(), [desk.send], middleware=[desk.gate()])
    with pytest.raises(NotInGraph, match="checkpointer"):
        agent.invoke(script(SEND))
    assert desk.ran == []


def test_a_gated_graph_is_known_by_its_channel(desk: Desk) -> None:
    assert is_gated(desk.agent())
    assert not is_gated(desk.agent(HumanInTheLoopMiddleware({"send": True})))
    assert "assent_gate" not in desk.agent().invoke(script(SEND), CONFIG)


@pytest.mark.promise("P4")
@pytest.mark.promise("P5")
def test_a_decision_is_about_what_was_seen_and_there_is_one(desk: Desk) -> None:
    desk.agent().invoke(script(SEND), CONFIG)
    item = desk.item()
    with pytest.raises(StaleRevision):
        desk.inbox.decide(item.id, "approve", revision=item.revision, hash="another", by="ana")
    desk.decide(item=item)
    with pytest.raises(AlreadyDecided):
        desk.decide("reject", item)


def test_there_is_nothing_to_go_on_with_before_a_decision(desk: Desk) -> None:
    desk.agent().invoke(script(SEND), CONFIG)
    with pytest.raises(Conflict):
        desk.inbox.command("thread-1")


@pytest.mark.promise("P9")
def test_the_timeline_tells_it_all(desk: Desk) -> None:
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    desk.decide()
    desk.go_on(agent)
    told = desk.inbox.run(lambda tx: [event.kind for event, _ in events.entries(tx, after=0, limit=100)])
    assert told == ["item.created", "item.approved", "grant.started", "grant.done"]


def test_a_failing_tool_is_not_tried_again(desk: Desk) -> None:
    def broken(to: str) -> str:
        """Fails."""
        desk.ran.append(("broken", to))
        raise OSError("no network")

    agent = desk.agent(tools=[broken])
    agent.invoke(script(("broken", {"to": "bob"})), CONFIG)
    item = desk.decide()
    with pytest.raises(OSError, match="no network"):
        desk.go_on(agent)
    assert desk.inbox.get(item.id).execution is Execution.FAILED
    with pytest.raises(RuntimeError, match="no network"):
        agent.invoke(None, CONFIG)
    assert desk.ran == [("broken", "bob")]


def test_several_turns_of_one_thread(desk: Desk) -> None:
    """An answer that did its work is not sent again with the next one."""
    agent = desk.agent()
    for number in range(3):
        agent.invoke(script(("pay", {"amount": number})), CONFIG)
        desk.decide("approve" if number != 1 else "reject")
        assert len(desk.inbox.command("thread-1").resume) == 1  # type: ignore[arg-type]
        assert not asked(desk.go_on(agent))
    assert desk.ran == [("pay", {"amount": 0}), ("pay", {"amount": 2})]
