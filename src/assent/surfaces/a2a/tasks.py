"""Tasks of A2A over runs and threads: a context is a thread, and a task is a run with the answers that continued it.

Nothing is stored for it but the mark of a canceled pause: the id of a task names its thread and its first run, and the
runs after that one which only answer belong to it, whoever answered: the client, or a person in the inbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from assent.errors import AssentError, NotFound
from assent.identity.model.access import Principal
from assent.kernel import fair_threads, jsonable
from assent.kernel.ids import new_id
from assent.runs.calls import Begun, Calls, Ended, Pause
from assent.runs.engine.histories import Update
from assent.runs.runs import Runs
from assent.runs.threads.threads import Threads
from assent.surfaces.a2a import messages, wire
from assent.surfaces.http.jsonrpc import INVALID_PARAMS, RpcError
from assent.threads.model.assistants import Assistant
from assent.threads.model.runs import Cancel, Run, RunStatus
from assent.threads.model.threads import Thread

Json = dict[str, Any]
TASK_NOT_FOUND = -32001
TASK_NOT_CANCELABLE = -32002
CANCELED_KEY = "a2a_canceled"
"""In the metadata of a thread: the first runs of tasks that were canceled while they waited."""

_MOST_RUNS = 1000
_MOST_LISTED = 100
_MOST_CANCELED = 100
_STOPPING_SECONDS = 5.0
_STATES = {
    RunStatus.PENDING: wire.SUBMITTED,
    RunStatus.RUNNING: wire.WORKING,
    RunStatus.SUCCESS: wire.COMPLETED,
    RunStatus.INTERRUPTED: wire.CANCELED,
    RunStatus.ERROR: wire.FAILED,
    RunStatus.TIMEOUT: wire.FAILED,
}


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    first: Run
    latest: Run
    thread: Thread
    state: str
    values: Any
    """The state of the graph at the end of its latest run."""
    pause: Pause | None = None

    @property
    def context_id(self) -> str:
        return self.thread.id


class Tasks:
    def __init__(self, runs: Runs, threads: Threads, calls: Calls) -> None:
        self._runs = runs
        self._threads = threads
        self._calls = calls

    async def find(self, caller: Principal, assistant: Assistant, task_id: Any, context_id: Any = None) -> Task:
        if not isinstance(task_id, str) or not task_id or not isinstance(context_id, str | None):
            raise RpcError(INVALID_PARAMS, "id of the task and contextId must be strings")
        named, _, run_id = task_id.rpartition(":")
        thread_id = named or context_id
        missing = RpcError(TASK_NOT_FOUND, f"Task not found: {task_id}")
        if not thread_id or (context_id and context_id != thread_id):
            raise missing
        try:
            first = await self._runs.get(caller, thread_id, run_id)
            thread = await self._threads.get(caller, thread_id)
            listed = await self._runs.of_thread(caller, thread_id, limit=_MOST_RUNS)
        except NotFound:
            raise missing from None
        if first.assistant_id != assistant.id:
            raise missing
        latest = _latest(first, listed)
        is_newest = not listed or latest.id == listed[0].id
        pause = await self._pause(caller, thread, first, latest) if is_newest else None
        state = _STATES[latest.status]
        if latest.status is RunStatus.SUCCESS and first.id in _canceled(thread):
            state = wire.CANCELED
        values = thread.values if is_newest else await self._values_after(caller, latest)
        return Task(task_id, first, latest, thread, wire.INPUT_REQUIRED if pause else state, values, pause)

    async def of_context(self, caller: Principal, assistant: Assistant, context_id: Any) -> list[Task]:
        """The tasks of a context, newest first: each run that is no answer began one."""
        if not isinstance(context_id, str) or not context_id:
            raise RpcError(INVALID_PARAMS, "contextId: tasks are listed by their context")
        try:
            listed = await self._runs.of_thread(caller, context_id, limit=_MOST_RUNS)
        except NotFound:
            return []
        begun = [run for run in listed if not run.answers and run.assistant_id == assistant.id][:_MOST_LISTED]
        return [await self.find(caller, assistant, f"{context_id}:{run.id}") for run in begun]

    async def cancel(self, caller: Principal, task: Task) -> None:
        """Stops the run, or ends the thread that waits. An agent cannot end a wait for a person's decision."""
        if task.state in wire.TERMINAL:
            raise RpcError(TASK_NOT_CANCELABLE, "Task is not cancelable in its current state")
        try:
            if task.latest.status.active:
                await self._stop(caller, task.latest)
            else:
                await self._threads.states.update(caller, task.context_id, Update(as_node="__end__"))
                marked = [*_canceled(task.thread), task.first.id][-_MOST_CANCELED:]
                await self._threads.change(caller, task.context_id, metadata={CANCELED_KEY: marked}, shown=False)
        except AssentError as error:
            raise RpcError(TASK_NOT_CANCELABLE, f"Task cannot be canceled: {error.message}") from None

    async def _stop(self, caller: Principal, run: Run) -> None:
        frames = await self._runs.follow_now(caller, run.id)
        try:
            await self._runs.cancel(caller, run.thread_id, run.id, Cancel.INTERRUPT)
            with suppress(TimeoutError):
                await asyncio.wait_for(frames.end(), _STOPPING_SECONDS)
        finally:
            frames.close()

    async def _values_after(self, caller: Principal, run: Run) -> Any:
        states = await self._threads.states.history(caller, run.thread_id, metadata={"run_id": run.id})
        return await fair_threads.beside(jsonable.plain, states[0]["values"]) if states else None

    async def _pause(self, caller: Principal, thread: Thread, first: Run, latest: Run) -> Pause | None:
        if latest.status is not RunStatus.SUCCESS or first.id in _canceled(thread):
            return None
        return await self._calls.pause(caller, thread)


