"""The nodes one by one and where they lead, with tools that nothing in the assistant knows by name."""

from __future__ import annotations

import asyncio
import time
from typing import Any, get_args

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END
from typing_extensions import is_typeddict

from assent import LocalInbox
from assent.assistant import messages as conversation
from assent.assistant import state
from assent.assistant.failures import McpFailed, McpLost, ModelFailed, UnusableReply
from assent.assistant.graph import assemble
from assent.assistant.mcp.client import McpClient
from assent.assistant.mcp.servers import McpServers
from assent.assistant.nodes import Nodes
from assent.assistant.planner.model import OfflinePlanner
from assent.assistant.tools import Catalogue, Rules, Tool
from assent.gate.graphs import is_gated
from assent.review.model.questions import Verb, Verdict
from tests.assistant.conftest import Opener
from tests.assistant.desk import CONFIG, Aviary, client_of, every_call_is_answered_once, nodes_of, told
from tests.assistant.models import Scripted, ask, call, calls

APPROVE, SECOND = Verdict("0", Verb.APPROVE), Verdict("1", Verb.APPROVE)
NO = Verdict("0", Verb.REJECT, message="not today")
SECOND_NO = Verdict("1", Verb.REJECT, message="not this one")

_BIRD: Any = {"bird": {"type": "string"}}
FEED: Any = {"type": "object", "additionalProperties": False, "properties": _BIRD, "required": ["bird"]}
RING: Any = {**FEED, "properties": {**_BIRD, "colour": {"default": "red", "type": "string"}}}


def texts(messages: Any) -> list[str]:
    return [str(message.content) for message in messages if isinstance(message, ToolMessage)]


class TestTheGraph:
    @pytest.mark.promise("ASST-22")
    def test_graph_state_has_the_promised_types(self) -> None:
        for name in (
            *("RequestState", "ToolCallInfo", "ClarificationInfo", "RejectedToolFeedback", "ApprovalOutcome"),
            *("PendingApproval", "PendingClarification"),
        ):
            assert is_typeddict(getattr(state, name))
        kinds = ("clarification", "confirmation", "oauth_url", "form_elicitation", "no_action_needed")
        assert get_args(state.PendingKind) == kinds

    @pytest.mark.promise("ASST-37")
    async def test_router_and_executor_are_quick(self, aviary: Aviary, inbox: LocalInbox) -> None:
        planner = OfflinePlanner()
        nodes = Nodes(planner, planner, client_of(aviary.server), inbox=inbox)
        began = time.monotonic()
        asked: Any = {"messages": [HumanMessage("create a meeting called Standup tomorrow at 9am")]}
        await nodes.policy_router(asked)
        routed = time.monotonic()
        asked["allowed_tool_types"] = ["birds"]
        await nodes.task_executor(asked)
        assert routed - began < 5
        assert time.monotonic() - routed < 16

    @pytest.mark.promise("ASST-02", "ASST-05")
    async def test_graph_has_the_promised_nodes_and_edges(self, aviary: Aviary, inbox: LocalInbox) -> None:
        graph = assemble(nodes_of(aviary.server, inbox)).compile()
        edges = {(edge.source, edge.target) for edge in graph.get_graph().edges}
        assert edges == {
            ("__start__", "policy_router"),
            ("policy_router", "task_executor"),
            ("task_executor", "human_clarification"),
            ("task_executor", "human_confirmation"),
            ("task_executor", "use_tools"),
            ("task_executor", "__end__"),
            ("human_clarification", "human_confirmation"),
            ("human_clarification", "use_tools"),
            ("human_clarification", "task_executor"),
            ("human_confirmation", "use_tools"),
            ("human_confirmation", "task_executor"),
            ("use_tools", "oauth_needed"),
            ("use_tools", "use_tools"),
            ("use_tools", "task_executor"),
            ("oauth_needed", "use_tools"),
        }

    async def test_graph_is_recognised_as_gated(self, aviary: Aviary, inbox: LocalInbox) -> None:
        assert is_gated(assemble(nodes_of(aviary.server, inbox)).compile())

    @pytest.mark.promise("ASST-04", "ASST-06")
    @pytest.mark.parametrize(
        ("made", "after_executor", "after_clarification"),
        [
            ([ask("?"), call("ring"), call("watch")], "human_clarification", None),
            ([call("watch"), call("ring")], "human_confirmation", "human_confirmation"),
            ([call("watch")], "use_tools", "use_tools"),
            ([call("unheard_of")], "use_tools", "use_tools"),
            ([], END, "task_executor"),
        ],
    )
    async def test_calls_decide_the_next_node(
        self, aviary: Aviary, inbox: LocalInbox, made: Any, after_executor: str, after_clarification: str | None
    ) -> None:
        nodes = nodes_of(aviary.server, inbox)
        asking = {item["id"]: {"schema": None, "about": None} for item in made if item["name"] == "ring"}
        given: Any = {"messages": [HumanMessage("hi"), AIMessage("", tool_calls=made)], "asking": asking}
        assert nodes.after_executor(given) == after_executor
        if after_clarification:
            assert nodes.after_clarification(given) == after_clarification


