"""Questions in every dialect, made up: right ones, and right ones with something broken in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from assent.review.model.questions import Action, Interrupt, Question, Verb, Verdict

Json = Any
Draw = Callable[[SearchStrategy[Any]], Any]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
words = texts.filter(lambda text: bool(text.strip()))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
json: SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(texts, json, max_size=3)
flat = st.dictionaries(texts, scalars | st.lists(texts, max_size=2), max_size=3)
strange = st.sampled_from(
    [float("nan"), float("inf"), "\ud800", b"x", {1: 2}, {1, 2}, object(), datetime(2026, 11, 15, tzinfo=UTC)]
)
anything = st.recursive(
    json | strange, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=5
)


def few(part: SearchStrategy[Json], unique: str | None = None) -> SearchStrategy[Json]:
    return st.lists(part, min_size=1, max_size=3, unique_by=(lambda each: each[unique]) if unique else None)


human_requests = st.fixed_dictionaries(
    {
        "action_request": st.fixed_dictionaries({"action": texts, "args": objects}),
        "config": st.fixed_dictionaries(
            {f"allow_{flag}": st.booleans() for flag in ("accept", "edit", "respond", "ignore")}
        ),
    },
    optional={"description": st.none() | texts},
)
human_interrupts = human_requests | few(human_requests)


@st.composite
def hitl_requests(draw: Draw) -> Json:
    requests = draw(few(st.fixed_dictionaries({"name": words, "args": objects})))
    allowed = st.lists(st.sampled_from(["approve", "edit", "reject", "respond"]), min_size=1, unique=True)
    configs = {request["name"]: draw(allowed) for request in requests}
    review = [{"action_name": each["name"], "allowed_decisions": configs[each["name"]]} for each in requests]
    return {"action_requests": requests, "review_configs": review}


tool_approvals = st.fixed_dictionaries(
    {"type": st.just("tool_approval"), "tool_call_id": words, "name": words, "args": objects},
    optional={"description": texts},
)


def called(part: SearchStrategy[Json]) -> SearchStrategy[Json]:
    return few(part, "call_id")


clarifications = st.fixed_dictionaries(
    {
        "kind": st.just("clarification"),
        "clarifications": called(
            st.fixed_dictionaries({"call_id": texts, "question": texts, "context": st.none() | texts})
        ),
    }
)
confirmations = st.fixed_dictionaries(
    {
        "kind": st.just("confirmation"),
        "tool_calls": called(st.fixed_dictionaries({"call_id": texts, "tool_name": words, "arguments": objects})),
    }
)
addresses = st.sampled_from(["https://a.example/x?y#z", "http://127.0.0.1:8002/", "https://[::1]/"])
logins = st.fixed_dictionaries(
    {"kind": st.just("oauth_url"), "url": addresses, "message": texts, "elicitation_id": texts}
)
schemas = st.sampled_from([{}, {"type": "object"}, {"type": "object", "properties": {"a": {"type": "string"}}}])
forms = st.fixed_dictionaries({"kind": st.just("form_elicitation"), "message": texts, "schema": schemas})
mcp_parts = st.fixed_dictionaries(
    {"key": texts, "message": texts, "mode": st.just("form"), "requested_schema": schemas}
) | st.fixed_dictionaries({"key": texts, "message": texts, "mode": st.just("url"), "url": addresses})
mcp_rounds = st.fixed_dictionaries(
    {
        "type": st.just("mcp_elicitation"),
        "tool_name": words,
        "requests": few(mcp_parts, "key"),
    }
)

VALUES: dict[str, SearchStrategy[Json]] = {
    "human_interrupt": human_interrupts,
    "hitl_request": hitl_requests(),
    "tool_approval": tool_approvals,
    "clarification": clarifications,
    "confirmation": confirmations,
    "oauth_url": logins,
    "form_elicitation": forms,
    "mcp_elicitation": mcp_rounds,
}


@st.composite
def mutated(draw: Draw) -> Json:
    """A right question with up to three places replaced, removed or added to."""
    value = draw(st.sampled_from(sorted(VALUES)).flatmap(VALUES.__getitem__))
    for _ in range(draw(st.integers(1, 3))):
        value = _mutate(value, draw)
    return value


def _mutate(value: Json, draw: Draw) -> Json:
    if not value or not isinstance(value, (dict, list)) or draw(st.integers(0, 4)) == 0:
        return draw(anything)
    key = draw(st.sampled_from(list(value) if isinstance(value, dict) else list(range(len(value)))))
    changed = dict(value) if isinstance(value, dict) else list(value)
    if draw(st.integers(0, 4)) == 0:
        del changed[key]
    else:
        changed[key] = _mutate(value[key], draw)
    return changed


interrupts = st.builds(
    Interrupt,
    words,
    json | mutated() | anything,
    st.none() | st.none() | objects | st.just({"type": "object"}) | strange,
)


@st.composite
def verdicts(draw: Draw, question: Question) -> tuple[Verdict, ...]:
    """One allowed verdict per action."""
    return tuple(draw(verdict(question, action)) for action in question.actions)


def verdict(question: Question, action: Action) -> SearchStrategy[Verdict]:
    return st.sampled_from(action.allowed).flatmap(lambda verb: _verdict(question, action, verb))


def _verdict(question: Question, action: Action, verb: Verb) -> SearchStrategy[Verdict]:
    blank = {"args": st.none(), "name": st.none(), "message": st.none()}
    needed: dict[str, SearchStrategy[Any]] = {}
    if verb == Verb.EDIT:
        needed["args"] = objects.filter(lambda args: question.dialect != "confirmation" or args != action.args)
        if question.dialect in ("human_interrupt", "hitl_request"):
            needed["name"] = st.none() | words.filter(lambda name: name != action.name)
    elif verb == Verb.RESPOND:
        needed["message"] = words
    elif verb == Verb.REJECT:
        needed["message"] = words if question.dialect == "confirmation" else st.none() | words
    elif verb == Verb.ACCEPT and action.schema is not None:
        needed["args"] = flat.filter(lambda args: isinstance(args.get("a", ""), str))
    return st.builds(Verdict, st.just(action.key), st.just(verb), **(blank | needed))