def new_task_id(begun: Begun) -> str:
    return f"{begun.run.thread_id}:{begun.run.id}"


def _latest(first: Run, listed: Sequence[Run]) -> Run:
    """The last of the answers that directly follow the first run; `listed` has the newest first."""
    position = next((index for index, run in enumerate(listed) if run.id == first.id), None)
    latest = first if position is None else listed[position]
    for run in reversed(listed[:position] if position else ()):
        if not run.answers:
            break
        latest = run
    return latest


def _canceled(thread: Thread) -> list[str]:
    marked = thread.metadata.get(CANCELED_KEY)
    return [run_id for run_id in marked if isinstance(run_id, str)] if isinstance(marked, list) else []


def view(task_id: str, context_id: str, status: Json, *, length: int | None, values: Any, **more: Any) -> Json:
    """A task on the wire. `length`: how many messages of the history the client asked for."""
    told: Json = {"id": task_id, "contextId": context_id, "status": status}
    if length != 0:
        told["history"] = messages.history(values, task_id=task_id, context_id=context_id, length=length)
    return {**told, **more}


def status(state: str, at: str, text: str | None = None, *, task_id: str, context_id: str) -> Json:
    said = messages.message(wire.AGENT, [{"text": text or ""}], task_id=task_id, context_id=context_id)
    return {"state": state, "timestamp": at, **({"message": said} if text else {})}


def outcome(ended: Ended) -> tuple[str, str | None, list[Json]]:
    """The state of a task whose run ended, a text for its status, and its artifacts."""
    if ended.error is not None:
        told = f"{ended.error.get('error')}: {ended.error.get('message', '')}".removesuffix(": ")
        return wire.FAILED, f"Error executing assistant: {told}", []
    if ended.pause is not None:
        return wire.INPUT_REQUIRED, asks(ended.pause), [question_artifact(ended.pause)]
    if ended.canceled:
        return wire.CANCELED, "Task was canceled", []
    return wire.COMPLETED, None, [response_artifact(messages.reply(ended.values))]


def asks(pause: Pause) -> str:
    """How the client continues."""
    if pause.is_gated:
        return "A person must decide this in the inbox; an agent cannot. Ask for the task again later."
    if len(pause.questions) == 1:
        value = pause.questions[0].get("value")
        told = value if isinstance(value, str) else "The agent asks something; the artifact has the question."
        return f"{told}\n\nAnswer with this taskId: by text, or by a data part with the key resume."
    if pause.questions:
        return "The agent asks several things. Answer with this taskId: a data part with resume, by the questions' ids."
    return "The agent stopped before a step. A data part with the key resume, with this taskId, lets it continue."


def question_artifact(pause: Pause) -> Json:
    """One data part for each question."""
    asked = [{"data": {**question, "gated": question["id"] in pause.items}} for question in pause.questions]
    stopped = [{"data": {"stopped_before": list(pause.stopped_before)}}] if pause.stopped_before else []
    return _artifact("Interrupt", "Agent requires input to continue", [*asked, *stopped])


def response_artifact(parts: list[Json]) -> Json:
    return _artifact("Assistant Response", "Response of the assistant", parts)


def _artifact(name: str, description: str, parts: list[Json]) -> Json:
    return {"artifactId": new_id(), "name": name, "description": description, "parts": parts}
