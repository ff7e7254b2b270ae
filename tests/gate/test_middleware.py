"""`ApprovalMiddleware` without a server: what it asks, what each answer does, and what it lets through."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.types import Command

from assent import ApprovalMiddleware
from assent.errors import AlreadyDecided, ConfirmationRequired, Conflict, InvalidDecision, StaleRevision
from assent.gate.graphs import is_gated
from assent.gate.task import NotInGraph
from assent.kernel import events
from assent.review.model.items import Execution, ItemStatus
from assent.review.model.policies import parse
from assent.review.rows import policies
from tests.gate.desk import CONFIG, PAY, SEND, Desk, answers, asked, ids, script
from tests.graphs.agents import ScriptedModel


@pytest.mark.promise("P1", "HITL-15")
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


async def test_call_waits_and_runs_after_approval_in_coroutines(desk: Desk) -> None:
    agent = desk.agent()
    assert asked(await agent.ainvoke(script(SEND), CONFIG))
    desk.decide()
    [message] = answers(await agent.ainvoke(desk.inbox.command("thread-1"), CONFIG))
    assert (desk.ran, message.content) == ([SEND], "sent to bob")


@pytest.mark.promise("P2")
def test_tool_gets_its_grant(desk: Desk) -> None:
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    item = desk.decide()
    [grant] = desk.grants(item.id)
    desk.go_on(agent)
    assert [row and row.id for row in desk.under] == [grant.id]


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


def test_notice_of_an_edit_can_be_disabled(desk: Desk) -> None:
    agent = desk.agent(desk.gate(edit_notice=None))
    agent.invoke(script(SEND), CONFIG)
    desk.decide("edit", args={"to": "eve", "body": "hi"})
    assert [answer.content for answer in answers(desk.go_on(agent))] == ["sent to eve"]


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
def test_response_replaces_the_result(desk: Desk) -> None:
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    desk.decide("respond", message="I told him myself")
    [message] = answers(desk.go_on(agent))
    assert desk.ran == []
    assert (message.status, message.content) == ("success", "I told him myself")


@pytest.mark.promise("P7")
def test_unnamed_tool_needs_approval(desk: Desk) -> None:
    agent = desk.agent(desk.gate({"pay": True}))
    result = agent.invoke(script(SEND, PAY), CONFIG)
    assert sorted(question["name"] for question in asked(result)) == ["pay", "send"]
    assert desk.ran == []


def test_control_stock_middleware_runs_an_unnamed_tool(desk: Desk) -> None:
    """The control: there, a tool that nobody named runs freely."""
    agent = desk.agent(HumanInTheLoopMiddleware({"pay": True}))
    agent.invoke(script(SEND), CONFIG)
    assert desk.ran == [SEND]


@pytest.mark.promise("HITL-10")
def test_tool_configured_as_false_runs_without_approval(desk: Desk) -> None:
    agent = desk.agent(desk.gate({"send": False}))
    result = agent.invoke(script(SEND, PAY), CONFIG)
    assert desk.ran == [SEND]
    assert desk.under == [None]
    assert [question["name"] for question in asked(result)] == ["pay"]


@pytest.mark.promise("HITL-09")
@pytest.mark.promise("HITL-06")
def test_decision_that_is_not_allowed_is_refused(desk: Desk) -> None:
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
def test_item_shows_the_configured_description(desk: Desk) -> None:
    described = desk.gate(
        {"pay": {"allowed_decisions": ["approve"], "description": lambda call, state, runtime: f"Pay {call['args']}?"}},
        description_prefix="Please look",
    )
    result = desk.agent(described).invoke(script(SEND, PAY), CONFIG)
    said = {question["name"]: question["description"] for question in asked(result)}
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
    assert [question["args"] for question in asked(result)] == [{"amount": 500}]


@pytest.mark.promise("P7")
def test_condition_that_changes_does_not_pass_the_gate(desk: Desk) -> None:
    asks = [True]
    agent = desk.agent(desk.gate({"pay": {"allowed_decisions": ["approve"], "when": lambda request: asks[0]}}))
    agent.invoke(script(PAY), CONFIG)
    asks[0] = False
    assert asked(agent.invoke(None, CONFIG))
    assert desk.ran == []


def test_control_stock_middleware_is_passed_by_a_changing_condition(desk: Desk) -> None:
    """The control: there, the tool runs, whatever the person said."""
    asks = [True]
    config: Any = {"pay": {"allowed_decisions": ["reject"], "when": lambda request: asks[0]}}
    agent = desk.agent(HumanInTheLoopMiddleware(config, interrupt_mode="per_call"))
    [question] = ids(agent.invoke(script(PAY), CONFIG))
    asks[0] = False
    agent.invoke(Command(resume={question: {"type": "reject"}}), CONFIG)
    assert desk.ran == [PAY]


@pytest.mark.promise("HITL-01")
@pytest.mark.promise("P7")
@pytest.mark.parametrize("config", [{"send": True}, {"send": False}, {}])
def test_call_forbidden_by_the_policy_is_not_asked(desk: Desk, config: dict[str, bool]) -> None:
    desk.inbox.use(parse('[[rules]]\nname = "no mail"\ntool = "send"\nthen = "never"'))
    [message] = answers(desk.agent(desk.gate(config)).invoke(script(SEND), CONFIG))
    assert desk.ran == []
    assert message.status == "error"
    assert "no mail" in message.content
    assert desk.inbox.items() == []


@pytest.mark.promise("P7")
@pytest.mark.parametrize("before", [True, False])
def test_edit_into_a_forbidden_call_does_not_run(desk: Desk, before: bool) -> None:
    """Nor if the policy came only after the decision."""
    policy = parse('[[rules]]\nname = "large"\ntool = "pay"\nthen = "never"\nwhen = "args.amount > 100"')
    agent = desk.agent()
    agent.invoke(script(PAY), CONFIG)
    if before:
        desk.inbox.use(policy)
        with pytest.raises(InvalidDecision, match="policy forbids pay"):
            desk.decide("edit", args={"amount": 5000})
        return
    desk.decide("edit", args={"amount": 5000})
    desk.inbox.use(policy)
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
def test_stricter_of_policy_and_author_applies(desk: Desk, policy: str, config: dict[str, bool], runs: bool) -> None:
    desk.inbox.use(parse(policy))
    result = desk.agent(desk.gate(config)).invoke(script(SEND), CONFIG)
    assert (desk.ran == [SEND]) is runs
    assert bool(asked(result)) is not runs


def test_standing_approval_runs_the_call_without_a_question(desk: Desk) -> None:
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


@pytest.mark.parametrize("confirm", [True, False])
def test_passkey_rule_is_not_met_by_library_or_standing_approval(desk: Desk, confirm: bool) -> None:
    """The control: without the word in the rule, both are."""
    asks = '\nconfirm = "passkey"' if confirm else ""
    desk.inbox.use(parse(f'[[rules]]\nname = "mail"\ntool = "send"\nthen = "ask"{asks}'))

    def stand(tx: Any) -> None:
        policies.insert_approval(
            tx, approval_id="a", tool="send", actor="ana", expires_at=tx.now() + timedelta(hours=1)
        )

    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    if confirm:
        with pytest.raises(ConfirmationRequired, match="nobody has registered one"):
            desk.decide()
    else:
        desk.decide()
    desk.inbox.run(stand)
    assert bool(asked(agent.invoke(script(SEND), {"configurable": {"thread_id": "another"}}))) is confirm
    assert (desk.ran == []) is confirm


@pytest.mark.parametrize(("verbs", "runs"), [('["reject"]', False), ('["approve", "reject"]', True)])
def test_standing_approval_does_not_apply_where_nobody_may_approve(desk: Desk, verbs: str, runs: bool) -> None:
    until = timedelta(hours=1)
    desk.inbox.use(parse(f'[[rules]]\nname = "r"\ntool = "send"\nthen = "ask"\nverbs = {verbs}'))
    desk.inbox.run(
        lambda tx: policies.insert_approval(
            tx, approval_id="a", tool="send", actor="ana", expires_at=tx.now() + until, uses_left=1
        )
    )
    assert bool(asked(desk.agent().invoke(script(SEND), CONFIG))) is not runs
    assert (desk.ran == [SEND]) is runs


@pytest.mark.promise("HITL-13")
def test_graph_without_a_checkpointer_is_refused(desk: Desk) -> None:
    agent: Any = create_agent(ScriptedModel(), [desk.send], middleware=[desk.gate()])
    with pytest.raises(NotInGraph, match="checkpointer"):
        agent.invoke(script(SEND))
    assert desk.ran == []


def test_gated_graph_is_recognised_by_its_channel(desk: Desk) -> None:
    assert is_gated(desk.agent())
    assert not is_gated(desk.agent(HumanInTheLoopMiddleware({"send": True})))
    assert "assent_gate" not in desk.agent().invoke(script(SEND), CONFIG)


@pytest.mark.promise("P4")
@pytest.mark.promise("P5")
def test_decision_is_bound_to_its_revision_and_made_once(desk: Desk) -> None:
    desk.agent().invoke(script(SEND), CONFIG)
    item = desk.item()
    with pytest.raises(StaleRevision):
        desk.inbox.decide(item.id, "approve", revision=item.revision, hash="another", by="ana")
    desk.decide(item=item)
    with pytest.raises(AlreadyDecided):
        desk.decide("reject", item)


def test_command_before_a_decision_is_refused(desk: Desk) -> None:
    desk.agent().invoke(script(SEND), CONFIG)
    with pytest.raises(Conflict):
        desk.inbox.command("thread-1")


@pytest.mark.promise("P9")
def test_timeline_records_every_step(desk: Desk) -> None:
    agent = desk.agent()
    agent.invoke(script(SEND), CONFIG)
    desk.decide()
    desk.go_on(agent)
    told = desk.inbox.run(lambda tx: [event.kind for event, _ in events.entries(tx, after=0, limit=100)])
    assert told == ["item.created", "item.approved", "grant.started", "grant.done"]


def test_failing_tool_is_not_retried(desk: Desk) -> None:
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


def test_earlier_answers_are_not_sent_again_in_later_turns(desk: Desk) -> None:
    """An answer that did its work is not sent again with the next one."""
    agent = desk.agent()
    for number in range(3):
        agent.invoke(script(("pay", {"amount": number})), CONFIG)
        desk.decide("approve" if number != 1 else "reject")
        assert len(desk.inbox.command("thread-1").resume) == 1  # type: ignore[arg-type]
        assert not asked(desk.go_on(agent))
    assert desk.ran == [("pay", {"amount": 0}), ("pay", {"amount": 2})]
