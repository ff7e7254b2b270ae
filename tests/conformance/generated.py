"""Every field of every request, given values that it may not take, or seldom takes: both servers must answer the same.

One conversation is about one field. What a client has to tell apart is compared: whether the request was accepted, and
what came of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.conformance.talking import Json, Scenario, Talk, new_id

VALUES: dict[str, Any] = {
    "null": None,
    "number": 5,
    "zero": 0,
    "negative": -1,
    "fraction": 1.5,
    "huge": 10**20,
    "true": True,
    "false": False,
    "empty text": "",
    "text": "x",
    "number as text": "5",
    "U+0000": "a\0b",
    "lone surrogate": "\ud800",
    "empty list": [],
    "list of null": [None],
    "list of number": [5],
    "list of text": ["x"],
    "list of object": [{}],
    "empty object": {},
    "object": {"x": 1},
    "object of U+0000": {"a\0b": "a\0b"},
    "object of lone surrogate": {"x": "\ud800"},
}
BODIES: dict[str, bytes] = {
    "nothing": b"",
    "null": b"null",
    "text": b'"x"',
    "number": b"5",
    "list": b"[]",
    "object": b"{}",
    "no JSON": b"{",
    "NaN": b'{"metadata": {"x": NaN}}',
    "infinite": b'{"metadata": {"x": 1e999}}',
    "huge number": b'{"metadata": {"x": 100000000000000000000000}}',
    "a key twice": b'{"metadata": {"x": 1}, "metadata": {"x": 2}}',
    "no UTF-8": b'{"metadata": {"x": "\xff"}}',
    "byte order mark": b"\xef\xbb\xbf{}",
}
QUERIES = ("", "x", "0", "1", "-1", "5", "1.5", "100000000000000000000", "true", "false", "null", "a%00b", "%ff", "[]")
METHODS = ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "GET", "POST")


@dataclass(frozen=True)
class Operation:
    """A request whose fields are changed one by one. `{thread}` in it is a thread that has run."""

    method: str
    path: str
    body: Json = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    """A dot leads into an object: `config.tags`."""
    queries: tuple[str, ...] = ()
    searches: bool = False
    """Answers with what others have made, too: only what it is made of is compared."""
    opens: bool = False
    """Answers with a stream without an end: only its status is compared."""


_RUN: Json = {"assistant_id": "linear", "input": {"text": "x"}}
_CRON: Json = {**_RUN, "schedule": "0 0 1 1 *"}
_OF_RUNS = """
    assistant_id input command command.resume command.update command.goto config config.tags
    config.recursion_limit config.configurable config.metadata config.configurable.checkpoint_id
    config.max_concurrency config.configurable.checkpoint_ns config.configurable.thread_id config.run_name
    config.unknown context metadata metadata.x checkpoint checkpoint.checkpoint_id checkpoint_id checkpoint_during
    durability webhook interrupt_before interrupt_after stream_mode stream_subgraphs stream_resumable
    on_disconnect on_completion multitask_strategy if_not_exists after_seconds feedback_keys langsmith_tracer
"""
_OF_CRONS = """
    assistant_id schedule timezone input config config.tags config.configurable context metadata webhook
    durability interrupt_before interrupt_after enabled end_time on_run_completed multitask_strategy stream_mode
    stream_subgraphs stream_resumable