class TestRouting:
    @pytest.mark.promise("ASST-03", "ASST-36")
    async def test_only_tools_of_the_allowed_types_are_bound(self, desk: Opener) -> None:
        there = desk(types=["stones"])
        await there.say("lift it")
        assert there.model.bound == [["request_clarification", "lift"]]

    @pytest.mark.promise("ASST-03")
    async def test_tools_of_other_types_do_not_run(self, desk: Opener, aviary: Aviary) -> None:
        made = [call("watch", bird="wren"), call("ring", bird="wren"), call("lift", stone="flint"), call("nothing")]
        there = desk(calls(*made), types=["stones"])
        assert await there.say("do all of it") is None
        assert aviary.done == [("lift", "flint")]
        assert [message.status for message in there.messages if isinstance(message, ToolMessage)] == [
            *("error", "error", "success", "error")
        ]
        assert every_call_is_answered_once(there.messages)

    async def test_control_tools_of_the_allowed_type_run(self, desk: Opener, aviary: Aviary) -> None:
        await desk(calls(call("watch", bird="wren")), types=["birds"]).say("watch")
        assert aviary.done == [("watch", "wren")]

    @pytest.mark.parametrize("types", ["birds", None, 5, ["fish"], [None, {}]])
    async def test_unusable_route_fails_the_request(self, desk: Opener, aviary: Aviary, types: Any) -> None:
        there = desk(calls(call("watch", bird="wren")), types=types)
        with pytest.raises(UnusableReply, match="names no list"):
            await there.say("sing")
        assert (there.model.bound, aviary.done) == ([], [])

    async def test_route_without_types_binds_no_tools(self, desk: Opener) -> None:
        there = desk(types=[])
        await there.say("sing")
        assert there.model.bound == [["request_clarification"]]


