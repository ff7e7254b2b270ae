"""Starting a run: whether it may join its thread, what it replaces, and its place in line, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from assent.domain.access import Principal
from assent.domain.assistants import Assistant
from assent.domain.configs import clean_metadata, merge
from assent.domain.ids import new_id
from assent.domain.runs import Admission, Cancelled, Run, Strategy, admit, durable
from assent.domain.threads import Thread, ThreadStatus
from assent.domain.visibility import Visible, shows
from assent.errors import NotFound
from assent.services.answering import go_past_breakpoint, keyed_answers, record_answers, require_free
from assent.store import checkpoints, runs, threads
from assent.store.transaction import Tx

NO_THREAD = "Thread or assistant not found."


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run as its caller asks for it. What the contract names is here, and nothing else is kept."""

    assistant_id: str
    input: Any = None
    command: dict[str, Any] | None = None
    checkpoint: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    stream_mode: tuple[str, ...] = ("values",)
    stream_subgraphs: bool = False
    stream_resumable: bool = False
    interrupt_before: list[str] | str | None = None
    interrupt_after: list[str] | str | None = None
    multitask_strategy: Strategy | None = None
    create_thread: bool = False
    after_seconds: float = 0
    keep_thread: bool = False
    durability: str = "async"
    webhook: str | None = None

    @property
    def resume(self) -> Any:
        return (self.command or {}).get("resume")

    @property
    def answers(self) -> bool:
        return "resume" in (self.command or {})


def start(
    tx: Tx,
    caller: Principal,
    assistant: Assistant,
    request: RunRequest,
    strategy: Strategy,
    thread_id: str | None,
    run_id: str,
    visible: Visible | None = None,
) -> tuple[Run, Cancelled]:
    """The new run, and those that it replaces."""
    thread = _thread_for(tx, assistant, request, thread_id, visible)
    request = _resumed_from_outside(tx, thread, request)
    given = keyed_answers(tx, caller, thread, request.command) if request.answers else None
    command = given.command if given else request.command
    present = runs.active(tx, thread.id)
    admission = _admission(present, thread, request, strategy)
    if _moves(request, admission, thread):
        require_free(tx, caller, thread)
    replaced = runs.cancel_all(tx, admission.supersedes, admission.by) if admission.by else Cancelled()
    if admission.drops_questions:
        threads.drop_questions(tx, thread.id, caller.actor)
    wake_at = tx.now() + timedelta(seconds=request.after_seconds) if request.after_seconds else None
    runs.insert_pending(
        tx,
        run_id,
        thread.id,
        assistant_id=assistant.id,
        graph_id=assistant.graph_id,
        actor=(given and given.asked_by) or caller.actor,
        answers=request.answers,
        wake_at=wake_at,
        temporary=thread_id is None and not request.keep_thread,
        multitask_strategy=strategy,
        metadata=_metadata(assistant, thread, request),
        kwargs=_kwargs(caller, assistant, request, command, _fork(tx, thread, request), temporary=thread_id is None),
        webhook=request.webhook,
        **({"created_at": wake_at} if wake_at else {}),
    )
    if given is not None:
        record_answers(tx, caller, thread, run_id, given)
    elif not thread.waits and thread.next and not (request.input or request.command or request.after_seconds):
        go_past_breakpoint(tx, caller, thread)
    run = runs.get(tx, run_id)
    assert run is not None
    waits = thread.waits and not admission.drops_questions
    _put_in_line(tx, run, waits=waits, present=None if admission.by else [*present, run])
    return run, replaced


def go_on(tx: Tx, run_id: str, thread: Thread, before: Run, *, command: dict[str, Any] | None, gated: bool) -> Run:
    """A run that carries a decision to a thread that waits for it: as the run before it was asked for, with the
    answer in place of its input."""
    kwargs = {**before.kwargs, "input": None, "command": command, "checkpoint": None}
    kwargs = durable(kwargs) if gated else kwargs
    runs.insert_pending(
        tx,
        run_id,
        thread.id,
        assistant_id=before.assistant_id,
        graph_id=before.graph_id,
        actor=before.actor,
        answers=True,
        wake_at=None,
        temporary=before.temporary,
        multitask_strategy=Strategy.ENQUEUE,
        metadata=before.metadata,
        kwargs=kwargs,
        webhook=before.webhook,
    )
    run = runs.get(tx, run_id)
    assert run is not None
    _put_in_line(tx, run, waits=thread.waits, present=None)
    return run


def _thread_for(
    tx: Tx, assistant: Assistant, request: RunRequest, thread_id: str | None, visible: Visible | None
) -> Thread:
    """The thread, locked; made where the caller allows it. The first run stamps its graph and assistant on it."""
    stamp = {"graph_id": assistant.graph_id, "assistant_id": assistant.id}
    if thread_id is None or (request.create_thread and threads.get(tx, thread_id) is None):
        thread_id, visible = thread_id or new_id(), None  # what they make themselves is there for them
        threads.insert(tx, thread_id, {**clean_metadata(request.metadata), **stamp})
    thread = threads.lock(tx, thread_id, values=False)
    if thread is None or not shows(visible, thread.metadata):
        raise NotFound(NO_THREAD)
    if any(thread.metadata.get(name) != value for name, value in stamp.items()):
        threads.set_metadata(tx, thread_id, {**thread.metadata, **stamp})
    return thread


