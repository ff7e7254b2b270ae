"""Graphs that are served by LangGraph's own server and by ours, for tests that compare the two."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, NamedTuple

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import BaseModel, field_validator
from typing_extensions import TypedDict


class Text(TypedDict, total=False):
    text: str
    found: Any


@dataclass
class Settings:
    model: str = "small"
    limit: int = 3


@dataclass
class Required:
    model: str


class TypedSettings(BaseModel):
    model: str = "small"


def _reads_context(state: Text, runtime: Runtime[Any]) -> Text:
    context = runtime.context
    return {"found": None if context is None else {"type": type(context).__name__, **_fields(context)}}


def _fields(context: Any) -> dict[str, Any]:
    return dict(context) if isinstance(context, dict) else dict(vars(context))


def _with_context(schema: type | None) -> Any:
    return StateGraph(Text, context_schema=schema).add_node("read", _reads_context).add_edge(START, "read").compile()


defaults, required, typed_context = map(_with_context, (Settings, Required, TypedSettings))


class Asked(TypedDict):
    question: str


class Answered(TypedDict):
    answer: str


class Whole(Asked, Answered, total=False):
    notes: str


def _note(state: Asked) -> Whole:
    return {"notes": f"private notes on {state['question']}"}  # type: ignore[typeddict-item]


def _answer(state: Whole) -> Answered:
    return {"answer": f"answer to {state['question']}"}


private = (
    StateGraph(Whole, input_schema=Asked, output_schema=Answered)
    .add_node("note", _note)
    .add_node("answer", _answer)
    .add_edge(START, "note")
    .add_edge("note", "answer")
    .compile()
)


def _ask(state: Whole) -> Answered:
    return {"answer": interrupt({"about": state["question"]})}


private_asking = (
    StateGraph(Whole, input_schema=Asked, output_schema=Answered)
    .add_node("note", _note)
    .add_node("ask", _ask)
    .add_edge(START, "note")
    .add_edge("note", "ask")
    .compile()
)


def _reads_metadata(state: Text, config: RunnableConfig) -> Text:
    return {"found": dict(config.get("metadata") or {})}


metadata = StateGraph(Text).add_node("read", _reads_metadata).add_edge(START, "read").compile()

_inner = StateGraph(Text).add_node("inside", lambda state: {"text": "inside"}).add_edge(START, "inside").compile()
nested = StateGraph(Text).add_node("outer", _inner).add_edge(START, "outer").compile()


class Single(TypedDict, total=False):
    value: int


rejected = (
    StateGraph(Single)
    .add_node("one", lambda state: {"value": 1})
    .add_node("two", lambda state: {"value": 2})
    .add_edge(START, "one")
    .add_edge(START, "two")
    .compile()
)


class Listed(TypedDict, total=False):
    listed: Annotated[list[str], operator.add]
    text: str


pairs = (
    StateGraph(Listed)
    .add_node("first", lambda state: {"listed": ["first"]})
    .add_node("second", lambda state: {"listed": ["second"]})
    .add_edge(START, "first")
    .add_edge("first", "second")
    .compile(interrupt_before=["second"])
)


def _too_late(state: Text) -> Text:
    raise TimeoutError("the node's own")


late = StateGraph(Text).add_node("wait", _too_late).add_edge(START, "wait").compile()


async def _say(state: MessagesState) -> dict[str, Any]:
    model = GenericFakeChatModel(messages=iter([AIMessage("hello there", id="said")]))
    return {"messages": [await model.ainvoke(state["messages"])]}


talking = StateGraph(MessagesState).add_node("say", _say).add_edge(START, "say").add_edge("say", END).compile()

bad_message = (
    StateGraph(MessagesState)
    .add_node("say", lambda state: {"messages": [{"role": "nobody", "content": "x"}]})
    .add_edge(START, "say")
    .compile()
)


class Colour(Enum):
    RED = "red"


class Place(NamedTuple):
    row: int
    seat: str


@dataclass
class Offer:
    price: int
    colour: Colour = Colour.RED


class Plan(BaseModel):
    title: str
    offers: list[Offer] = []


class Untyped(TypedDict, total=False):
    """Names none of the classes that it holds."""

    text: str
    kept: Any
    answer: Any


def _keep(state: Untyped) -> Untyped:
    return {"kept": [Plan(title="trip", offers=[Offer(3)]), Offer(4), Colour.RED, Place(1, "a")]}


def _ask_with_types(state: Untyped) -> Untyped:
    answer = interrupt({"plan": state["kept"][0]}, response_schema=Plan)
    return {"answer": [type(answer).__name__, answer]}


own_types = (
    StateGraph(Untyped)
    .add_node("keep", _keep)
    .add_node("ask", _ask_with_types)
    .add_edge(START, "keep")
    .add_edge("keep", "ask")
    .compile()
)


class Even(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("odd")
        return number


def _ask_even(state: Text) -> Text:
    return {"found": interrupt("Which number?", response_schema=Even).number}


refusing = StateGraph(Text).add_node("ask", _ask_even).add_edge(START, "ask").compile()

_elsewhere = RemoteGraph("elsewhere", url="http://127.0.0.1:9")
remote = StateGraph(Text).add_node("elsewhere", _elsewhere).add_edge(START, "elsewhere").compile()
