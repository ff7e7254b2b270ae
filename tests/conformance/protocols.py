"""What is asked of both servers over MCP and A2A: each row is one request, or one conversation about a task."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.conformance.cases import GRAPHS
from tests.conformance.talking import Json, Scenario, Talk, new_id

_ACCEPT = {"accept": "application/json, text/event-stream"}
_MESSAGE = {"role": "user", "content": "hi"}

MCP: dict[str, Any] = {
    "initialize": ("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}),
    "initialize of an old version": ("initialize", {"protocolVersion": "2024-11-05"}),
    "initialize of an unknown version": ("initialize", {"protocolVersion": "1999"}),
    "initialize without parameters": ("initialize", None),
    "ping": ("ping", None),
    "unknown method": ("resources/list", {}),
    "tools": ("tools/list", {}),
    "tools at an unknown cursor": ("tools/list", {"cursor": "x"}),
    "call": ("tools/call", {"name": "linear", "arguments": {"text": "x"}}),
    "call without arguments": ("tools/call", {"name": "linear"}),
    "call with a text for messages": ("tools/call", {"name": "talking", "arguments": {"messages": "hi"}}),
    "call with messages": ("tools/call", {"name": "talking", "arguments": {"messages": [_MESSAGE]}}),
    "call that fails": ("tools/call", {"name": "failing", "arguments": {"text": "x"}}),
    "call that pauses": ("tools/call", {"name": "ask_text", "arguments": {"text": "x"}}),
    "call of an unknown tool": ("tools/call", {"name": "nope", "arguments": {}}),
    "call without a name": ("tools/call", {"arguments": {}}),
    "call with arguments that are a text": ("tools/call", {"name": "linear", "arguments": "x"}),
    "parameters that are a list": ("tools/call", []),
}
MCP_BODIES: dict[str, Any] = {
    "list": [],
    "batch": [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
    "no version": {"id": 1, "method": "ping"},
    "notification": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "response": {"jsonrpc": "2.0", "id": 1, "result": {}},
    "method that is a number": {"jsonrpc": "2.0", "id": 1, "method": 5},
}
A2A_VERSIONS = {
    "0.3": ("message/send", "tasks/get", "tasks/cancel", "message/stream"),
    "1.0": ("SendMessage", "GetTask", "CancelTask", "SendStreamingMessage"),
}
A2A_MESSAGES: dict[str, Json] = {
    "text to a graph without messages": {"graph": "linear", "parts": [{"text": "x"}]},
    "data": {"graph": "linear", "parts": [{"data": {"text": "x"}}]},
    "empty data": {"graph": "linear", "parts": [{"data": {}}]},
    "data that is a list": {"graph": "linear", "parts": [{"data": [1]}]},
    "message to a graph that fails": {"graph": "failing", "parts": [{"data": {"text": "x"}}]},
    "message to a graph that asks": {"graph": "ask_text", "parts": [{"data": {"text": "x"}}]},
    "message without parts": {"parts": []},
    "part that is a text": {"parts": ["x"]},
    "part of no kind": {"parts": [{}]},
    "unknown role": {"role": "bogus"},
    "context that is no id": {"contextId": "mine"},
    "unknown task": {"taskId": "6ba7b821-9dad-11d1-80b4-00c04fd430c8"},
}
A2A_TASKS: dict[str, Json] = {
    "unknown task": {"id": "6ba7b821-9dad-11d1-80b4-00c04fd430c8"},
    "task number": {"id": 5},
    "task without an id": {},
}


def protocols() -> dict[str, Scenario]:
    return dict([*_mcp(), *_a2a()])


def _mcp() -> Iterator[tuple[str, Scenario]]:
    for name, (method, params) in MCP.items():
        yield f"mcp/{name}", partial(asked_of_mcp, method=method, params=params)
    for name, body in MCP_BODIES.items():
        yield f"mcp/body: {name}", partial(sent_to_mcp, body=body)
    yield "mcp/other methods", mcp_without_streams


def _a2a() -> Iterator[tuple[str, Scenario]]:
    for version in A2A_VERSIONS:
        yield f"a2a/conversation {version}", partial(conversation, version=version)
        for name, change in A2A_MESSAGES.items():
            yield f"a2a/{name} {version}", partial(messaged, version=version, **change)
        for name, params in A2A_TASKS.items():
            yield f"a2a/read or cancel {name} {version}", partial(task_named, version=version, params=params)
    yield "a2a/cards", cards


async def asked_of_mcp(talk: Talk, method: str, params: Any) -> None:
    await sent_to_mcp(talk, {"jsonrpc": "2.0", "id": 1, "method": method, **({"params": params} if params else {})})


async def sent_to_mcp(talk: Talk, body: Any) -> None:
    answer = await talk.call("POST", "/mcp", body, headers=_ACCEPT)
    if isinstance(answer, dict) and "tools" in (answer.get("result") or {}):
        talk.arrange({tool["name"]: tool for tool in answer["result"]["tools"] if tool["name"] in GRAPHS})


async def mcp_without_streams(talk: Talk) -> None:
    await talk.call("GET", "/mcp", headers=_ACCEPT)
    await talk.call("DELETE", "/mcp")
    await talk.call("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers={"accept": "text/html"})
    await talk.call("POST", "/mcp", headers=_ACCEPT)


async def conversation(talk: Talk, version: str) -> None:
    """A task, its history, and what is refused once it has ended."""
    _, get, cancel, stream = A2A_VERSIONS[version]
    task = _task(await messaged(talk, version))
    known = {"id": task["id"], "contextId": task["contextId"]}
    for more in ({}, {"historyLength": 1}, {"historyLength": 0}, {"historyLength": -1}):
        await _call(talk, "talking", get, {**known, **more})
    await _call(talk, "talking", cancel, known)
    await messaged(talk, version, contextId=task["contextId"])
    await messaged(talk, version, contextId=task["contextId"], taskId=task["id"])
    path = await _path(talk, "talking")
    request = {"jsonrpc": "2.0", "id": 1, "method": stream, "params": {"message": _said(version)}}
    frames = await talk.stream("POST", path, request, headers=_ACCEPT)
    talk.arrange(list(dict.fromkeys(_kind(frame["data"]["result"]) for frame in frames)))


async def messaged(talk: Talk, version: str, graph: str = "talking", **change: Any) -> Any:
    return await _call(talk, graph, A2A_VERSIONS[version][0], {"message": _said(version, **change)})


async def task_named(talk: Talk, version: str, params: Json) -> None:
    for method in A2A_VERSIONS[version][1:3]:
        await _call(talk, "talking", method, params)


async def cards(talk: Talk) -> None:
    path = await _path(talk, "talking")
    await talk.call("GET", f"{path}/.well-known/agent-card.json")
    for query in ("", f"?assistant_id={new_id()}", "?assistant_id=nope"):
        await talk.call("GET", f"/.well-known/agent-card.json{query}")
    for method in ("nope", "tasks/pushNotificationConfig/set"):
        await _call(talk, "talking", method, {})


def _said(version: str, **change: Any) -> Json:
    """A message in the form of this version."""
    said = {"messageId": new_id(), "role": "user" if version == "0.3" else "ROLE_USER", "parts": [{"text": "hello"}]}
    said |= change
    if version == "0.3":
        said |= {"kind": "message", "parts": [_of_its_kind(part) for part in said["parts"]]}
    return said


def _of_its_kind(part: Any) -> Any:
    return {**part, "kind": next(iter(part), "other")} if isinstance(part, dict) else part


async def _path(talk: Talk, graph: str) -> str:
    [listed] = await talk.call("POST", "/assistants/search", {"graph_id": graph, "metadata": {"created_by": "system"}})
    return f"/a2a/{listed['assistant_id']}"


async def _call(talk: Talk, graph: str, method: str, params: Json) -> Any:
    return await talk.call(
        "POST", await _path(talk, graph), {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    )


def _task(answer: Json) -> Json:
    result = answer["result"]
    task: Json = result.get("task", result)
    return task


def _kind(result: Json) -> str:
    """The kind of an event of a stream, in either form."""
    wrapped = next((kind for kind in ("statusUpdate", "artifactUpdate", "task") if kind in result), None)
    return wrapped or str(result["kind"])
