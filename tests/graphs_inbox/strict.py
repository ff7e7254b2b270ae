"""Questions whose answers fit their schema and are refused all the same: by the model itself, or by what is kept."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel, field_validator


class State(TypedDict, total=False):
    how: str
    marker: str
    password: str
    kept: Any


class Seats(BaseModel):
    seats: int

    @field_validator("seats")
    @classmethod
    def even(cls, seats: int) -> int:
        if seats % 2:
            raise ValueError("seats come in pairs")
        return seats


def ask(state: State) -> State:
    if state.get("how") == "raises":
        return {"kept": interrupt({"question": "Which status?", "status": HTTPStatus.OK})}
    if state.get("how") == "keeps":
        interrupt("Which status?")
        return {"kept": HTTPStatus.OK}
    if state.get("how") == "leaks":
        interrupt({"question": "Which account?", "password": state["password"]})
        raise RuntimeError(f"cannot sign in with {state['password']}")
    if state.get("how") == "fails first" and not Path(state["marker"]).exists():
        Path(state["marker"]).touch()
        raise ConnectionError("no seats yet")
    return {"kept": interrupt("How many seats?", response_schema=Seats).seats}


builder = StateGraph(State)
builder.add_node("ask", ask)
builder.add_edge(START, "ask")
graph = builder.compile()

_outer = StateGraph(State)
_outer.add_node("inner", graph)
_outer.add_edge(START, "inner")
nested = _outer.compile()
