"""An assistant by script: the words of a request say what it asks for, one after the other, before it answers.

`ask`, `confirm`, `login`, `form` and `odd` pause, `both` asks two questions at once, `fail` raises, `cut` ends with
an incomplete answer, `slow:FILE` waits until the file is there, and `speak:FILE` does so in the middle of a sentence.
The completed steps are kept in the state under `done`, so a test can count them.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

FORM = {
    "type": "object",
    "properties": {
        "room": {"type": "string", "enum": ["blue", "green"], "title": "Room"},
        "people": {"type": "integer", "minimum": 1, "description": "how many come"},
        "catering": {"type": "boolean", "default": False},
    },
    "required": ["room", "people"],
}
SECRET = "sk-do-not-tell"


class State(MessagesState):
    done: Annotated[list[Any], operator.add]
    asked: int
    outcome: str


def _steps(state: State) -> list[str]:
    said = [message.content for message in state["messages"] if message.type == "human"]
    return str(said[-1]).split() if said else []


def _call(name: str, state: State) -> str:
    return f"{name}_{len(state.get('done', []))}_{len(state['messages'])}"


def _clarify(state: State) -> list[Any]:
    first, second = _call("when", state), _call("where", state)
    asked = [
        {"call_id": first, "question": "When?", "context": "a day and a time"},
        {"call_id": second, "question": "Where?", "context": "a room"},
    ]
    answer = interrupt({"kind": "clarification", "clarifications": asked})
    return [response["response"] for response in answer["responses"]]


def _confirm(state: State) -> list[Any]:
    calls = [
        {"call_id": _call("a", state), "tool_name": "create_event", "arguments": {"name": "Standup", "minutes": 30}},
        {
            "call_id": _call("b", state),
            "tool_name": "create_event",
            "arguments": {"name": "Lunch\u202e", "minutes": 60},
        },
    ]
    answer = interrupt({"kind": "confirmation", "tool_calls": calls})
    arguments = {call["call_id"]: call["arguments"] for call in calls}
    return [
        approval.get("arguments", arguments[approval["call_id"]])
        if approval["approved"]
        else f"not done: {approval['feedback']}"
        for approval in answer["approvals"]
    ]


def _login(state: State) -> list[Any]:
    message, url = "Connect your calendar", "https://accounts.example.com:8443/connect?state=1"
    return [interrupt({"kind": "oauth_url", "url": url, "message": message, "elicitation_id": "e1"})]


def _form(state: State) -> list[Any]:
    return [interrupt({"kind": "form_elicitation", "message": "Which room?", "schema": FORM})]


def _odd(state: State) -> list[Any]:
    return [interrupt("what do you make of this?")]


def _fail(state: State) -> list[Any]:
    raise RuntimeError(f"connection to https://model.internal refused for {SECRET}")


_WORDS = {"ask": _clarify, "confirm": _confirm, "login": _login, "form": _form, "odd": _odd, "fail": _fail}


class Hesitant(BaseChatModel):
    """Says half a sentence, and the rest once the file is there."""

    gate: Path

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        yield ChatGenerationChunk(message=AIMessageChunk(content="Well,\nthen"))
        await _opened(self.gate)
        yield ChatGenerationChunk(message=AIMessageChunk(content=" let us\x1b begin."))

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    @property
    def _llm_type(self) -> str:
        return "hesitant"


async def _opened(gate: Path) -> None:
    while not await asyncio.to_thread(gate.exists):  # noqa: ASYNC110 - a test opens it from outside
        await asyncio.sleep(0.01)


async def step(state: State) -> dict[str, Any]:
    word = _steps(state)[state.get("asked", 0)]
    asked = state.get("asked", 0) + 1
    if word.startswith("speak:"):
        said = await Hesitant(gate=Path(word.removeprefix("speak:"))).ainvoke("go on")
        return {"messages": [said], "asked": asked}
    if word.startswith("slow:"):
        await _opened(Path(word.removeprefix("slow:")))
    done = _WORDS[word](state) if word in _WORDS else []
    return {"done": done, "asked": asked}


def answer(state: State) -> dict[str, Any]:
    told = "; ".join(map(str, state.get("done", []))) or "nothing"
    outcome = "cut_reply" if "cut" in _steps(state) else "completed"
    return {"messages": [AIMessage([{"type": "text", "text": f"Done: {told}."}])], "asked": 0, "outcome": outcome}


def begin(state: State) -> dict[str, Any]:
    return {"asked": 0}


def left(state: State) -> dict[str, Any]:
    return {"done": [interrupt("left?")]}


def right(state: State) -> dict[str, Any]:
    return {"done": [interrupt("right?")]}


def join(state: State) -> dict[str, Any]:
    return {"asked": state.get("asked", 0) + 1}


def _next(state: State) -> str | list[str]:
    rest = _steps(state)[state.get("asked", 0) :]
    return ["left", "right"] if rest[:1] == ["both"] else "step" if rest else "answer"


builder = StateGraph(State)
builder.add_node("begin", begin)
builder.add_node("step", step)
builder.add_node("answer", answer)
builder.add_edge(START, "begin")
builder.add_node("left", left)
builder.add_node("right", right)
builder.add_node("join", join)
for node in ("begin", "step", "join"):
    builder.add_conditional_edges(node, _next, ["step", "left", "right", "answer"])
builder.add_edge(["left", "right"], "join")
builder.add_edge("answer", END)
graph = builder.compile()
