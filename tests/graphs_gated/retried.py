"""A graph whose node loses its database in the first attempt of a run."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from assent.errors import Unavailable


class Notes(TypedDict, total=False):
    notes: Annotated[list[str], operator.add]
    asks: bool
    answer: Any


def begin(state: Notes) -> Notes:
    question = {"kind": "clarification", "clarifications": [{"call_id": "1", "question": "Which?", "context": ""}]}
    return {"answer": interrupt(question)} if state.get("asks") else {}


def work(state: Notes, config: RunnableConfig) -> Notes:
    if config["metadata"]["run_attempt"] == 1:
        raise Unavailable("the database is gone")
    return {"notes": ["worked"]}


def _retried() -> Any:
    builder: Any = StateGraph(Notes)
    builder.add_node("begin", begin)
    builder.add_node("work", work)
    builder.add_edge(START, "begin")
    return builder.compile()


retried = _retried()
