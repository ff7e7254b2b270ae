"""Requests that do not end in a complete answer: limits, empty, cut, filtered and refused replies, invalid calls."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from assent.assistant.replies import TEXTS, Limits, Outcome
from tests.assistant.conftest import Opener
from tests.assistant.desk import CONFIG, Aviary, every_call_is_answered_once
from tests.assistant.models import call, calls


def reply(text: str = "", **metadata: Any) -> AIMessage:
    return AIMessage(text, response_metadata=metadata)


async def state_of(there: Any) -> dict[str, Any]:
    snapshot = await there.graph.aget_state(CONFIG)
    values: dict[str, Any] = snapshot.values
    return values


class TestLimits:
    async def test_model_that_keeps_calling_is_stopped_after_its_model_calls(
        self, desk: Opener, aviary: Aviary
    ) -> None:
        script = [calls(call("watch", bird=str(n))) for n in range(100)]
        there = desk(*script, limits=Limits(model_calls=3))
        assert await there.say("watch them all") is None
        assert [bird for _, bird in aviary.done] == ["0", "1", "2"]
        state = await state_of(there)
        assert state["outcome"] == Outcome.MODEL_CALLS
        assert state["final_response"] == TEXTS[Outcome.MODEL_CALLS].format(3)

    async def test_next_request_has_its_own_limit(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(*[calls(call("watch", bird=str(n))) for n in range(100)], limits=Limits(model_calls=2))
        await there.say("go")
        await there.say("go on")
        assert len(aviary.done) == 4

    async def test_calls_above_the_limit_are_not_made_and_all_are_answered(self, desk: Opener, aviary: Aviary) -> None:
        many = [calls(*(call("watch", bird=f"{n}{m}") for m in range(4))) for n in range(100)]
        there = desk(*many, limits=Limits(tool_calls=10))
        assert await there.say("watch them all") is None
        assert len(aviary.done) == 8
        assert every_call_is_answered_once(there.messages)
        assert (await state_of(there))["outcome"] == Outcome.TOOL_CALLS

    async def test_control_without_a_limit_the_calls_go_on(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(*[calls(call("watch", bird=str(n))) for n in range(8)], limits=Limits(model_calls=1000))
        await there.say("watch them all")
        assert len(aviary.done) == 8
        assert (await state_of(there))["outcome"] == Outcome.COMPLETED


class TestReplies:
    @pytest.mark.parametrize(
        ("given", "outcome"),
        [
            (reply("half a sen", finish_reason="length"), Outcome.CUT),
            (reply("half a sen", stop_reason="max_tokens"), Outcome.CUT),
            (reply("half a sen", finish_reason="MAX_TOKENS"), Outcome.CUT),
            (reply("", finish_reason="content_filter"), Outcome.FILTERED),
            (reply("", finish_reason="SAFETY"), Outcome.FILTERED),
            (reply("", stop_reason="refusal"), Outcome.REFUSED),
            (AIMessage("", additional_kwargs={"refusal": "I cannot do that."}), Outcome.REFUSED),
        ],
    )
    async def test_reply_that_is_no_whole_answer_has_its_outcome(
        self, desk: Opener, given: AIMessage, outcome: Outcome
    ) -> None:
        there = desk(given)
        await there.say("hello")
        state = await state_of(there)
        assert state["outcome"] == outcome
        assert TEXTS[outcome] in state["final_response"]
        assert given.text in state["final_response"]

    async def test_empty_reply_is_requested_once_more(self, desk: Opener) -> None:
        there = desk(reply(""), reply("here I am"))
        await there.say("hello")
        assert (await state_of(there))["final_response"] == "here I am"

    async def test_two_empty_replies_are_no_success(self, desk: Opener) -> None:
        there = desk(reply(""), reply("  "), reply("never asked for"))
        await there.say("hello")
        state = await state_of(there)
        assert (state["outcome"], state["final_response"]) == (Outcome.EMPTY, TEXTS[Outcome.EMPTY])

    async def test_filtered_reply_with_calls_makes_none(self, desk: Opener, aviary: Aviary) -> None:
        made = calls(call("watch", bird="wren"))
        there = desk(made.model_copy(update={"response_metadata": {"finish_reason": "content_filter"}}))
        await there.say("hello")
        assert aviary.done == []
        assert every_call_is_answered_once(there.messages)


class TestInvalidCalls:
    async def test_call_that_cannot_run_goes_back_to_the_model(self, desk: Opener, aviary: Aviary) -> None:
        there = desk(calls(call("feed", "bad", foo=1)), calls(call("feed", "good", bird="tit")))
        asked = await there.say("feed the tit")
        assert [made["call_id"] for made in asked["tool_calls"]] == ["good"]
        [told] = [message for message in there.messages if isinstance(message, ToolMessage)]
        assert (told.tool_call_id, told.status) == ("bad", "error")
        assert "bird: is required" in str(told.content)
        assert await there.approve() is None
        assert aviary.done == [("feed", "tit")]


class TestState:
    @pytest.mark.promise("ASST-21")
    async def test_state_names_the_pending_action_and_the_outcome(self, desk: Opener) -> None:
        there = desk(calls(call("feed", "f", bird="tit")), AIMessage("fed"))
        await there.say("feed the tit")
        state = await state_of(there)
        assert state["allowed_tool_types"] == ["birds", "stones"]
        assert state["pending_action"] == {"kind": "confirmation", "call_ids": ["f"]}
        await there.approve()
        state = await state_of(there)
        assert state["pending_action"] == {"kind": "no_action_needed", "call_ids": []}
        assert (state["approval_outcome"], state["final_response"]) == ("all_approved", "fed")


class TestHistory:
    async def test_model_gets_the_last_messages_of_a_long_thread(self, desk: Opener) -> None:
        there = desk(AIMessage("first"), AIMessage("second"), limits=Limits(messages=2))
        await there.say("one")
        await there.say("two")
        assert [message.content for message in there.model.heard[-1][1:]] == ["two"]
        assert [message.content for message in there.messages] == ["one", "first", "two", "second"]
