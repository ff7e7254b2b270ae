"""A graph that asks whatever its input says, one question after the other, and keeps the answers as they came."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    questions: list[Any]
    answers: Annotated[list[Any], operator.add]


def ask(state: State) -> State:
    return {"answers": [interrupt(state["questions"][len(state.get("answers", []))])]}


def _more(state: State) -> str:
    return "ask" if len(state["answers"]) < len(state["questions"]) else END


def ask_form(state: State) -> State:
    question = state["questions"][len(state.get("answers", []))]
    return {"answers": [interrupt(question["value"], response_schema=question["schema"])]}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_edge(START, "ask")
builder.add_conditional_edges("ask", _more, ["ask", END])
graph = builder.compile()

forms_builder = StateGraph(State)
forms_builder.add_node("ask", ask_form)
forms_builder.add_edge(START, "ask")
forms_builder.add_conditional_edges("ask", _more, ["ask", END])
forms = forms_builder.compile()
