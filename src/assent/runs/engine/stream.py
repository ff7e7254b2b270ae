"""Translates LangGraph's stream to client frames: event names, message assembly, cleaned configs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from assent.runs.engine import protocol
from assent.runs.project.failures import SHOWN, Failures
from assent.runs.upstream import INTERRUPT

if TYPE_CHECKING:
    from assent.runs.project.graphs import AnyPregel

MODES = (
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "events",
    "debug",
    "tasks",
    "checkpoints",
)
_HIDDEN = "langsmith:hidden"
"""The tag of LangGraph's internal steps, such as `__start__`."""

Chunk = tuple[tuple[str, ...], str, Any]
"""Namespace, LangGraph's stream mode, data."""
Event = tuple[str, Any]


async def chunks(
    graph: AnyPregel, input: Any, config: Any, *, modes: Sequence[str], subgraphs: bool, **options: Any
) -> AsyncIterator[Chunk]:
    """The graph's stream, limited to its output schema. It always includes `values`, the last of which is the run's
    result, and `updates`, which shows stops without a question."""
    options["output_keys"] = graph.output_channels
    if protocol.MODES.issubset(modes):
        async for chunk in protocol.chunks(graph, input, config, options):
            yield chunk
        return
    wanted = {"messages" if mode == "messages-tuple" else mode for mode in modes}
    native = sorted(wanted - {"events"} | {"values", "updates"})
    if "events" in wanted:
        async for chunk in _with_events(graph, input, config, native, subgraphs, options):
            yield chunk
        return
    parts: Any = graph.astream(input, config, stream_mode=native, subgraphs=subgraphs, **options)  # type: ignore[arg-type]
    async with aclosing(parts):
        async for part in parts:
            yield part if subgraphs else ((), *part)


async def _with_events(
    graph: AnyPregel, input: Any, config: Any, native: list[str], subgraphs: bool, options: Mapping[str, Any]
) -> AsyncIterator[Chunk]:
    """LangChain's events, with the other modes extracted from the root's `on_chain_stream` events."""
    root: str | None = None
    events = graph.astream_events(input, config, version="v2", stream_mode=native, subgraphs=subgraphs, **options)
    async for event in events:
        root = root or event["run_id"]
        if event["event"] == "on_chain_stream" and event["run_id"] == root:
            part = event["data"]["chunk"]
            yield part if subgraphs else ((), *part)
        elif _HIDDEN not in (event.get("tags") or ()):
            yield (), "events", event


class Translator:
    """Translates chunks to client events, and records the last values and whether the graph stopped."""

    def __init__(self, modes: Sequence[str], failures: Failures = SHOWN) -> None:
        self._modes = frozenset(modes)
        self._of_protocol = protocol.MODES.issubset(modes)
        self._failures = failures
        self._messages: dict[str, Any] = {}
        self.values: Any = None
        self.stopped = False

    def events(self, chunk: Chunk) -> Iterator[Event]:
        namespace, mode, data = chunk
        suffix = "".join(f"|{part}" for part in namespace)
        if mode == "messages" and not self._of_protocol:
            yield from self._message(data, suffix)
            return
        if mode == "values":
            self._remember(namespace, data)
        if mode == "updates" and not namespace and isinstance(data, dict) and INTERRUPT in data:
            self.stopped = True
        if self._of_protocol:
            yield mode + suffix, protocol.without_texts(mode, data, self._failures)
        elif mode in self._modes:
            yield mode + suffix, self._without_texts(mode, _cleaned(mode, data))

    def _without_texts(self, mode: str, data: Any) -> Any:
        """Replaces error texts of tasks, tools and models by those for callers."""
        if mode == "tasks" and data.get("error") is not None:
            return {**data, "error": self._failures.of_event(data["error"])}
        if mode == "checkpoints":
            return {**data, "tasks": [self._without_texts("tasks", task) for task in data["tasks"]]}
        if mode == "debug":
            inner = "checkpoints" if data.get("type") == "checkpoint" else "tasks"
            return {**data, "payload": self._without_texts(inner, data["payload"])}
        if mode == "events" and "error" in (data.get("data") or {}):
            return {**data, "data": {**data["data"], "error": self._failures.of_event(data["data"]["error"])}}
        return data

    def _remember(self, namespace: tuple[str, ...], data: Any) -> None:
        if namespace:
            return
        if isinstance(data, dict) and INTERRUPT in data:
            self.stopped = True
            data = {name: value for name, value in data.items() if name != INTERRUPT} or self.values
        self.values = data

    def _message(self, data: tuple[Any, dict[str, Any]], suffix: str) -> Iterator[Event]:
        message, metadata = data
        metadata = _public(metadata)
        if "messages-tuple" in self._modes:
            yield f"messages{suffix}", [message, metadata]
        if "messages" in self._modes:
            yield from self._assembled(message, metadata)

    def _assembled(self, message: Any, metadata: dict[str, Any]) -> Iterator[Event]:
        """The older format: each message is announced once, then sent whole as it grows."""
        from langchain_core.messages import BaseMessageChunk, message_chunk_to_message

        message_id: str = message.id
        if message_id not in self._messages:
            yield "messages/metadata", {message_id: {"metadata": metadata}}
        if not isinstance(message, BaseMessageChunk):
            self._messages[message_id] = message
            yield "messages/complete", [message]
            return
        before = self._messages.get(message_id)
        grown = self._messages[message_id] = message if before is None else before + message
        yield "messages/partial", [message_chunk_to_message(grown)]


