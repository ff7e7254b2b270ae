"""Translates the frames of one run into events of the protocol.

The same frames give the same events with the same ids and numbers, on every connection. Beside the frames' own content
there are events for the states of the run and its subgraphs (`lifecycle`), and one for every question
(`input.requested`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from assent.runs.events.model import states
from assent.runs.events.model.channels import node_of
from assent.runs.events.model.events import REQUESTED, Event, base_of
from assent.runs.upstream import INTERRUPT
from assent.threads.model.frames import ATTEMPT_STRIDE, Frame
from assent.threads.model.runs import Run, RunStatus

Namespace = tuple[str, ...]

_TOLD = ("running", "completed", "failed", "interrupted")
_ENDS = {RunStatus.SUCCESS: "completed", RunStatus.ERROR: "failed", RunStatus.TIMEOUT: "failed"}
_CUSTOM = "custom:"
_UNSTORED = 1024
"""More events than a client can have received from a process that died before it stored their frames. The next attempt
leaves out their numbers, so that a client which continues after one of them misses nothing."""
_FROM_GRAPHS = ("values", "updates", "messages", "tools")
"""Frames that show that a subgraph is being executed."""


class RunEvents:
    def __init__(self, run: Run) -> None:
        self._run_id = run.id
        self._graph = run.graph_id
        self._base = base_of(run.started_at or run.ended_at or run.created_at)
        self._count = self._attempt = 0
        self._states: dict[Namespace, tuple[str, str]] = {}
        """The state and the name of the graph in each namespace."""
        self._announced = set[Namespace]()
        self._checkpoints = set[tuple[Namespace, str]]()
        self._asked = set[str]()
        self._begun = self.ended = False
        self._source: tuple[str, int] | None = None
        self._at = 0

    def continue_after(self, seq: int) -> None:
        """Numbers the following events above `seq`: of a run whose earlier events cannot be translated again."""
        if seq > self._base:
            self._count, self._begun = max(self._count, seq - self._base), True

    def of(self, frame: Frame, at: int) -> Iterator[Event]:
        """The events of a frame, which was sent at this time."""
        self._source, self._at = (frame.id, 0), at
        yield from self._begin()
        if frame.seq // ATTEMPT_STRIDE > self._attempt:
            self._attempt = frame.seq // ATTEMPT_STRIDE
            self._count += _UNSTORED
        method, *namespace = frame.event.split("|")
        if method != "metadata":
            yield from self._content(method, tuple(namespace), json.loads(frame.data))

    def ask(self, questions: Sequence[dict[str, Any]], at: int) -> Iterator[Event]:
        """The events of the thread's open questions, as far as no frame has told them."""
        self._source, self._at = None, at
        yield from self._begin()
        yield from self._questions((), questions)

    def end(self, status: RunStatus | None, at: int, error: Mapping[str, Any] | None = None) -> Iterator[Event]:
        """The events of the end of the run, as far as no frame has told it. None: the run was rolled back."""
        if self.ended:
            return
        self._source, self._at = None, at
        yield from self._begin()
        still_open = [space for space, (state, _) in self._states.items() if space and state == "started"]
        for namespace in sorted(still_open, key=len, reverse=True):
            yield from self._tell(namespace, "completed")
        end = _ENDS.get(status, "interrupted") if status else "interrupted"
        yield from self._tell((), end, error=str((error or {}).get("message", "")) or None if end == "failed" else None)
        self.ended = True

    def tree(self, namespace: Namespace = ()) -> dict[str, Any]:
        """The run and its subgraphs."""
        state, name = self._states.get(namespace, ("started", self._name_of(namespace)))
        below = sorted(space for space in self._states if len(space) == len(namespace) + 1 and space[:-1] == namespace)
        node = {"namespace": list(namespace), "status": state, "graph_name": name}
        return node | ({"children": [self.tree(child) for child in below]} if below else {})

    # By kind of frame

    def _content(self, method: str, namespace: Namespace, data: Any) -> Iterator[Event]:
        if method in _FROM_GRAPHS:
            self._enter(namespace)
        translate = {
            "values": self._values,
            "updates": self._updates,
            "messages": self._message,
            "tools": self._tool,
            "checkpoints": self._checkpoint,
            "lifecycle": self._lifecycle,
            "error": self._error,
        }.get(method)
        if translate is not None:
            yield from translate(namespace, data)
        elif method == "custom":
            yield self._event(method, namespace, {"payload": data})
        elif method.startswith(_CUSTOM):
            yield self._event("custom", namespace, {"name": method.removeprefix(_CUSTOM), "payload": data})
        elif method == "tasks":
            yield self._event(method, namespace, data)

    def _error(self, namespace: Namespace, data: Any) -> Iterator[Event]:
        message = data.get("message", str(data)) if isinstance(data, dict) else str(data)
        yield from self._tell((), "failed", error=str(message))
        self.ended = True

    def _message(self, namespace: Namespace, data: Any) -> Iterator[Event]:
        """Runs that the protocol did not start stream messages in older forms, which its clients cannot read."""
        if isinstance(data, dict) and isinstance(data.get("event"), str):
            yield self._event("messages", namespace, data)

    def _tool(self, namespace: Namespace, data: Any) -> Iterator[Event]:
        yield self._event("tools", namespace, data)
        yield from self._tool_message(namespace, data)

    def _values(self, namespace: Namespace, data: Any) -> Iterator[Event]:
        yield from self._questions(namespace, _asked_in(data))
        yield from self._state("values", namespace, data)

    def _updates(self, namespace: Namespace, data: Any) -> Iterator[Event]:
        """An update of one node names the node beside its data."""
        node, values = next(iter(data.items())) if isinstance(data, dict) and len(data) == 1 else (None, data)
        if node == INTERRUPT:
            yield from self._questions(namespace, _asked_in(data))
            return
        values = values if isinstance(values, dict) else {"value": values}
        yield from self._questions(namespace, _asked_in(values))
        yield from self._state("updates", namespace, values, node)
        if node is not None and not node.startswith("__"):
            yield from self._leave_oldest(namespace, node)

    def _state(self, method: str, namespace: Namespace, data: Any, node: str | None = None) -> Iterator[Event]:
        state = states.shown(data)
        if state or not isinstance(state, dict):
            yield self._event(method, namespace, state, node=node)

    def _checkpoint(self, namespace: Namespace, data: Any) -> Iterator[Event]:
        checkpoint_id = data.get("id") if isinstance(data, dict) else None
        if isinstance(checkpoint_id, str) and (namespace, checkpoint_id) not in self._checkpoints:
            self._checkpoints.add((namespace, checkpoint_id))
            made = self._made("checkpoint", namespace, checkpoint_id)
            yield self._event("checkpoints", namespace, data, event_id=made)

    def _tool_message(self, namespace: Namespace, data: Any) -> Iterator[Event]:
        """The result of a tool, again as a message: chats show it among the others."""
        output = data.get("output") if isinstance(data, dict) and data.get("event") == "tool-finished" else None
        if not isinstance(output, dict):
            return
        call_id = next(
            (each for each in (data.get("tool_call_id"), output.get("tool_call_id")) if _is_text(each)), None
        )
        message_id = output["id"] if _is_text(output.get("id")) else f"tool-{call_id}" if call_id else None
        if message_id is None:
            return
        text = _text_of(output.get("content"))
        called = {"tool_call_id": call_id} if call_id else {}
        place = (*namespace, f"tools:{call_id}") if call_id else namespace
        for part in (
            {"event": "message-start", "role": "tool", "id": message_id, **called},
            {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}},
            {"event": "content-block-delta", "index": 0, "content": {"type": "text", "text": text}},
            {"event": "content-block-finish", "index": 0, "content": {"type": "text", "text": text}},
            {"event": "message-finish", "metadata": {}},
        ):
            yield self._event("messages", place, part)

    def _lifecycle(self, namespace: Namespace, data: Any) -> Iterator[Event]:
        """How a subgraph fares. The run's own state follows from its row and its questions."""
        if not isinstance(data, dict):
            return
        inner = tuple(data.get("namespace") or ())
        namespace = inner if len(inner) > len(namespace) else namespace
        told = data.get("event")
        if not namespace:
            return
        if told == "started" and namespace not in self._announced:
            self._announced.add(namespace)
            self._states[namespace] = ("started", data.get("graph_name") or self._name_of(namespace))
            yield self._event("lifecycle", namespace, data)
        elif told in _TOLD:
            yield from self._tell(namespace, told, name=data.get("graph_name"), error=data.get("error"))

    def _questions(self, namespace: Namespace, questions: Sequence[Any]) -> Iterator[Event]:
        """Each question once, and that the run waits for its answer."""
        fresh = [question for question in questions if _is_fresh(question, self._asked)]
        for question in fresh:
            self._asked.add(question["id"])
            # LangGraph's server names the question `payload`, and the Python SDK reads `value`.
            value = {"payload": question["value"], "value": question["value"]} if "value" in question else {}
            made = self._made("input", namespace, question["id"])
            yield self._event(REQUESTED, namespace, {"interrupt_id": question["id"], **value}, event_id=made)
            yield from self._tell((), "interrupted")
        self.ended = self.ended or bool(fresh)

    # States of namespaces

    def _begin(self) -> Iterator[Event]:
        if not self._begun:
            self._begun = True
            yield from self._tell((), "running")

    def _enter(self, namespace: Namespace) -> None:
        for length in range(1, len(namespace) + 1):
            state, name = self._states.get(namespace[:length], ("", self._name_of(namespace[:length])))
            if state != "started":
                self._states[namespace[:length]] = ("started", name)

    def _leave_oldest(self, namespace: Namespace, node: str) -> Iterator[Event]:
        """A node's update ends its oldest subgraph that is still open."""
        for child, (state, _) in list(self._states.items()):
            if child[:-1] == namespace and child and state == "started" and node_of(child[-1]) == node:
                yield from self._tell(child, "completed")
                return

    def _tell(
        self, namespace: Namespace, state: str, *, name: str | None = None, error: str | None = None
    ) -> Iterator[Event]:
        before, known = self._states.get(namespace, ("", self._name_of(namespace)))
        if before == state and error is None:
            return
        self._states[namespace] = (state, name or known)
        data = {"event": state, "graph_name": name or known} | ({} if error is None else {"error": error})
        yield self._event("lifecycle", namespace, data, event_id=self._made("lc", namespace, state))

    def _name_of(self, namespace: Namespace) -> str:
        return node_of(namespace[-1]) if namespace else self._graph

    # Events

    def _made(self, kind: str, namespace: Namespace, name: str) -> str:
        return f"synth:{self._run_id}:{kind}|{'/'.join(namespace)}|{name}"

    def _event(
        self, method: str, namespace: Namespace, data: Any, *, node: str | None = None, event_id: str | None = None
    ) -> Event:
        self._count += 1
        event_id = event_id or self._next_id()
        return Event(event_id, self._base + self._count, method, namespace, data, self._at, node)

    def _next_id(self) -> str:
        """The frame's id; for further events of the frame, with a number."""
        if self._source is None:
            return self._made("event", (), str(self._count))
        frame_id, count = self._source
        self._source = (frame_id, count + 1)
        return f"{frame_id}.{count}" if count else frame_id


def _asked_in(data: Any) -> list[Any]:
    asked = data.get(INTERRUPT) if isinstance(data, dict) else None
    return asked if isinstance(asked, list) else []


def _is_fresh(question: Any, known: set[str]) -> bool:
    return isinstance(question, dict) and _is_text(question.get("id")) and question["id"] not in known


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "" if content is None else json.dumps(content, ensure_ascii=False, separators=(",", ":"))
