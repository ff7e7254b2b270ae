"""From what LangGraph streams to the frames its clients read: event names, message assembly, cleaned configs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assent.engine.graphs import AnyPregel

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
INTERRUPT = "__interrupt__"

Chunk = tuple[tuple[str, ...], str, Any]
"""Where in the graph, in which of LangGraph's stream modes, what."""
Event = tuple[str, Any]


async def chunks(
    graph: AnyPregel, input: Any, config: Any, *, modes: Sequence[str], subgraphs: bool, **options: Any
) -> AsyncIterator[Chunk]:
    """The graph's own stream. `values` is always among its modes: the last one is the run's result."""
    wanted = {"messages" if mode == "messages-tuple" else mode for mode in modes}
    native = sorted(wanted - {"events"} | {"values"})
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
    """LangChain's events, with the other modes taken out of the root's own `on_chain_stream` events."""
    root: str | None = None
    events = graph.astream_events(input, config, version="v2", stream_mode=native, subgraphs=subgraphs, **options)
    async for event in events:
        root = root or event["run_id"]
        if event["event"] == "on_chain_stream" and event["run_id"] == root:
            part = event["data"]["chunk"]
            yield part if subgraphs else ((), *part)
        else:
            yield (), "events", event


class Translator:
    """Turns chunks into events of the wire, and keeps what the run's end needs: the last values, whether it asked."""

    def __init__(self, modes: Sequence[str]) -> None:
        self._modes = frozenset(modes)
        self._messages: dict[str, Any] = {}
        self.values: Any = None
        self.asked = False

    def events(self, chunk: Chunk) -> Iterator[Event]:
        namespace, mode, data = chunk
        suffix = "".join(f"|{part}" for part in namespace)
        if mode == "messages":
            yield from self._message(data, suffix)
            return
        if mode == "values":
            self._remember(namespace, data)
        if mode in self._modes:
            yield mode + suffix, _cleaned(mode, data)

    def _remember(self, namespace: tuple[str, ...], data: Any) -> None:
        if namespace:
            return
        if isinstance(data, dict) and INTERRUPT in data:
            self.asked = True
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
        """The older form: each message announced once, then shown whole as it grows."""
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
        return _checkpoint(data)
    if mode == "tasks":
        return _asked(data)
    if mode == "debug":
        clean = _checkpoint if data.get("type") == "checkpoint" else _asked
        return {**data, "payload": clean(data["payload"])}
    if mode == "events":
        return {**data, "metadata": _public(data.get("metadata") or {})}
    return data


def _checkpoint(payload: dict[str, Any]) -> dict[str, Any]:
    config, parent = (_config(payload.get(name)) for name in ("config", "parent_config"))
    tasks = [_task(task) for task in payload.get("tasks") or ()]
    addresses = {"checkpoint": _address(config), "parent_checkpoint": _address(parent)}
    return {**payload, "config": config, "parent_config": parent, "tasks": tasks, **addresses}


def _task(task: dict[str, Any]) -> dict[str, Any]:
    task = _asked(task)
    return {**task, "state": _config(task["state"])} if isinstance(task.get("state"), dict) else task


def _asked(task: dict[str, Any]) -> dict[str, Any]:
    """A task with its questions as they are shown elsewhere: `response_schema` only where there is one."""
    if not task.get("interrupts"):
        return task
    questions = [
        {name: value for name, value in question.items() if name != "response_schema" or value is not None}
        for question in task["interrupts"]
    ]
    return {**task, "interrupts": questions}


def _config(config: Any) -> Any:
    """Without what LangGraph and we keep in it for ourselves."""
    if not isinstance(config, Mapping):
        return config
    return {
        name: _public(config[name]) for name in ("configurable", "metadata") if isinstance(config.get(name), Mapping)
    }


def _address(config: Any) -> dict[str, Any] | None:
    named = (config or {}).get("configurable") or {}
    return {name: named.get(name) for name in ("checkpoint_id", "thread_id", "checkpoint_ns")} if named else None


def _public(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if not name.startswith("__")}