"""
_RUN_FIELDS, _CRON_FIELDS = (tuple(names.split()) for names in (_OF_RUNS, _OF_CRONS))
_PAGE = ("limit", "offset", "sort_by", "sort_order", "select")
_CHECKPOINT = ("checkpoint_id", "checkpoint_ns", "checkpoint_map", "thread_id")

OPERATIONS: dict[str, Operation] = {
    "run": Operation("POST", "/threads/{thread}/runs/wait", _RUN, _RUN_FIELDS),
    "stateless run": Operation(
        "POST",
        "/runs/wait",
        _RUN,
        ("command.resume", "checkpoint", "checkpoint_id", "interrupt_before", "on_completion", "multitask_strategy"),
    ),
    "runs together": Operation("POST", "/runs/cancel", {}, ("run_ids", "status", "thread_id"), ("action",)),
    "runs": Operation("GET", "/threads/{thread}/runs", queries=("limit", "offset", "status", "select")),
    "cancel": Operation("POST", "/threads/{thread}/runs/{run}/cancel", queries=("wait", "action")),
    "join": Operation("GET", "/threads/{thread}/runs/{ended}/join", queries=("cancel_on_disconnect",)),
    "join stream": Operation(
        "GET", "/threads/{thread}/runs/{ended}/stream", queries=("cancel_on_disconnect", "stream_mode")
    ),
    "new thread": Operation(
        "POST",
        "/threads",
        {},
        (
            *("thread_id", "metadata", "metadata.x", "if_exists", "ttl", "ttl.ttl", "ttl.strategy"),
            *("supersteps", "graph_id"),
        ),
    ),
    "thread with steps": Operation(
        "POST",
        "/threads",
        {
            "metadata": {"graph_id": "linear"},
            "supersteps": [{"updates": [{"values": {"text": "x"}, "as_node": "first"}]}],
        },
        (
            "supersteps",
            "supersteps.0",
            "supersteps.0.updates",
            "supersteps.0.updates.0",
            "supersteps.0.updates.0.values",
            "supersteps.0.updates.0.as_node",
            "supersteps.0.updates.0.command",
        ),
    ),
    "thread": Operation("GET", "/threads/{thread}", queries=("include",)),
    "thread change": Operation("PATCH", "/threads/{thread}", {}, ("metadata", "metadata.x", "ttl", "ttl.ttl")),
    "threads": Operation(
        "POST",
        "/threads/search",
        {},
        ("metadata", "metadata.x", "values", "values.x", "status", "ids", "extract", "extract.x", *_PAGE),
        searches=True,
    ),
    "thread count": Operation(
        "POST", "/threads/count", {}, ("metadata", "metadata.x", "values", "values.x", "status"), searches=True
    ),
    "prune": Operation("POST", "/threads/prune", {"thread_ids": []}, ("thread_ids", "strategy")),
    "state": Operation("GET", "/threads/{thread}/state", queries=("subgraphs",)),
    "state at": Operation(
        "POST",
        "/threads/{thread}/state/checkpoint",
        {"checkpoint": {}},
        ("checkpoint", *(f"checkpoint.{name}" for name in _CHECKPOINT), "subgraphs"),
    ),
    "state change": Operation(
        "POST",
        "/threads/{thread}/state",
        {"values": {"text": "y"}},
        (
            "values",
            "values.text",
            "values.log",
            "values.unknown",
            "as_node",
            "checkpoint",
            "checkpoint_id",
            *(f"checkpoint.{name}" for name in _CHECKPOINT),
        ),
    ),
    "history": Operation(
        "POST",
        "/threads/{thread}/history",
        {},
        (
            "limit",
            "before",
            "before.checkpoint_id",
            "before.configurable",
            "metadata",
            "metadata.x",
            "checkpoint",
            *(f"checkpoint.{name}" for name in _CHECKPOINT),
        ),
    ),
    "history by GET": Operation("GET", "/threads/{thread}/history", queries=("limit", "before")),
    "new assistant": Operation(
        "POST",
        "/assistants",
        {"graph_id": "linear", "name": "generated"},
        (
            "graph_id",
            "assistant_id",
            "config",
            "config.tags",
            "config.configurable",
            "config.recursion_limit",
            "context",
            "metadata",
            "metadata.x",
            "name",
            "description",
            "if_exists",
        ),
    ),
    "assistant change": Operation(
        "PATCH",
        "/assistants/{assistant}",
        {},
        ("graph_id", "config", "context", "metadata", "metadata.x", "name", "description"),
    ),
    "assistant version": Operation("POST", "/assistants/{assistant}/latest", {"version": 1}, ("version",)),
    "assistant versions": Operation(
        "POST", "/assistants/{assistant}/versions", {}, ("metadata", "metadata.x", "limit", "offset")
    ),
    "assistant deletion": Operation("DELETE", "/assistants/{new}", queries=("delete_threads",)),
    "assistants": Operation(
        "POST", "/assistants/search", {}, ("graph_id", "metadata", "metadata.x", "name", *_PAGE), searches=True
    ),
    "assistant count": Operation(
        "POST", "/assistants/count", {}, ("graph_id", "metadata", "metadata.x", "name"), searches=True
    ),
    "graph": Operation("GET", "/assistants/linear/graph", queries=("xray",)),
    "subgraphs": Operation("GET", "/assistants/linear/subgraphs", queries=("recurse",)),
    "new cron": Operation("POST", "/runs/crons", _CRON, _CRON_FIELDS),
    "cron of a thread": Operation("POST", "/threads/{thread}/runs/crons", _CRON, _CRON_FIELDS),
    "cron change": Operation("PATCH", "/runs/crons/{cron}", {}, _CRON_FIELDS),
    "crons": Operation(
        "POST",
        "/runs/crons/search",
        {},
        ("assistant_id", "thread_id", "enabled", "metadata", "metadata.x", *_PAGE),
        searches=True,
    ),
    "cron count": Operation(
        "POST", "/runs/crons/count", {}, ("assistant_id", "thread_id", "metadata", "metadata.x"), searches=True
    ),
    "new item": Operation(
        "PUT",
        "/store/items",
        {"namespace": ["generated", "{new}"], "key": "k", "value": {}},
        ("namespace", "key", "value", "value.x", "index", "ttl"),
    ),
    "item deletion": Operation(
        "DELETE", "/store/items", {"namespace": ["generated", "{new}"], "key": "k"}, ("namespace", "key")
    ),
    "item": Operation("GET", "/store/items?key=k&namespace=a", queries=("refresh_ttl",)),
    "item by key": Operation("GET", "/store/items?namespace=a", queries=("key",)),
    "item by namespace": Operation("GET", "/store/items?key=k", queries=("namespace",)),
    "items": Operation(
        "POST",
        "/store/items/search",
        {"namespace_prefix": ["generated", "{new}"]},
        ("namespace_prefix", "filter", "filter.x", "filter.x.$gt", "limit", "offset", "query", "refresh_ttl"),
        searches=True,
    ),
    "namespaces": Operation(
        "POST",
        "/store/namespaces",
        {"prefix": ["generated", "{new}"]},
        ("prefix", "suffix", "max_depth", "limit", "offset"),
        searches=True,
    ),
    "start": Operation(
        "POST",
        "/threads/{new}/commands",
        {"id": 1, "method": "run.start", "params": dict(_RUN)},
        (
            "id",
            "method",
            "params",
            "params.assistant_id",
            "params.input",
            "params.config",
            "params.config.configurable",
            "params.metadata",
            "params.multitaskStrategy",
        ),
    ),
    "respond": Operation(
        "POST",
        "/threads/{thread}/commands",
        {"id": 1, "method": "input.respond", "params": {"interrupt_id": "0" * 32, "response": 1, "namespace": []}},
        (
            "params",
            "params.interrupt_id",
            "params.response",
            "params.namespace",
            "params.responses",
            "params.update",
            "params.goto",
            "params.config",
            "params.metadata",
        ),
    ),
    "events": Operation(
        "POST",
        "/threads/{thread}/stream/events",
        {"channels": ["values"]},
        ("channels", "depth", "namespaces", "since"),
        opens=True,
    ),
    "thread stream": Operation("GET", "/threads/{thread}/stream", queries=("stream_modes",), opens=True),
    "metrics": Operation("GET", "/metrics", queries=("format",), opens=True),
    "ok": Operation("GET", "/ok", queries=("check_db",)),
}


def generated() -> dict[str, Scenario]:
    return {f"field/{name}": scenario for name, scenario in (*_fields(), *_queries(), *_bodies(), *_methods())}


def _fields() -> Iterator[tuple[str, Scenario]]:
    for name, operation in OPERATIONS.items():
        for path in operation.fields:
            yield f"{name}/{path}", partial(field_changed, operation=operation, path=path)


def _queries() -> Iterator[tuple[str, Scenario]]:
    for name, operation in OPERATIONS.items():
        for query in operation.queries:
            yield f"{name}?{query}", partial(query_changed, operation=operation, query=query)


def _bodies() -> Iterator[tuple[str, Scenario]]:
    for name, operation in OPERATIONS.items():
        if operation.fields and not operation.opens:
            yield f"{name} body", partial(body_changed, operation=operation)


def _methods() -> Iterator[tuple[str, Scenario]]:
    for path in dict.fromkeys(operation.path.partition("?")[0] for operation in OPERATIONS.values()):
        yield f"methods of {path}", partial(method_changed, path=path)


async def field_changed(talk: Talk, operation: Operation, path: str) -> None:
    for name, value in VALUES.items():
        body = _changed(operation.body, path.split("."), value)
        await _asked(talk, operation, name, json.dumps(body).encode())


async def query_changed(talk: Talk, operation: Operation, query: str) -> None:
    sign = "&" if "?" in operation.path else "?"
    for value in QUERIES:
        body = json.dumps(operation.body).encode() if operation.body else b""
        await _asked(talk, operation, value, body, f"{sign}{query}={value}")


async def body_changed(talk: Talk, operation: Operation) -> None:
    for name, body in BODIES.items():
        await _asked(talk, operation, name, body)


async def method_changed(talk: Talk, path: str) -> None:
    known = {name: new_id() for name in ("thread", "run", "ended", "assistant", "cron", "new")}
    for method in METHODS:
        await talk.refusal(method, path.format(**known))


async def _asked(talk: Talk, operation: Operation, name: str, body: bytes, query: str = "") -> None:
    known = await _known(talk, operation)
    path = operation.path.format(**known)
    content = body.replace(b"{new}", new_id().encode())
    headers = {"content-type": "application/json"} if operation.method != "GET" else {}
    if operation.opens:
        await talk.opened(operation.method, path + query, headers=headers, content=content)
    else:
        await talk.call(operation.method, path + query, headers=headers, content=content or None)
        if operation.searches:
            talk.arrange(_form(talk.said[-1]["body"]))
    said = talk.said.pop()
    refused = said["status"] >= 400
    talk.said.append({name: {"status": said["status"], **({} if refused else {"body": said["body"]})}})


async def _known(talk: Talk, operation: Operation) -> dict[str, str]:
    known = {"new": new_id()}
    if "{thread}" in operation.path:
        known["thread"] = await talk.thread(metadata={"graph_id": "linear"})
    if "{run}" in operation.path:
        body = json.dumps({**_RUN, "after_seconds": 600})
        known["run"] = await talk.made("run_id", f"/threads/{known['thread']}/runs", body)
    if "{ended}" in operation.path:
        known["ended"] = await talk.made("run_id", f"/threads/{known['thread']}/runs", json.dumps(_RUN))
        await talk.ended(f"/threads/{known['thread']}/runs/{known['ended']}")
    if "{assistant}" in operation.path:
        known["assistant"] = await talk.made("assistant_id", "/assistants", json.dumps({"graph_id": "linear"}))
    if "{cron}" in operation.path:
        known["cron"] = await talk.made("cron_id", "/runs/crons", json.dumps(_CRON))
    return known


def _changed(body: Json, path: list[str], value: Any) -> Json:
    changed = deepcopy(body)
    part: Any = changed
    for name in path[:-1]:
        part = part[int(name)] if isinstance(part, list) else part.setdefault(name, {})
    part[int(path[-1]) if isinstance(part, list) else path[-1]] = value
    return changed


def _form(body: Any) -> Any:
    """What others have made is in it, too."""
    return body if isinstance(body, dict) and "detail" in body else type(body).__name__