class TestADeadServer:
    """Decisions made during an outage of the server take effect afterwards."""

    @pytest.mark.parametrize("verdict", [Verdict("0", Verb.APPROVE), NO])
    async def test_decision_during_an_outage_is_applied_afterwards(
        self, desk: Opener, aviary: Aviary, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = desk(calls(call("feed", "f", bird="tit")))
        await there.say("go")
        with monkeypatch.context() as patch:
            patch.setattr(McpServers, "tools", _away)
            with pytest.raises(McpFailed):
                await there.answer(verdict)
        snapshot = await there.graph.aget_state(CONFIG)
        assert snapshot.next == (("task_executor",) if verdict is NO else ("use_tools",))
        assert await there.run_again() is None
        assert aviary.done == ([] if verdict is NO else [("feed", "tit")])

    async def test_answer_during_an_outage_is_applied_afterwards(
        self, desk: Opener, aviary: Aviary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = desk(calls(ask("Which?"), call("feed", "f", bird="tit")))
        await there.say("go")
        with monkeypatch.context() as patch:
            patch.setattr(McpServers, "tools", _away)
            asked = await there.respond("that one")
        assert [tool_call["arguments"] for tool_call in asked["tool_calls"]] == [{"bird": "tit"}]
        await there.approve()
        assert aviary.done == [("feed", "tit")]

    @pytest.mark.promise("P2")
    async def test_call_lost_during_transfer_is_in_doubt(
        self, desk: Opener, aviary: Aviary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = desk(calls(call("feed", "f", bird="tit")))
        await there.say("go")
        monkeypatch.setattr(McpClient, "call", _lost_on_the_way)
        with pytest.raises(McpLost):
            await there.approve()
        [grant] = there.grants()
        assert grant.status == "started"
        asked = await there.run_again()
        assert "doubt" in str(asked)
        there.settle("done")
        await there.go_on()
        assert "A person has confirmed that this call was carried out" in texts(there.messages)[-1]
        assert aviary.done == []

    async def test_call_that_was_never_sent_keeps_its_approval(
        self, desk: Opener, aviary: Aviary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        there = desk(calls(call("feed", "f", bird="tit")))
        await there.say("go")
        with monkeypatch.context() as away:
            away.setattr(McpClient, "call", _away_at_the_call)
            with pytest.raises(McpFailed):
                await there.approve()
        assert await there.run_again() is None
        [grant] = there.grants()
        assert (grant.status, aviary.done) == ("done", [("feed", "tit")])


async def _lost_on_the_way(client: McpClient, *call: Any) -> Any:
    raise McpLost("it is gone")


async def _away_at_the_call(client: McpClient, *call: Any) -> Any:
    raise McpFailed("it is away")


async def _away(client: McpServers) -> Any:
    raise McpFailed("it is away")


class TestConfirmation:
    @pytest.mark.promise("ASST-26", "ASST-30")
    async def test_approved_calls_all_run(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("watch", bird="wren"), call("feed", "f", bird="tit"), call("ring", "r", bird="jay")))
        asked = await there.say("go")
        assert asked == {
            "kind": "confirmation",
            "tool_calls": [
                {"call_id": "f", "tool_name": "feed", "arguments": {"bird": "tit"}, "args_schema": FEED},
                {"call_id": "r", "tool_name": "ring", "arguments": {"bird": "jay"}, "args_schema": RING},
            ],
            "gate": "assent",
        }
        assert aviary.done == []
        assert await there.approve() is None
        assert sorted(aviary.done) == [("feed", "tit"), ("ring", ("jay", "red")), ("watch", "wren")]
        assert told(there.messages) == ["human", "calls watch feed ring", "tool watch", "tool feed", "tool ring", "ai"]

    @pytest.mark.promise("ASST-29", "ASST-31")
    async def test_partial_approval_gives_the_seven_messages(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("feed", "a", bird="tit"), call("feed", "b", bird="jay")))
        await there.say("go")
        assert await there.answer(APPROVE, SECOND_NO) is None
        assert aviary.done == [("feed", "tit")]
        expected = ["human", "calls feed feed", "tool feed", "tool feed", "calls feed", "tool feed", "ai"]
        assert told(there.messages) == expected
        assert "not this one" in texts(there.messages)[1]
        assert texts(there.messages)[2] == "tit eats"
        assert every_call_is_answered_once(there.messages)

    @pytest.mark.promise("ASST-29", "ASST-30")
    async def test_partial_approval_runs_the_ungated_calls(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("feed", bird="tit"), call("watch", bird="wren"), call("feed", bird="jay")))
        asked = await there.say("go")
        assert len(asked["tool_calls"]) == 2
        await there.answer(NO, SECOND)
        assert sorted(aviary.done) == [("feed", "jay"), ("watch", "wren")]
        assert told(there.messages)[5:8] == ["calls watch feed", "tool watch", "tool feed"]

    @pytest.mark.promise("ASST-07", "ASST-27")
    async def test_rejection_of_all_calls_returns_to_the_model(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("feed", "a", bird="tit")), calls(call("feed", "b", bird="jay")))
        await there.say("go")
        asked = await there.answer(NO)
        [again] = asked["tool_calls"]
        assert (again["call_id"], again["tool_name"], again["arguments"]) == ("b", "feed", {"bird": "jay"})
        assert aviary.done == []
        assert "not today" in str(there.model.heard[-1][-1].content)
        await there.approve()
        assert aviary.done == [("feed", "jay")]

    @pytest.mark.promise("ASST-28")
    async def test_rejection_of_all_calls_runs_the_ungated_calls(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("feed", bird="tit"), call("watch", bird="wren")))
        await there.say("go")
        assert await there.answer(NO) is None
        assert aviary.done == [("watch", "wren")]
        assert "not today" in texts(there.messages)[0]

    async def test_an_edited_call_runs_as_edited(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("ring", bird="jay")))
        await there.say("go")
        edited = {"bird": "jay", "colour": "blue"}
        assert await there.answer(Verdict("0", Verb.EDIT, args=edited)) is None
        assert aviary.done == [("ring", ("jay", "blue"))]
        [made] = [message for message in there.messages if isinstance(message, AIMessage) and message.tool_calls][
            1
        ].tool_calls
        assert made["args"] == edited

    async def test_an_answer_without_a_decision_runs_nothing(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("feed", "a", bird="tit")))
        await there.say("go")
        asked = await there.resume({"approvals": [{"call_id": "a", "approved": True}]})
        assert (asked["type"], asked["name"]) == ("tool_approval", "feed")
        assert aviary.done == []

    @pytest.mark.parametrize(
        "wrong",
        [
            "yes",
            {"approvals": []},
            {"approvals": [{"call_id": "b", "approved": True}]},
            {"approvals": [{"call_id": "a", "approved": False}]},
            {"responses": [{"call_id": "a", "response": "yes"}]},
        ],
    )
    async def test_a_wrong_answer_is_asked_for_again(self, desk: Opener, aviary: Aviary, wrong: Any) -> None:
        there = desk(calls(call("feed", "a", bird="tit")))
        first = await there.say("go")
        assert await there.resume(wrong) == first
        await there.approve()
        assert aviary.done == [("feed", "tit")]

    async def test_grant_id_is_the_idempotency_key_of_the_call(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("ring", bird="jay")))
        await there.say("go")
        await there.approve()
        [grant] = there.grants()
        assert list(aviary.keys) == [grant.id]
        shown = Catalogue(await there.nodes.client.tools()).bound(["birds"])
        assert not any("idempotency_key" in one["function"]["parameters"]["properties"] for one in shown)


