"""The methods of A2A on one assistant. Each is a use case of runs and threads, with the rights of its caller."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from assent.errors import Invalid, NotFound
from assent.identity.model.access import Principal
from assent.kernel.ids import new_id
from assent.runs.assistants.assistants import Assistants
from assent.runs.calls import Begun, Calls, Ended
from assent.surfaces.a2a import messages, wire
from assent.surfaces.a2a import tasks as task_views
from assent.surfaces.a2a.messages import Incoming
from assent.surfaces.a2a.tasks import Task, Tasks, new_task_id
from assent.surfaces.http.jsonrpc import INVALID_PARAMS, RpcError
from assent.surfaces.http.limits.execution import Execution
from assent.threads.model.assistants import Assistant
from assent.threads.model.frames import END
from assent.threads.model.runs import RunStatus
from assent.threads.run_requests import RunRequest

Json = dict[str, Any]
UNSUPPORTED_OPERATION = -32004
_STREAMED = ("messages", "values")
_PAGE, _MOST_LISTED = 50, 100


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that started a run: the run, its task, and the length of the history that the client wants."""

    begun: Begun
    task_id: str
    incoming: Incoming
    length: int | None

    @property
    def ids(self) -> Json:
        return {"task_id": self.task_id, "context_id": self.begun.run.thread_id}


@dataclass(frozen=True, slots=True)
class _Page:
    """A page of tasks that a client asks for."""

    size: int
    offset: int
    state: str | None
    with_artifacts: bool

    @classmethod
    def read(cls, params: Json) -> _Page:
        size, token = params.get("pageSize") or _PAGE, params.get("pageToken") or "0"
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= _MOST_LISTED:
            raise RpcError(INVALID_PARAMS, f"pageSize must be between 1 and {_MOST_LISTED}")
        if not isinstance(token, str) or not token.isdecimal() or len(token) > 9:
            raise RpcError(INVALID_PARAMS, "pageToken: not one of this server")
        state = params.get("status")
        return cls(size, int(token), state if isinstance(state, str) else None, bool(params.get("includeArtifacts")))


