"""Requests for runs that are wrong in some way: every one of them must be refused, or come to its end.

The same list each time: what is known to have gone wrong somewhere, filled up with random changes of a good request.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tests.graphs_malformed.hostile import ERRORS, STEPS, VALUES

UNKNOWN_ID = "1ef4f797-8335-6428-8001-8a1503f9b875"
FINE: dict[str, Any] = {"kind": "fine"}
GOOD_INPUT: dict[str, Any] = {"chat": {"messages": [{"role": "user", "content": "hi"}]}}
WRONG_MESSAGES: tuple[Any, ...] = (
    [{"x": 1}],
    [{"role": "nobody", "content": "hi"}],
    [{"role": "user"}],
    [{"type": "ai", "content": {"a": 1}}],
    [{"type": "tool", "content": "result"}],
    [{"type": "remove", "id": "unknown"}],
    [{"role": "assistant", "content": "", "tool_calls": [{"name": 5}]}],
    [{"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {}}],
    [[]],
    [["user"]],
    [["user", "hi", "more"]],
    [None],
    [5],
    {"x": 1},
    5,
    [{"role": "user", "content": "hi", "id": 5}],
)
WRONG_SHAPES: tuple[Any, ...] = (
    5,
    "text",
    True,
    [],
    [1, 2],
    [["kind", "fine"]],
    {"nowhere": 1},
    {"kind": {"a": [1]}},
    {},
    None,
)
WRONG_FIELDS: dict[str, tuple[Any, ...]] = {
    "config": (5, "x", [], {"configurable": 5}, {"configurable": ["a"]}, {"configurable": "x"}),
    "config.recursion_limit": ("x", 0, -1, 1.5, None, True, [], 10**30),
    "config.tags": ("x", 5, [1], {"a": 1}, [["x"]], [None]),
    "config.metadata": ("x", 5, [1], {"a": {"b": [2**70]}}, {"run_id": {"a": 1}}),
    "config.configurable": ({"thread_id": 5}, {"checkpoint_id": 5}, {"a": 2**70}, {"__pregel_resuming": True}),
    "config.configurable.__pregel_resume_map": ("text", 5, [1], {"a": 1}, True),
    "context": (5, "x", [], {"limit": "x"}, {"limit": -1}, {"limit": None}, {"nowhere": 1}),
    "command": (5, "x", [], {}, {"resume": 1, "goto": 5, "update": 5}),
    "command.goto": (5, True, [5], [[]], {"a": 1}, "nowhere", {"node": 5}, {"node": "nowhere"}, ["nowhere", {}]),
    "command.goto.input": (5, None, [1], {"kind": {}}),
    "command.update": (5, "x", [1], [["kind"]], [["nowhere", 1]], [[5, 1]], {"no": 1}, [["kind", "plain"]], [{}]),
    "command.resume": (5, None, {}, {"a": 1}, []),
    "checkpoint": (5, "x", {}, {"a": 1}, {"checkpoint_ns": 5}, {"checkpoint_ns": "a|"}),
    "checkpoint.checkpoint_id": (5, "zzz", UNKNOWN_ID),
    "checkpoint_id": ("zzz", 5, UNKNOWN_ID, "../..", ""),
    "stream_mode": (5, "x", [], ["x"], [5], {"a": 1}, ["values", "values"]),
    "interrupt_before": (5, "x", ["nowhere"], [5], {"a": 1}, "*"),
    "interrupt_after": (True, "", ["nowhere", "nowhere"], [None]),
    "durability": ("x", 5, "exit", True),
    "metadata": (5, "x", [1], {"graph_id": 5}, {"a": 2**70}, {"thread_id": {"b": 1}}),
    "multitask_strategy": ("x", 5),
    "after_seconds": (-1, "x", 1e300),
    "webhook": (5, "nowhere", "http://[", "ftp://a"),
    "assistant_id": (5, "", "nowhere", "../chat", UNKNOWN_ID, "x" * 300),
    "if_not_exists": ("x", 5),
    "on_completion": ("x", 5),
    "stream_subgraphs": ("x", 5, []),
    "stream_resumable": ("x", 5, []),
}
PIECES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    1e300,
    "",
    "x",
    "\ud7ff",
    [],
    {},
    [[]],
    {"": {}},
    {"kind": []},
    "a" * 5000,
)


@dataclass(frozen=True)
class Case:
    name: str
    body: dict[str, Any]
    fine: dict[str, Any] = field(init=False)
    """A request with nothing wrong in it, for the same graph."""

    def __post_init__(self) -> None:
        graph = self.name.partition(" ")[0]
        object.__setattr__(self, "fine", good(graph))


def good(graph: str) -> dict[str, Any]:
    return {"assistant_id": graph, "input": GOOD_INPUT.get(graph, FINE)}


def cases(count: int) -> list[Case]:
    return list(islice(_all(random.Random(10)), count))


def _all(dice: random.Random) -> Iterator[Case]:
    known = [*_inputs(), *_fields()]
    dice.shuffle(known)
    yield from known
    while True:
        yield _changed(dice)


def _inputs() -> Iterator[Case]:
    for messages in WRONG_MESSAGES:
        yield Case(f"chat {messages}", {"assistant_id": "chat", "input": {"messages": messages}})
    for shape in WRONG_SHAPES:
        for graph in ("chat", "modelled"):
            yield Case(f"{graph} {shape}", {"assistant_id": graph, "input": shape})
    kinds = {"clash": ("both",), "speaking": (*VALUES, "nothing like a state"), "asking": VALUES, "raising": ERRORS}
    refused = (*ERRORS, *(f"node {kind}" for kind in ERRORS))
    more = {"refusing": refused, "steering": STEPS, "modelled": ("node",)}
    few_steps = {"recursion_limit": 8}
    for graph, several in {**kinds, **more}.items():
        for kind in several:
            yield Case(f"{graph} {kind}", {"assistant_id": graph, "input": {"kind": kind}, "config": few_steps})
    for wrong in ({"count": "many"}, {"part": 5}, {"part": {"count": "many"}}):
        yield Case(f"modelled {wrong}", {"assistant_id": "modelled", "input": wrong})


def _fields() -> Iterator[Case]:
    for path, several in WRONG_FIELDS.items():
        graph = "contextual" if path == "context" else "raising"
        for wrong in several:
            yield Case(f"{graph} {path} = {wrong}", {**good(graph), **_nested(path, wrong)})


def _nested(path: str, wrong: Any) -> dict[str, Any]:
    """The fields of a request in which this one is wrong."""
    beside: dict[str, dict[str, Any]] = {
        "input": {"node": "fail"},
        "__pregel_resume_map": {"__pregel_resuming": True},
    }
    for name in reversed(path.split(".")):
        wrong = {**beside.get(name, {}), name: wrong}
    return dict(wrong)


def _changed(dice: random.Random) -> Case:
    graph = dice.choice(("chat", "modelled", "contextual", "raising", "asking"))
    body = {**good(graph), "command": {"update": {"kind": "x"}}, "config": {"configurable": {"a": 1}, "tags": ["a"]}}
    body = {name: value for name, value in body.items() if name in ("assistant_id", "input") or dice.random() < 0.3}
    return Case(f"{graph} changed", _damaged(dice, body, keep=("assistant_id",)))


def _damaged(dice: random.Random, value: Any, *, keep: tuple[str, ...] = ()) -> Any:
    """The same with one piece of it replaced, at a random depth."""
    if isinstance(value, dict) and value and dice.random() < 0.9:
        name = dice.choice([one for one in value if one not in keep] or list(value))
        return {**value, name: _damaged(dice, value[name])}
    if isinstance(value, list) and value and dice.random() < 0.7:
        return [_damaged(dice, value[0]), *value[1:]]
    return dice.choice(PIECES)
