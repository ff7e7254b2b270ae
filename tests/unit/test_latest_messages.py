"""The messages of a long thread that the model gets."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from assent.assistant.messages import latest
from tests.assistant.models import call, calls


def turn(name: str, tools: int = 1) -> list[AnyMessage]:
    made = [call("watch", f"{name}{n}") for n in range(tools)]
    used = [message for one in made for message in (calls(one), ToolMessage("sings", tool_call_id=str(one["id"])))]
    return [HumanMessage(name), *used, AIMessage("done")]


THREAD = [*turn("one"), *turn("two"), *turn("three")]


@pytest.mark.parametrize(
    ("most", "first"), [(100, "one"), (12, "one"), (11, "two"), (8, "two"), (7, "three"), (4, "three"), (1, "three")]
)
def test_messages_begin_with_a_request(most: int, first: str) -> None:
    kept = latest(THREAD, most)
    assert kept[0].content == first
    assert kept == THREAD[-len(kept) :]


def test_present_request_is_complete_however_long_it_is() -> None:
    thread = [*turn("one"), *turn("two", tools=20)]
    assert latest(thread, 5) == thread[4:]


def test_thread_without_a_request_is_unchanged() -> None:
    assert latest([AIMessage("hello")] * 3, 1) == [AIMessage("hello")] * 3