class Agents:
    def __init__(self, assistants: Assistants, calls: Calls, tasks: Tasks) -> None:
        self._assistants = assistants
        self._calls = calls
        self._tasks = tasks

    async def assistant(self, caller: Principal, name_or_id: str) -> Assistant:
        try:
            return await self._assistants.resolve(caller, name_or_id)
        except (NotFound, Invalid):
            raise RpcError(INVALID_PARAMS, f"Assistant '{name_or_id}' not found") from None

    async def input_schema(self, caller: Principal, assistant: Assistant) -> Json:
        schemas = await self._assistants.schemas(caller, assistant.id)
        return schemas.get("input_schema") or schemas.get("state_schema") or {}

    async def send(self, caller: Principal, assistant: Assistant, params: Json, executing: Execution) -> Json:
        """Waits for the end of the run, unless the client asks for the task at once."""
        sent = await self._started(caller, assistant, params, ("values",))
        configuration = params.get("configuration") or {}
        if configuration.get("returnImmediately") or configuration.get("blocking") is False:
            sent.begun.frames.close()
            return {"task": _submitted(sent)}
        executing.end()
        ended = await self._calls.end(caller, sent.begun)
        state, text, artifacts = task_views.outcome(ended)
        status = task_views.status(state, _now(), text, **sent.ids)
        produced: Json = {"artifacts": artifacts} if artifacts else {}
        return {"task": task_views.view(**sent.ids, status=status, length=sent.length, values=ended.values, **produced)}

    async def stream(self, caller: Principal, assistant: Assistant, params: Json) -> AsyncIterator[Json]:
        """The task, its messages as they are written, its artifacts, and its last status. The message is accepted or
        refused before the first event."""
        sent = await self._started(caller, assistant, params, _STREAMED)
        return self._events(caller, sent)

    async def get(self, caller: Principal, assistant: Assistant, params: Json) -> Json:
        length = _length(params)
        task = await self._tasks.find(caller, assistant, params.get("id"), params.get("contextId"))
        return self._shown(task, length)

    async def list(self, caller: Principal, assistant: Assistant, params: Json) -> Json:
        """The tasks of a context, newest first."""
        length, page = _length(params), _Page.read(params)
        listed = await self._tasks.of_context(caller, assistant, params.get("contextId"))
        chosen = [task for task in listed if page.state in (None, task.state)]
        shown = [self._shown(task, length) for task in chosen[page.offset : page.offset + page.size]]
        if not page.with_artifacts:
            shown = [{name: value for name, value in task.items() if name != "artifacts"} for task in shown]
        following = page.offset + len(shown)
        token = str(following) if following < len(chosen) else ""
        return {"tasks": shown, "nextPageToken": token, "pageSize": page.size, "totalSize": len(chosen)}

    async def subscribe(self, caller: Principal, assistant: Assistant, params: Json) -> AsyncIterator[Json]:
        """The task, then what happens until it ends or asks."""
        task = await self._tasks.find(caller, assistant, params.get("id"), params.get("contextId"))
        if task.state in wire.TERMINAL:
            raise RpcError(UNSUPPORTED_OPERATION, "The task has ended: get it instead")
        return self._followed(caller, task)

    async def _followed(self, caller: Principal, task: Task) -> AsyncIterator[Json]:
        yield {"task": self._shown(task, None)}
        if not task.latest.status.active:
            return
        ids = {"task_id": task.id, "context_id": task.context_id}
        begun = await self._calls.follow(caller, task.latest)
        if isinstance(begun, Begun):
            async for event in self._happened(caller, begun, ids):
                yield event
            return
        for event in _last_events(begun, ids):
            yield event

    async def cancel(self, caller: Principal, assistant: Assistant, params: Json) -> Json:
        task = await self._tasks.find(caller, assistant, params.get("id"), params.get("contextId"))
        await self._tasks.cancel(caller, task)
        ids = {"task_id": task.id, "context_id": task.context_id}
        status = task_views.status(wire.CANCELED, _now(), "Task was canceled", **ids)
        return {"id": task.id, "contextId": task.context_id, "status": status}

    def _shown(self, task: Task, length: int | None) -> Json:
        ids = {"task_id": task.id, "context_id": task.context_id}
        more: Json = {}
        text = None
        if task.pause is not None:
            text, more = task_views.asks(task.pause), {"artifacts": [task_views.question_artifact(task.pause)]}
        elif task.state == wire.COMPLETED:
            more = {"artifacts": [task_views.response_artifact(messages.reply(task.values))]}
        elif task.state == wire.FAILED:
            error = task.latest.error or {}
            text = f"Task failed: {error.get('error', task.latest.status)}"
        status = task_views.status(task.state, task.latest.updated_at.isoformat(), text, **ids)
        return task_views.view(**ids, status=status, length=length, values=task.values, **more)

    async def _started(self, caller: Principal, assistant: Assistant, params: Json, modes: tuple[str, ...]) -> Sent:
        length = _length(params.get("configuration") or {})
        incoming = Incoming.read(params.get("message"))
        if incoming.task_id is not None:
            task = await self._tasks.find(caller, assistant, incoming.task_id, incoming.context_id)
            begun = await self._calls.begin(caller, task.context_id, _answer(assistant, task, incoming, modes))
            return Sent(begun, task.id, incoming, length)
        if incoming.talks:
            await self._require_messages(caller, assistant)
        request = RunRequest(
            assistant.id, input=incoming.input, context=_context(params), create_thread=True, stream_mode=modes
        )
        begun = await self._calls.begin(caller, _thread(incoming.context_id), request)
        return Sent(begun, new_task_id(begun), incoming, length)

    async def _require_messages(self, caller: Principal, assistant: Assistant) -> None:
        schema = await self.input_schema(caller, assistant)
        properties = schema.get("properties") or {}
        if "messages" not in properties:
            raise RpcError(
                INVALID_PARAMS,
                f"Assistant '{assistant.id}' (graph '{assistant.graph_id}') does not support A2A conversational "
                "messages. Graph input schema must include a 'messages' field to accept text or file parts. "
                f"Available input fields: {sorted(properties)}",
            )

    async def _events(self, caller: Principal, sent: Sent) -> AsyncIterator[Json]:
        yield {"task": _submitted(sent)}
        async for event in self._happened(caller, sent.begun, sent.ids):
            yield event

    async def _happened(self, caller: Principal, begun: Begun, named: Json) -> AsyncIterator[Json]:
        ids = {"taskId": named["task_id"], "contextId": named["context_id"]}
        frames, result = begun.frames, None
        try:
            working = False
            while True:
                frame = await frames.next()
                if not working:
                    working = True
                    yield {"statusUpdate": {**ids, "status": {"state": wire.WORKING, "timestamp": _now()}}}
                if frame.event == END:
                    result = json.loads(frame.data)
                    break
                if frame.event.startswith("messages") and (said := messages.spoken(json.loads(frame.data))):
                    status = task_views.status(wire.WORKING, _now(), said, **named)
                    yield {"statusUpdate": {**ids, "status": status}}
        finally:
            frames.close()
        for event in _last_events(await self._calls.ended(caller, begun.run, result), named):
            yield event