class TestClarification:
    @pytest.mark.promise("ASST-11", "ASST-23")
    async def test_questions_are_answered_by_their_ids(self, desk: Opener) -> None:
        there = desk(calls(ask("Which bird?", "q1"), ask("Which colour?", "q2")))
        asked = await there.say("ring one")
        assert asked["kind"] == "clarification"
        assert [clarification["question"] for clarification in asked["clarifications"]] == [
            "Which bird?",
            "Which colour?",
        ]
        answers = [{"call_id": "q2", "response": "blue"}, {"call_id": "q1", "response": "a jay"}]
        assert await there.resume({"responses": answers}) is None
        assert texts(there.messages) == ["a jay", "blue"]

    @pytest.mark.promise("ASST-24")
    async def test_question_defers_the_other_calls(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("feed", "f", bird="tit"), ask("And which other?"), call("watch", bird="wren")))
        assert (await there.say("feed some"))["kind"] == "clarification"
        asked = await there.respond("none")
        [shown] = asked["tool_calls"]
        assert (shown["tool_name"], shown["call_id"] != "f") == ("feed", True)
        assert aviary.done == []
        await there.approve()
        assert sorted(aviary.done) == [("feed", "tit"), ("watch", "wren")]
        assert told(there.messages)[1:8] == [
            *("calls feed request_clarification watch", "tool feed", "tool request_clarification", "tool watch"),
            *("calls feed watch", "tool feed", "tool watch"),
        ]
        assert every_call_is_answered_once(there.messages)

    @pytest.mark.promise("ASST-06")
    async def test_ungated_calls_run_after_the_question(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(ask("Sure?"), call("watch", bird="wren")))
        await there.say("watch")
        assert await there.respond("yes") is None
        assert aviary.done == [("watch", "wren")]


