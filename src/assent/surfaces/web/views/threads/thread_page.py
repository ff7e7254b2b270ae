"""The data of a thread's page, limited to what the caller may see."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from assent.errors import AssentError, NotFound
from assent.federation.seen import TITLES
from assent.federation.threads import RemoteThreads
from assent.identity.model.access import Principal
from assent.kernel.store.ports import Store
from assent.review.inbox import Inbox
from assent.runs.assistants.assistants import Assistants
from assent.runs.runs import Runs
from assent.runs.threads.threads import Threads
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views import people
from assent.surfaces.web.views.people import Names
from assent.surfaces.web.views.threads import conversation
from assent.surfaces.web.views.threads.conversation import Conversation
from assent.surfaces.web.views.threads.graph_drawing import Drawing, draw
from assent.threads.model.runs import Run
from assent.threads.model.threads import Thread

View = Mapping[str, Any]

STATUSES = {
    "interrupted": Sign("pause", "Interrupted", "needs"),
    "idle": Sign("check", "Idle"),
    "busy": Sign("clock", "Busy", "revision"),
    "error": Sign("alert", "Error", "bad"),
}
RUNS = {
    "pending": Sign("clock", "Queued"),
    "running": Sign("clock", "Running", "revision"),
    "success": Sign("check", "Succeeded", "good"),
    "error": Sign("cross", "Failed", "bad"),
    "timeout": Sign("clock", "Timed out", "bad"),
    "interrupted": Sign("pause", "Interrupted", "needs"),
}
HISTORY = 25
_RUNS = 20
_ITEMS = 20
_LONGEST_STATE = 200_000
STUDIO_ORIGIN = "https://smith.langchain.com"
_STUDIO = f"{STUDIO_ORIGIN}/studio/thread"
_SOURCES = ("metadata", "next", "created_at", "checkpoint_id")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A past state. `nodes` are the nodes that produced it; empty for the input."""

    id: str
    step: Any
    source: str
    nodes: tuple[str, ...]
    created_at: str
    next: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Past:
    checkpoints: list[Checkpoint] = field(default_factory=list)
    older: str | None = None
    problem: AssentError | None = None


@dataclass(frozen=True, slots=True)
class ThreadPage:
    thread: Thread
    items: Sequence[View]
    runs: Sequence[Run]
    past: Past
    drawing: Drawing | None
    names: Names
    studio: str | None = None
    """The link to a thread of another deployment."""

    @property
    def title(self) -> str:
        return title(self.thread)

    @property
    def pending(self) -> list[View]:
        return [item for item in self.items if item["status"] in ("PENDING", "REVISION_REQUESTED")]

    @property
    def settled(self) -> list[View]:
        return [item for item in self.items if item["status"] not in ("PENDING", "REVISION_REQUESTED")]

    @property
    def conversation(self) -> Conversation:
        return conversation.of(self.thread.values)

    @property
    def state(self) -> str:
        return json.dumps(self.thread.values, indent=2, ensure_ascii=False)[:_LONGEST_STATE]

    @property
    def cut(self) -> bool:
        return len(self.state) == _LONGEST_STATE

    @property
    def error(self) -> str:
        error = self.thread.error or {}
        return str(error.get("message") or error.get("error") or "")


def title(thread: Thread) -> str:
    """The title from metadata or state, or the graph's name."""
    for source in (thread.metadata, thread.values):
        named = source if isinstance(source, Mapping) else {}
        for name in TITLES:
            if isinstance(text := named.get(name), str) and text.strip():
                return " ".join(text.split())[:200]
    return thread.graph_id or _("Thread")


def studio_link(thread_id: str, deployment: str) -> str:
    """The LangSmith Studio URL of a thread of this deployment."""
    return f"{_STUDIO}/{quote(thread_id, safe='')}?baseUrl={quote(deployment.rstrip('/'), safe='')}"


@dataclass(frozen=True, slots=True)
class Sources:
    """The services that provide a page's data."""

    threads: Threads
    assistants: Assistants
    runs: Runs
    inbox: Inbox
    store: Store
    remote: RemoteThreads


async def gather_remote(sources: Sources, caller: Principal, key: str) -> ThreadPage:
    """The page of a thread on another deployment. Its runs and its graph are not read."""
    far = await sources.remote.get(caller, key)
    rows = (await sources.inbox.list(caller, filter=f"thread:{key}", limit=_ITEMS)).items
    items = [await sources.inbox.get(caller, row["id"]) for row in rows]
    names = await people.names(sources.store, caller, [])
    parents = [*far.states[1:], {"next": []}]
    shown = [_checkpoint(state, parent) for state, parent in zip(far.states, parents, strict=False)]
    return ThreadPage(far.thread, items, [], Past(shown, problem=far.problem), None, names, far.studio)


async def gather(sources: Sources, caller: Principal, thread_id: str, before: str | None = None) -> ThreadPage:
    thread = await sources.threads.get(caller, thread_id, reveal=False)
    rows = (await sources.inbox.list(caller, filter=f"thread:{thread_id}", limit=_ITEMS)).items
    items = [await sources.inbox.get(caller, row["id"]) for row in rows]
    runs = await sources.runs.of_thread(caller, thread_id, limit=_RUNS)
    names = await people.names(sources.store, caller, [thread.owner, *(run.actor for run in runs)])
    return ThreadPage(
        thread,
        items,
        runs,
        await _past(sources.threads, caller, thread_id, before),
        await _drawing(sources.assistants, caller, thread),
        names,
    )


async def _past(threads: Threads, caller: Principal, thread_id: str, before: str | None) -> Past:
    """Reads one more checkpoint than it shows, to find the nodes that produced the oldest one."""
    try:
        states = await threads.states.history(caller, thread_id, limit=HISTORY + 1, before=before, select=_SOURCES)
    except NotFound as problem:  # the graph is not loaded here, or the checkpoint is gone
        return Past(problem=problem)
    parents = [*states[1:], {"next": []}]
    shown = [_checkpoint(state, parent) for state, parent in zip(states, parents, strict=False)][:HISTORY]
    return Past(shown, shown[-1].id if len(states) > HISTORY else None)


def _checkpoint(state: View, parent: View) -> Checkpoint:
    metadata = state["metadata"] or {}
    source = str(metadata.get("source") or "")
    nodes = tuple(parent["next"] or ()) if source == "loop" else ()
    return Checkpoint(
        str(state["checkpoint_id"]), metadata.get("step"), source, nodes, state["created_at"], tuple(state["next"])
    )


async def _drawing(assistants: Assistants, caller: Principal, thread: Thread) -> Drawing | None:
    """The graph's drawing; None if the thread has no graph or it is not loaded here."""
    waiting = (thread.next or ()) if thread.waits or thread.status == "interrupted" else ()
    for name in (thread.metadata.get("assistant_id"), thread.graph_id):
        try:
            if isinstance(name, str):
                return draw(await assistants.drawing(caller, name), waiting)
        except AssentError as problem:
            if problem.status >= 500:
                raise
    return None