def _answer(assistant: Assistant, task: Task, incoming: Incoming, modes: tuple[str, ...]) -> RunRequest:
    """The run that answers the task's question, and nothing else: then it continues the run that asked."""
    if task.state in wire.TERMINAL:
        raise RpcError(UNSUPPORTED_OPERATION, "A terminal task cannot accept another message")
    if task.pause is None:
        raise RpcError(UNSUPPORTED_OPERATION, "The task is working: wait until it ends or asks, or cancel it")
    if not incoming.is_answer:
        raise RpcError(INVALID_PARAMS, "The task waits for an answer: a text, or a data part with the key resume")
    questions = [question["id"] for question in task.pause.questions]
    if not questions:
        if not incoming.resumes:
            raise RpcError(
                INVALID_PARAMS, "The task stopped before a step: a data part with the key resume continues it"
            )
        return RunRequest(assistant.id, stream_mode=modes)
    answer = incoming.answer
    keyed = isinstance(answer, dict) and answer and answer.keys() <= set(questions)
    resume = {questions[0]: answer} if len(questions) == 1 and not keyed else answer
    return RunRequest(assistant.id, command={"resume": resume}, stream_mode=modes)


def _last_events(ended: Ended, named: Json) -> Iterator[Json]:
    ids = {"taskId": named["task_id"], "contextId": named["context_id"]}
    state, text, artifacts = task_views.outcome(ended)
    for artifact in artifacts:
        yield {"artifactUpdate": {**ids, "artifact": artifact, "append": False, "lastChunk": True}}
    yield {"statusUpdate": {**ids, "status": task_views.status(state, _now(), text, **named)}}


def _submitted(sent: Sent) -> Json:
    said = messages.message(sent.incoming.role, sent.incoming.parts, identity=sent.incoming.id, **sent.ids)
    waits = sent.begun.run.status is RunStatus.PENDING
    status = task_views.status(wire.SUBMITTED if waits else wire.WORKING, _now(), **sent.ids)
    return {"id": sent.task_id, "contextId": sent.begun.run.thread_id, "history": [said], "status": status}


def _thread(context_id: str | None) -> str:
    """The thread of a context, which the run creates if there is none."""
    if context_id is None:
        return new_id()
    try:
        return str(UUID(context_id))
    except ValueError:
        raise RpcError(INVALID_PARAMS, "contextId: not a UUID; leave it out for a new context") from None


def _context(params: Json) -> Json | None:
    context = params.get("context")
    if not isinstance(context, dict | None):
        raise RpcError(INVALID_PARAMS, "context must be an object")
    return context


def _length(options: Any) -> int | None:
    if not isinstance(options, dict):
        raise RpcError(INVALID_PARAMS, "configuration must be an object")
    length = options.get("historyLength")
    if isinstance(length, bool) or not isinstance(length, int | None) or (length or 0) < 0:
        raise RpcError(INVALID_PARAMS, "historyLength must be a non-negative integer")
    return length


def _now() -> str:
    return datetime.now(UTC).isoformat()
