"""Everything that a thread's page shows, gathered as the caller may see it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from assent.domain.access import Principal
from assent.domain.runs import Run
from assent.domain.threads import Thread
from assent.errors import AssentError, NotFound
from assent.ports import Store
from assent.services.assistants import Assistants
from assent.services.inbox import Inbox
from assent.services.runs import Runs
from assent.services.threads import Threads
from assent.web import conversation, covering, people
from assent.web.conversation import Conversation
from assent.web.drawing import Drawing, draw
from assent.web.language import gettext as _
from assent.web.people import Names
from assent.web.words import Sign

View = Mapping[str, Any]

STATUSES = {
    "interrupted": Sign("pause", "Interrupted", "needs"),
    "idle": Sign("check", "Idle"),
    "busy": Sign("clock", "Busy", "revision"),
    "error": Sign("alert", "Error", "bad"),
}
RUNS = {
    "pending": Sign("clock", "In line"),
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
_STUDIO = "https://smith.langchain.com/studio/thread"
_TITLES = ("title", "thread_title", "thread_name", "name", "subject")
_SOURCES = ("metadata", "next", "created_at", "checkpoint_id")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state there was. `nodes` are those that made it; before the first there was only what came in."""

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
    secrets: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return title(self.thread)

    @property
    def pending(self) -> list[View]:
        return [one for one in self.items if one["status"] in ("PENDING", "REVISION_REQUESTED")]

    @property
    def settled(self) -> list[View]:
        return [one for one in self.items if one["status"] not in ("PENDING", "REVISION_REQUESTED")]

    @property
    def conversation(self) -> Conversation:
        return conversation.of(self.values)

    @property
    def values(self) -> Any:
        """What the thread's row holds, with a mask over secrets."""
        return covering.covered(self.thread.values, self.secrets) if self.secrets else self.thread.values

    @property
    def state(self) -> str:
        return json.dumps(self.values, indent=2, ensure_ascii=False)[:_LONGEST_STATE]

    @property
    def cut(self) -> bool:
        return len(self.state) == _LONGEST_STATE

    @property
    def error(self) -> str:
        found = self.thread.error or {}
        return str(found.get("message") or found.get("error") or "")


def title(thread: Thread) -> str:
    """What its author calls it, or the graph that runs on it."""
    for source in (thread.metadata, thread.values):
        named = source if isinstance(source, Mapping) else {}
        for name in _TITLES:
            if isinstance(found := named.get(name), str) and found.strip():
                return " ".join(found.split())[:200]
    return thread.graph_id or _("Thread")


def studio_link(thread_id: str, deployment: str) -> str:
    """Where LangSmith Studio shows a thread of the deployment at this address."""
    return f"{_STUDIO}/{quote(thread_id, safe='')}?baseUrl={quote(deployment.rstrip('/'), safe='')}"


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a page's facts come from."""

    threads: Threads
    assistants: Assistants
    runs: Runs
    inbox: Inbox
    store: Store


async def gather(sources: Sources, caller: Principal, thread_id: str, before: str | None = None) -> ThreadPage:
    thread = await sources.threads.get(caller, thread_id)
    found = (await sources.inbox.list(caller, filter=f"thread:{thread_id}", limit=_ITEMS)).items
    items = [await sources.inbox.get(caller, one["id"]) for one in found]
    runs = await sources.runs.of_thread(caller, thread_id, limit=_RUNS)
    names = await people.names(sources.store, caller, [one.actor for one in runs])
    return ThreadPage(
        thread,
        items,
        runs,
        await _past(sources.threads, caller, thread_id, before),
        await _drawing(sources.assistants, caller, thread),
        names,
        covering.secrets(items, thread.values),
    )


async def _past(threads: Threads, caller: Principal, thread_id: str, before: str | None) -> Past:
    """One checkpoint more than is shown says what ran before the oldest of them."""
    try:
        found = await threads.states.history(caller, thread_id, limit=HISTORY + 1, before=before, select=_SOURCES)
    except NotFound as problem:  # the graph is not loaded here, or the checkpoint is gone
        return Past(problem=problem)
    parents = [*found[1:], {"next": []}]
    shown = [_checkpoint(one, parent) for one, parent in zip(found, parents, strict=False)][:HISTORY]
    return Past(shown, shown[-1].id if len(found) > HISTORY else None)


def _checkpoint(state: View, parent: View) -> Checkpoint:
    metadata = state["metadata"] or {}
    source = str(metadata.get("source") or "")
    nodes = tuple(parent["next"] or ()) if source == "loop" else ()
    return Checkpoint(
        str(state["checkpoint_id"]), metadata.get("step"), source, nodes, state["created_at"], tuple(state["next"])
    )


async def _drawing(assistants: Assistants, caller: Principal, thread: Thread) -> Drawing | None:
    """None where the thread has no graph, or one that is not loaded here."""
    waiting = (thread.next or ()) if thread.waits or thread.status == "interrupted" else ()
    for name in (thread.metadata.get("assistant_id"), thread.graph_id):
        try:
            if isinstance(name, str):
                return draw(await assistants.drawing(caller, name), waiting)
        except AssentError as problem:
            if problem.status >= 500:
                raise
    return None
