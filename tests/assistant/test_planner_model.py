"""The offline planner as LangChain sees it: bound tools by role, streams, structured answers, fresh ids."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from assent.assistant.planner.model import OfflinePlanner
from assent.assistant.planner.routing import route
from assent.assistant.planner.tools import Role, by_role
from assent.assistant.planner.tools import tool as read_tool
from tests.assistant.planner_talk import NOW, TOOLS, Talk, names, schema

STANDUP = "create a meeting called Standup tomorrow at 9am"


def planner() -> OfflinePlanner:
    return OfflinePlanner(now=lambda: NOW)


def test_ids_are_fresh_each_time() -> None:
    model = planner().bind_tools(TOOLS)
    ids = {model.invoke(STANDUP).tool_calls[0]["id"] for _ in range(20)}
    assert len(ids) == 20


def test_planner_names_itself_as_rules_and_not_a_model() -> None:
    message = planner().invoke("hello")
    assert "offline planner (rules, not a language model)" in message.content
    assert message.response_metadata["model_name"] == "offline planner (rules, not a language model)"


def test_a_stream_of_words_adds_up_to_the_message() -> None:
    chunks = [chunk for chunk in planner().stream("hello") if chunk.content]
    assert len(chunks) > 10
    assert "".join(str(chunk.content) for chunk in chunks) == planner().invoke("hello").content


async def test_a_stream_of_calls_adds_up_to_the_message() -> None:
    whole: AIMessageChunk | None = None
    async for chunk in planner().bind_tools(TOOLS).astream("create 2 events: A at 5pm and B at 6pm"):
        assert isinstance(chunk, AIMessageChunk)
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    assert [call["args"]["name"] for call in whole.tool_calls] == ["A", "B"]
    assert whole.response_metadata["offline_planner"]["goals"] == {
        whole.tool_calls[0]["id"]: [0],
        whole.tool_calls[1]["id"]: [1],
    }


async def test_planner_answers_asynchronously() -> None:
    assert names(await planner().bind_tools(TOOLS).ainvoke(STANDUP)) == ["create_event"]


def test_system_messages_change_nothing() -> None:
    message = planner().bind_tools(TOOLS).invoke([SystemMessage("Be kind."), HumanMessage(STANDUP)])
    assert names(message) == ["create_event"]


def test_stored_messages_of_the_planner_are_understood() -> None:
    """Earlier answers are found after messages went through JSON, as in checkpoints and clients."""
    model = planner().bind_tools(TOOLS)
    asked = model.invoke("schedule something")
    stored = AIMessage.model_validate_json(asked.model_dump_json())
    answer = ToolMessage("a meeting tomorrow at 3pm", tool_call_id=str(asked.tool_calls[0]["id"]))
    assert names(model.invoke([HumanMessage("schedule something"), stored, answer])) == ["create_event"]


def test_messages_without_planner_metadata_are_understood() -> None:
    """A graph may rebuild messages and keep nothing but the calls."""
    calls = [{"name": "request_clarification", "args": {"question": "What?"}, "id": "1"}]
    history = [HumanMessage("schedule something"), AIMessage(content="", tool_calls=calls)]
    model = planner().bind_tools(TOOLS)
    proposed = model.invoke([*history, ToolMessage("a meeting tomorrow at 3pm", tool_call_id="1")])
    assert names(proposed) == ["create_event"]
    bare = AIMessage(content="", tool_calls=proposed.tool_calls)
    done = ToolMessage(json.dumps({"event_id": "7"}), tool_call_id=str(proposed.tool_calls[0]["id"]))
    answered = model.invoke([*history, ToolMessage("a meeting tomorrow at 3pm", tool_call_id="1"), bare, done])
    assert answered.content == "Done: Meeting, tomorrow 15:00."


def test_tools_are_found_by_their_role() -> None:
    @tool
    def ask_user(question: str) -> str:
        """Ask the person for something that is missing."""
        return question

    @tool
    def cal__createEvent(title: str, start_time: str) -> str:
        """Creates a calendar entry."""
        return title

    message = planner().bind_tools([ask_user, cal__createEvent]).invoke(STANDUP)
    assert message.tool_calls[0]["name"] == "cal__createEvent"
    assert message.tool_calls[0]["args"] == {"title": "Standup", "start_time": "2026-11-17T09:00:00+01:00"}
    assert names(planner().bind_tools([ask_user, cal__createEvent]).invoke("schedule something")) == ["ask_user"]


def test_explicit_role_wins_over_a_guessed_one() -> None:
    tools = [*TOOLS, schema("termin", "", [], wann={}, start={}, name={})]
    model = OfflinePlanner(now=lambda: NOW, tool_roles={"termin": "create_event"})
    assert names(model.bind_tools(tools).invoke(STANDUP)) == ["termin"]


def test_deleting_tool_is_never_used_for_a_change() -> None:
    tool_by_role = by_role(
        [read_tool(schema("delete_event", "Deletes an event.", ["event_id"], event_id={}, name={}))], {}
    )
    assert Role.UPDATE not in tool_by_role


def test_missing_tool_is_reported() -> None:
    only_maps = [one for one in TOOLS if "places" in one["function"]["name"]]
    message = Talk(tools=only_maps).say(STANDUP)
    assert message.content == "I have no tool here to create events."


@pytest.mark.parametrize(
    ("sentence", "types"),
    [
        ("schedule something", {"calendar"}),
        (STANDUP, {"calendar"}),
        ("what's on my calendar tomorrow?", {"calendar"}),
        ("book a room tomorrow at 3pm", {"calendar"}),
        ("find a café near the station", {"maps"}),
        ("how do I get from the station to the harbour?", {"maps"}),
        ("find a café near the station and schedule lunch tomorrow at noon", {"calendar", "maps"}),
        ("thanks", set()),
        ("sing me a song", {"calendar", "maps"}),
    ],
)
def test_sentence_is_routed_to_its_tool_types(sentence: str, types: set[str]) -> None:
    assert route(sentence, lambda: NOW) == types


class Policy(BaseModel):
    """Which types of tools the request may use."""

    allowed: list[Literal["calendar", "maps", "mail"]] = Field(description="The types.")
    reason: str


def test_a_structured_answer_is_the_route() -> None:
    answer = planner().with_structured_output(Policy).invoke("find a bakery and schedule lunch tomorrow at noon")
    assert isinstance(answer, Policy)
    assert answer.allowed == ["calendar", "maps"]
    assert answer.reason
