"""The graphs of the suite: what each is given, and how its questions are answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
TEXT: Json = {"text": "x"}
HELLO: Json = {"messages": [{"role": "user", "content": "hi", "id": "asked"}]}
CONTINUE = object()
"""Instead of an answer: the run stopped at a breakpoint."""


@dataclass(frozen=True)
class Case:
    graph: str
    input: Any = field(default_factory=lambda: dict(TEXT))
    answers: tuple[Any, ...] = ()
    """One for each pause; a list answers several questions, in the order of their texts."""
    options: Json = field(default_factory=dict)
    nested: bool = False


CASES = [
    Case("defaults"),
    Case("required", options={"context": {"model": "large"}}),
    Case("typed_context", options={"context": {"model": "large"}}),
    Case("private", {"question": "q"}),
    Case("private_asking", {"question": "q"}, ("fine",)),
    Case("metadata", options={"metadata": {"run": "r"}}),
    Case("nested", nested=True),
    Case("rejected"),
    Case("pairs", answers=(CONTINUE,)),
    Case("late"),
    Case("talking", HELLO),
    Case("bad_message", HELLO),
    Case("own_types", answers=({"title": "shorter", "offers": [{"price": 5}]},)),
    Case("refusing", answers=({"number": 4},)),
    Case("linear"),
    Case("stops_after", answers=(CONTINUE, CONTINUE)),
    Case("reducers", {"text": "x", "total": 1, "log": ["given"]}),
    Case("branches"),
    Case("deferred"),
    Case("sends", {"text": "abc"}),
    Case("commands"),
    Case("to_parent", nested=True),
    Case("loop"),
    Case("endless", options={"config": {"recursion_limit": 4}}),
    Case("deep", nested=True),
    Case("called", nested=True),
    Case("pydantic_state", {"text": "x", "detail": {"amount": 3}}),
    Case("pydantic_state", {"detail": "wrong"}),
    Case("dataclass_state"),
    Case("managed", options={"config": {"recursion_limit": 7}}),
    Case("cached"),
    Case("retried"),
    Case("odd_values"),
    Case("configured", options={"config": {"configurable": {"mine": "m"}, "tags": ["a", "b"]}}),
    Case("made", options={"config": {"configurable": {"mine": "m"}}}),
    Case("remembering"),
    Case("writing", nested=True),
    Case("failing"),
    Case("own_error"),
    Case("failing_inside", nested=True),
    Case("failing_beside"),
    Case("unknown_goto"),
    Case("no_dict"),
    Case("ask_text", answers=("go",)),
    Case("ask_dict", answers=({"chosen": 1},)),
    Case("ask_twice", answers=("one", "two")),
    Case("ask_schema", answers=({"colour": "red"},)),
    Case("ask_human", answers=([{"type": "accept", "args": None}],)),
    Case("ask_batched", answers=({"decisions": [{"type": "approve"}]},)),
    Case("ask_clarification", answers=("Monday",)),
    Case("ask_parallel", answers=(["left", "right"],)),
    Case("ask_inside", answers=("inside",), nested=True),
    Case("ask_sent", answers=(["a", "b"],)),
    Case("ask_tool", HELLO, ("yes",)),
    Case("functional", {"number": 3}),
    Case("functional_asking", {"number": 3}, ("yes",)),
    Case("functional_previous", {"number": 3}),
    Case("tagged", HELLO),
    Case("silent", HELLO),
    Case("speaking_inside", HELLO, nested=True),
    Case("plain_messages", HELLO),
    Case("forgetting", HELLO),
    Case("tools", HELLO),
]
GRAPHS = list(dict.fromkeys(case.graph for case in CASES))
