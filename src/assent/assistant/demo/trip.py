"""An agent that books a trip: it asks for the destination as text and for details with a form. It books nothing."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

_DETAILS = {
    "type": "object",
    "properties": {
        "from": {"type": "string", "format": "date", "title": "First day"},
        "nights": {"type": "integer", "minimum": 1, "maximum": 30, "title": "Nights", "default": 2},
        "travel": {"type": "string", "enum": ["train", "plane"], "title": "By", "default": "train"},
        "quiet": {"type": "boolean", "title": "A quiet room", "default": True},
    },
    "required": ["from", "nights", "travel"],
}


class State(TypedDict, total=False):
    traveller: str
    destination: str
    details: dict[str, Any]
    outcome: str


def choose(state: State) -> State:
    if state.get("destination"):
        return {}
    asked = {
        "call_id": "destination",
        "question": f"Where does {state.get('traveller', 'the traveller')} go?",
        "context": "The request for a trip names no place, and nothing is booked without one.",
    }
    answer = interrupt({"kind": "clarification", "clarifications": [asked]})
    return {"destination": answer["responses"][0]["response"]}


def book(state: State) -> State:
    where = state.get("destination", "")
    traveller = state.get("traveller", "the traveller")
    message = f"The trip of {traveller} to {where}: when, and how?"
    answer = interrupt({"kind": "form_elicitation", "message": message, "schema": _DETAILS})
    if answer["action"] != "accept":
        return {"outcome": "not booked"}
    return {"details": answer["content"], "outcome": f"would be booked to {where}"}


builder = StateGraph(State)
builder.add_node("choose", choose)
builder.add_node("book", book)
builder.add_edge(START, "choose")
builder.add_edge("choose", "book")
graph = builder.compile()
