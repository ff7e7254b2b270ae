"""An agent that drafts an email and asks before it is sent. It uses templates, so the demo needs no model."""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict, total=False):
    to: str
    about: str
    subject: str
    body: str
    outcome: str


def draft(state: State) -> State:
    about = state.get("about", "your question")
    greeting = state.get("to", "you@example.com").partition("@")[0].title()
    body = f"Hello {greeting},\n\nthank you for writing about {about}. You hear from us tomorrow.\n\nKind regards"
    return {"subject": f"Re: {about}", "body": body}


def review(state: State) -> State:
    """Pauses until a person decides; nothing before has an external effect."""
    args = {"to": state.get("to", ""), "subject": state.get("subject", ""), "body": state.get("body", "")}
    answer = interrupt(
        {
            "action_request": {"action": "send_email", "args": args},
            "config": {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True},
            "description": f"A reply to **{args['to']}**. Nothing is sent before someone accepts it.",
        }
    )
    return _settled(answer[0], args)


def _settled(answer: dict[str, Any], args: dict[str, str]) -> State:
    match answer["type"]:
        case "accept":
            return {"outcome": f"sent to {args['to']}"}
        case "edit":
            edited = answer["args"]["args"]
            return {"subject": edited["subject"], "body": edited["body"], "outcome": f"sent to {edited['to']}, edited"}
        case "response":
            return {"outcome": f"not sent; noted: {answer['args']}"}
    return {"outcome": "not sent"}


builder = StateGraph(State)
builder.add_node("draft", draft)
builder.add_node("review", review)
builder.add_edge(START, "draft")
builder.add_edge("draft", "review")
graph = builder.compile()