def _cleaned(mode: str, data: Any) -> Any:
    if mode == "checkpoints":
        return _checkpoint(data, _task)
    if mode == "tasks":
        return _asked(data)
    if mode == "debug":
        is_checkpoint = data.get("type") == "checkpoint"
        return {**data, "payload": _debugged(data["payload"]) if is_checkpoint else _asked(data["payload"])}
    if mode == "events":
        return {**data, "metadata": _public(data.get("metadata") or {})}
    return data


def _checkpoint(payload: dict[str, Any], clean: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    config, parent = (_config(payload.get(name)) for name in ("config", "parent_config"))
    tasks = [clean(task) for task in payload.get("tasks") or ()]
    return {**payload, "config": config, "parent_config": parent, "tasks": tasks}


def _debugged(payload: dict[str, Any]) -> dict[str, Any]:
    """The checkpoint with the addresses of itself and its parent, as in `debug`."""
    cleaned = _checkpoint(payload, _located)
    addresses = {"checkpoint": _address(cleaned["config"]), "parent_checkpoint": _address(cleaned["parent_config"])}
    return {**cleaned, **addresses}


def _task(task: dict[str, Any]) -> dict[str, Any]:
    task = _asked(task)
    return {**task, "state": _config(task["state"])} if isinstance(task.get("state"), dict) else task


def _located(task: dict[str, Any]) -> dict[str, Any]:
    """The task with the address of its subgraph's state instead of a config, as in `debug`."""
    task = _task(task)
    address = (task.get("state") or {}).get("configurable")
    if not address:
        return task
    return {**{name: value for name, value in task.items() if name != "state"}, "checkpoint": address}


def _asked(task: dict[str, Any]) -> dict[str, Any]:
    """The task with its questions without an empty `response_schema`."""
    if not task.get("interrupts"):
        return task
    questions = [
        {name: value for name, value in question.items() if name != "response_schema" or value is not None}
        for question in task["interrupts"]
    ]
    return {**task, "interrupts": questions}


def _config(config: Any) -> Any:
    """The config without internal keys."""
    if not isinstance(config, Mapping):
        return config
    return {
        name: _public(config[name]) for name in ("configurable", "metadata") if isinstance(config.get(name), Mapping)
    }


def _address(config: Any) -> dict[str, Any] | None:
    keys = (config or {}).get("configurable") or {}
    if not keys:
        return None
    address = {name: keys.get(name) for name in ("checkpoint_id", "thread_id", "checkpoint_ns")}
    return address | ({"checkpoint_map": keys["checkpoint_map"]} if keys.get("checkpoint_map") else {})


def _public(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in keys.items() if not name.startswith("__")}
