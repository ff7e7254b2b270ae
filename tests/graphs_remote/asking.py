"""A graph that asks whatever its input says, one question after the other, keeps the answers, and records each one in
the file `log`, as a tool would have its effect.

Annotations are not postponed: Aegra loads a graph outside `sys.modules`, where LangGraph could not resolve them.
"""

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    questions: list[Any]
    answers: Annotated[list[Any], operator.add]
    log: str
    fails: bool


def ask(state: State) -> State:
    """One question per step: each has an interrupt id of its own."""
    place = len(state.get("answers") or [])
    answer = interrupt(state["questions"][place])
    if state.get("log"):
        with Path(state["log"]).open("a", encoding="utf-8") as log:
            log.write(f"{state['questions'][place]}\n")
    if state.get("fails"):
        raise ValueError("no luck")
    return {"answers": [answer]}


def more(state: State) -> str:
    return "ask" if len(state["answers"]) < len(state["questions"]) else END


built: StateGraph[Any, Any, Any, Any] = StateGraph(State)
built.add_node("ask", ask)
built.add_edge(START, "ask")
built.add_conditional_edges("ask", more, ["ask", END])
graph = built.compile()