def _resumed_from_outside(tx: Tx, thread: Thread, request: RunRequest) -> RunRequest:
    """What a RemoteGraph that is a node of another graph means when that graph resumes.

    It sends its node's input again, and the outer graph's answers by id in the config. Those to our questions are
    taken as the answers they are; where someone else has answered meanwhile, the thread only goes on from there.
    """
    named = (request.config or {}).get("configurable") or {}
    if request.command or not isinstance(named, dict) or not named.get("__pregel_resuming"):
        return request
    given = named.get("__pregel_resume_map") or {}
    ours = {one["id"]: given[one["id"]] for one in thread.pending if one["id"] in given}
    if ours:
        return replace(request, input=None, command={"resume": ours})
    return replace(request, input=None) if not thread.waits and _is_called_again(tx, thread, request) else request


def _is_called_again(tx: Tx, thread: Thread, request: RunRequest) -> bool:
    """Whether the outer graph's task is the one that this thread's last input came from."""
    task = ((request.config or {}).get("metadata") or {}).get("langgraph_checkpoint_ns")
    latest = next((run for run in runs.page(tx, thread.id, status=None, limit=50, offset=0) if not run.answers), None)
    return task is not None and latest is not None and latest.metadata.get("langgraph_checkpoint_ns") == task


def _admission(present: Sequence[Run], thread: Thread, request: RunRequest, strategy: Strategy) -> Admission:
    """A delayed run meets whoever is there when it wakes; now it disturbs nobody."""
    if request.after_seconds:
        return Admission()
    awake = [run for run in present if run.wake_at is None]
    return admit(strategy, active=awake, pending=thread.pending, answers=request.answers)


def _moves(request: RunRequest, admission: Admission, thread: Thread) -> bool:
    """Whether it would get past what the thread waits for in any way but by its answer."""
    command = request.command or {}
    steered = bool(command.get("goto") or command.get("update") or request.checkpoint)
    past_breakpoint = not thread.waits and bool(thread.next) and not request.after_seconds
    return steered or admission.drops_questions or past_breakpoint


def _fork(tx: Tx, thread: Thread, request: RunRequest) -> dict[str, Any] | None:
    """The checkpoint to go on from, where it is not the newest one anyway."""
    wanted = request.checkpoint or {}
    head = checkpoints.latest(tx, thread.id, wanted.get("checkpoint_ns") or "") if wanted else None
    return None if head is not None and head.checkpoint_id == wanted.get("checkpoint_id") else request.checkpoint


def _put_in_line(tx: Tx, run: Run, *, waits: bool, present: Sequence[Run] | None) -> None:
    if run.wake_at is not None:
        return tx.hand_over(run.id, run.wake_at)
    head = runs.promote(tx, run.thread_id, waits=waits, present=present)
    if head is not None or not waits:
        threads.set_status(tx, run.thread_id, ThreadStatus.BUSY)


def _metadata(assistant: Assistant, thread: Thread, request: RunRequest) -> dict[str, Any]:
    asked = (request.config or {}).get("metadata") or {}
    merged = {**assistant.metadata, **thread.metadata, **clean_metadata(asked), **clean_metadata(request.metadata)}
    return {**merged, "graph_id": assistant.graph_id, "assistant_id": assistant.id}


def _kwargs(
    caller: Principal,
    assistant: Assistant,
    request: RunRequest,
    command: dict[str, Any] | None,
    checkpoint: dict[str, Any] | None,
    *,
    temporary: bool,
) -> dict[str, Any]:
    config, context = merge(request.config, request.context, {"config": assistant.config, "context": assistant.context})
    config["configurable"] = {**config["configurable"], **_identity(caller)}
    return {
        "input": None if request.answers and not request.input else request.input,
        "command": command,
        "checkpoint": checkpoint,
        "config": config,
        "context": context,
        "stream_mode": list(request.stream_mode),
        "interrupt_before": request.interrupt_before,
        "interrupt_after": request.interrupt_after,
        "webhook": request.webhook,
        "feedback_keys": None,
        "temporary": temporary,
        "subgraphs": request.stream_subgraphs,
        "resumable": request.stream_resumable,
        "checkpoint_during": request.durability != "exit",
        "durability": request.durability,
    }


def _identity(caller: Principal) -> dict[str, Any]:
    """Who started the run, where graphs on LangGraph's own server look for it."""
    permissions = sorted(caller.scopes)
    user = {"identity": caller.id, "display_name": caller.name, "is_authenticated": True, "permissions": permissions}
    if caller.user is not None:
        user, permissions = dict(caller.user), caller.user["permissions"]
    return {
        "user_id": caller.id,
        "langgraph_auth_user": user,
        "langgraph_auth_user_id": caller.id,
        "langgraph_auth_permissions": permissions,
    }
