"""Histories of a graph that does what its input says: lists that grow, lose and get elements in the middle, edited and
removed messages, values changed in place, custom reducers, a subgraph, questions."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt

from assent.runs.checkpoints.msgpack import StrictSerializer
from assent.runs.checkpoints.saver import SCOPE, Scope

TENANT = "acme"
SERDE = StrictSerializer()


def edited(log: list[Any], change: Any) -> list[Any]:
    """Appends a list; cuts, replaces and inserts at a place."""
    if isinstance(change, list):
        return [*log, *change]
    how, place, value = change["how"], change["place"] % (len(log) + 1), change["value"]
    removed = 0 if how == "insert" else 1
    return [*log[:place], *([] if how == "cut" else [value]), *log[place + removed :]]


def merged(facts: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Changes the old value in place, as careless reducers do."""
    facts.update(more)
    return facts


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[Any], edited]
    facts: Annotated[dict[str, Any], merged]
    value: Any
    act: tuple[str, int, Any]


async def act(state: State) -> dict[str, Any]:  # noqa: C901 - one case per kind of act
    how, place, value = state["act"]
    said = state.get("messages", [])
    message = said[place % len(said)] if said else HumanMessage("first", id="first")
    match how:
        case "say":
            return {"messages": [AIMessage(str(value)[:50] * 9, id=f"said {place} {len(said)}")]}
        case "tell":
            return {"messages": [HumanMessage(f"{place} {n}" * 9, id=f"told {place} {n}") for n in range(place % 9)]}
        case "edit":
            return {"messages": [HumanMessage(f"edited {value}"[:300], id=message.id)]}
        case "remove" if said:
            return {"messages": [RemoveMessage(id=str(message.id))]}
        case "mutate":
            message.additional_kwargs["changed"] = value
            state.get("facts", {})["changed"] = value
            return {"value": [place]}
        case "reword":
            message.content = f"reworded {value}"[:300]
            message.additional_kwargs = {"flag": (1, True, 1.0)[place % 3], "value": value}
            return {"value": place}
        case "log":
            return {"log": [value] * (place % 90)}
        case "cut" | "replace" | "insert":
            return {"log": {"how": how, "place": place, "value": value}}
        case "fact":
            return {"facts": {str(place % 3): value}}
        case "ask":
            return {"value": interrupt({"question": place})}
    return {"value": value}


async def inner(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage("inner", id=f"inner {len(state.get('messages', []))}")], "log": [state["act"][1]]}


def graph(checkpointer: Any) -> Any:
    below = StateGraph(State)
    for before, name in ((START, "one"), ("one", "two")):
        below.add_node(name, inner) if name == "one" else below.add_node(name, act)
        below.add_edge(before, name)
    builder = StateGraph(State)
    builder.add_node("act", act)
    builder.add_node("below", below.compile())
    builder.add_conditional_edges(START, lambda state: "below" if state["act"][1] % 4 == 3 else "act")
    return builder.compile(checkpointer=checkpointer)


_texts = st.text(max_size=20) | st.text(min_size=150, max_size=160)
_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | _texts | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=5,
)
_HOW = [
    "say",
    "say",
    "tell",
    "edit",
    "remove",
    "mutate",
    "reword",
    "log",
    "cut",
    "replace",
    "insert",
    "fact",
    "ask",
    "value",
]
steps = st.tuples(
    st.sampled_from(["run", "run", "run", "run", "fork", "update"]), st.sampled_from(_HOW), st.integers(0, 99), _plain
)
"""Where a step begins, what it does, at which place, with what value."""


async def stored(saver: BaseCheckpointSaver[Any], thread_id: str) -> dict[str, Any]:
    """The bytes of everything that the saver has of the thread."""
    listed: dict[str, Any] = {}
    config: Any = {"configurable": {"thread_id": thread_id, SCOPE: Scope(TENANT)}}
    for found in [found async for found in saver.alist(config)]:
        at = found.config["configurable"]
        address = {name: at.get(name) for name in ("checkpoint_ns", "checkpoint_id")}
        again = await saver.aget_tuple({"configurable": {**config["configurable"], **address}})
        assert again is not None
        for each in (found, again):
            parent = (each.parent_config or {}).get("configurable", {}).get("checkpoint_id")
            writes = sorted((each.pending_writes or []), key=lambda write: (write[0], write[1], repr(write[2])))
            facts = {k: v for k, v in each.metadata.items() if k not in ("thread_id", "checkpoint_ns")}
            whole = SERDE.dumps_typed([each.checkpoint, facts, parent, writes])
            assert listed.setdefault(f"{address}", whole) == whole
    return listed