class TestWhatCanGoWrong:
    async def test_tool_errors_are_passed_to_the_model(self, desk: Opener) -> None:
        there = desk(calls(call("feed", bird="dodo"), call("watch", wrong=1)))
        await there.say("go")
        assert await there.approve() is None
        assert len(texts(there.messages)) == 2
        assert {message.status for message in there.messages if isinstance(message, ToolMessage)} == {"error"}

    async def test_failing_model_leaves_the_thread_usable(self, desk: Opener) -> None:
        there = desk(RuntimeError("secret words"), AIMessage("here I am"))
        with pytest.raises(ModelFailed, match=r"the model failed \(RuntimeError\)"):
            await there.say("hello")
        await there.say("hello again")
        assert there.messages[-1].content == "here I am"

    async def test_ids_are_unique_in_the_thread(self, desk: Opener) -> None:
        same = [call("watch", "call_0", bird="wren"), call("watch", "call_0", bird="tit")]
        there = desk(calls(*same), calls(call("watch", "call_0", bird="jay"), call("watch", "", bird="owl")))
        await there.say("watch")
        ids = [tool_call["id"] for m in there.messages if isinstance(m, AIMessage) for tool_call in m.tool_calls]
        assert len(set(ids)) == 4
        assert every_call_is_answered_once(there.messages)

    async def test_unreadable_arguments_are_reported_and_not_run(self, desk: Opener, aviary: Aviary) -> None:
        broken = {"name": "feed", "args": "{bird:", "id": "x", "error": "not JSON", "type": "invalid_tool_call"}
        there = desk(AIMessage("", invalid_tool_calls=[broken]))
        assert await there.say("feed") is None
        assert (texts(there.messages), aviary.done) == (["Error: not JSON"], [])

    async def test_open_calls_are_closed_before_the_next_request(self, desk: Opener) -> None:
        there = desk(calls(call("feed", "f", bird="tit")), AIMessage("done"))
        await there.say("feed")
        await there.say("never mind")
        assert told(there.messages) == ["human", "calls feed", "tool feed", "human", "ai"]

    def test_a_whole_conversation_needs_no_repair(self) -> None:
        whole: list[Any] = [
            HumanMessage("a"),
            calls(call("x", "1")),
            ToolMessage("b", tool_call_id="1"),
            AIMessage("c"),
        ]
        assert conversation.repaired(whole) is None


class TestDoubt:
    """A tool that knows no second try was cut off: nobody can know whether it took effect."""

    @pytest.mark.promise("P2")
    @pytest.mark.parametrize(("outcome", "done"), [("done", 1), ("run_again", 2), ("abandon", 1)])
    async def test_person_settles_a_call_in_doubt(self, desk: Opener, aviary: Aviary, outcome: str, done: int) -> None:
        there = desk(calls(call("ponder", bird="owl")))
        await there.say("go")
        aviary.hangs = True
        approving = asyncio.ensure_future(there.approve())
        async with asyncio.timeout(60):
            await aviary.hanging.wait()
        approving.cancel()
        await asyncio.wait([approving])
        await there.nodes.client.close()
        aviary.hangs = False
        assert (await there._ran(None))["kind"] == "assent.in_doubt"
        assert len(aviary.done) == 1
        there.settle(outcome)
        assert await there.go_on() is None
        assert len(aviary.done) == done
        assert every_call_is_answered_once(there.messages)


class TestTheRules:
    READ, WRITE = Tool("peek", reads_only=True), Tool("poke")

    @pytest.mark.promise("ASST-20")
    def test_without_rules_the_tool_annotations_decide(self) -> None:
        assert (Rules().asks(self.READ), Rules().asks(self.WRITE)) == (False, True)

    @pytest.mark.promise("ASST-20")
    def test_with_a_list_other_mapped_tools_run_without_approval(self) -> None:
        rules = Rules({"things": ["p?ke", "p*k"]}, ["poke"])
        assert [rules.asks(Tool(name)) for name in ("poke", "peek", "never_heard_of")] == [True, False, True]
        assert [rules.type_of(Tool(name)) for name in ("poke", "never_heard_of")] == ["things", "other"]

    @pytest.mark.promise("ASST-20")
    async def test_rules_apply_in_the_graph(self, desk: Opener, aviary: Aviary) -> None:
        mapping = {"all": ["watch", "feed"], "rest": ["*"]}
        there = desk(
            calls(call("watch", bird="wren"), call("feed", bird="tit")), types=["all"], mapping=mapping, hitl=["watch"]
        )
        asked = await there.say("go")
        assert [tool_call["tool_name"] for tool_call in asked["tool_calls"]] == ["watch"]
        await there.approve()
        assert len(aviary.done) == 2

    def test_tool_type_comes_from_its_tag_or_its_name(self) -> None:
        tool_types = [Rules().type_of(tool) for tool in (Tool("a", tags=("sea",)), Tool("add_event"), Tool("b"))]
        assert tool_types == ["sea", "calendar", "other"]

    def test_tool_with_a_reserved_name_is_not_offered(self) -> None:
        catalogue = Catalogue([Tool("request_clarification", tags=("x",)), Tool("b", tags=("x",))])
        assert [tool["function"]["name"] for tool in catalogue.bound(["x"])] == ["request_clarification", "b"]
        assert catalogue.usable("request_clarification", ["x"]) is None


def test_scripted_model_answers_done_after_its_script() -> None:
    assert Scripted(script=[]).invoke("hello").content == "done"
