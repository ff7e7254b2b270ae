"""The conversation API over one graph: people name their threads, send requests and answer questions.

A conversation is a thread of the LangGraph API and its questions are items of the inbox; nothing is stored here. So all
surfaces show the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID, uuid5

from assent.assistant.talk import threads as assistant_threads
from assent.assistant.talk.answers import Answer, notes_of, refused, verdicts_of
from assent.assistant.talk.sightings import is_meant, note
from assent.assistant.talk.threads import Standing
from assent.assistant.talk.turns import Replied, Turn
from assent.assistant.talk.views import NO_ACTION, Reply, pending_action
from assent.errors import (
    AssentError,
    Conflict,
    InvalidDecision,
    NotFound,
    StaleRevision,
    ThreadBusy,
    ThreadWaits,
    Unavailable,
)
from assent.identity.model.access import Principal, is_program
from assent.kernel.ids import new_id
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.decisions.decide import Proposal, require_item
from assent.review.inbox import Inbox
from assent.review.item_views import View, full
from assent.runs.runs import Runs
from assent.runs.threads.threads import Threads
from assent.threads.model.runs import Cancel, Run, Strategy
from assent.threads.model.threads import Thread
from assent.threads.run_requests import RunRequest

OWN_ID = "assistant_thread_id"
"""The key in a thread's metadata for the name of its conversation."""

TITLE = "title"
"""The key in a thread's metadata for its first request, on one line."""

VIA = "assistant"

_LONGEST_TITLE = 120
_TALKS = UUID("5b0c8f5e-7d0e-5f0c-9a55-6a1f3c1f7b01")


def thread_of(tenant: str, name: str) -> str:
    """The thread id of a conversation: its name if that is a UUID, else derived from tenant and name."""
    with suppress(ValueError):
        if str(UUID(name)) == name:
            return name
    return str(uuid5(_TALKS, f"{tenant}\n{name}"))


def title_of(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_TITLE]


def request_of(graph_id: str, name: str, text: str, *, aloud: bool = False) -> RunRequest:
    """The run for a request. With `aloud` it streams the model's words, also after a pause."""
    return RunRequest(
        assistant_id=graph_id,
        input={"messages": [{"role": "user", "content": text}]},
        metadata={OWN_ID: name, TITLE: title_of(text)},
        stream_mode=("values", "messages-tuple") if aloud else ("values",),
        create_thread=True,
        multitask_strategy=Strategy.REJECT,
    )


def again_after(failed: Run) -> RunRequest:
    """The run that retries a failed one: from the thread's last checkpoint, without new input."""
    return RunRequest(
        assistant_id=failed.assistant_id,
        metadata=failed.metadata,
        stream_mode=tuple(failed.kwargs.get("stream_mode") or ("values",)),
        multitask_strategy=Strategy.REJECT,
    )


class Assistant:
    def __init__(
        self,
        store: Store,
        runs: Runs,
        threads: Threads,
        inbox: Inbox,
        graph_id: str,
        *,
        is_loaded: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store = store
        self._runs = runs
        self._threads = threads
        self._inbox = inbox
        self._graph_id = graph_id
        self._is_loaded = is_loaded

    async def run(self, caller: Principal, name: str, text: str, *, aloud: bool = False) -> Turn:
        """Sends a request to the assistant."""
        thread_id = thread_of(caller.tenant, name)
        thread = await self._own(caller, name, thread_id)
        if thread is not None and thread_id != name:
            _require_no_trap(caller, name, thread)
        return await self._started(caller, name, thread_id, request_of(self._graph_id, name, text, aloud=aloud))

    async def _started(self, caller: Principal, name: str, thread_id: str, request: RunRequest) -> Turn:
        if not self._is_loaded():
            raise Unavailable(
                f"the assistant is not available: the graph {self._graph_id!r} was not loaded",
                hint="see the server's log",
            )
        turn = self._turn(caller, name, thread_id, new_id())
        try:
            await self._runs.create(caller, thread_id, request, run_id=turn.run_id)
        except BaseException as error:
            turn.close()
            if isinstance(error, ThreadBusy | ThreadWaits):
                raise await self._not_now(caller, thread_id, error) from None
            raise
        return turn

    async def resume(self, caller: Principal, name: str, answer: Answer) -> Turn | Replied:
        """Answers the pending question."""
        thread_id = await self.require(caller, name)
        asked = await self._store.read(caller.tenant, assistant_threads.asked, caller, thread_id, answer)
        if asked is None:
            failed = await self._store.read(caller.tenant, assistant_threads.failed_after, caller, thread_id, answer)
            if failed is not None:
                return await self._started(caller, name, thread_id, again_after(failed))
            raise await self._store.read(caller.tenant, assistant_threads.nothing_waits, caller, thread_id)
        verdicts = verdicts_of(asked, answer)
        if answer.seen is None and not await self._store.read(caller.tenant, is_meant, caller, asked):
            raise await self._changed(caller, asked["id"])
        revision, hash = answer.seen or (asked["revision"], asked["hash"])
        try:
            proposal = Proposal(revision, hash, verdicts, notes=notes_of(answer), via=VIA)
            decided = await self._inbox.decide(caller, asked["id"], proposal)
        except InvalidDecision as error:
            raise refused(asked, answer, error) from None
        except StaleRevision:
            raise await self._changed(caller, asked["id"]) from None
        if decided["status"] == "PENDING":  # more people have to agree
            await self._store.write(caller.tenant, note, caller, decided)
            return Replied(Reply(name, asked=decided, waits=True))
        # the run that delivers an answer has the id of its delivery
        return self._turn(caller, name, thread_id, decided["delivery"]["id"])

    async def retry(self, caller: Principal, name: str) -> Turn:
        """Continues a failed request from the failure."""
        failed = (await self.standing(caller, name)).failed
        if failed is None:
            raise Conflict("the last request has not failed", thread_id=name)
        return await self._started(caller, name, thread_of(caller.tenant, name), again_after(failed))

    def followed(self, caller: Principal, name: str, run_id: str) -> Turn:
        """Follows a run of the conversation, or one that an answer is about to start."""
        return self._turn(caller, name, thread_of(caller.tenant, name), run_id)

    async def standing(self, caller: Principal, name: str) -> Standing:
        """The activity of the conversation."""
        thread_id = await self.require(caller, name)
        return await self._store.read(caller.tenant, assistant_threads.standing, thread_id)

    async def require(self, caller: Principal, name: str) -> str:
        """The id of the conversation's thread."""
        thread_id = thread_of(caller.tenant, name)
        if await self._own(caller, name, thread_id) is None:
            raise _unknown(name)
        return thread_id

    @property
    def graph_id(self) -> str:
        return self._graph_id

    async def cancel(self, caller: Principal, name: str) -> None:
        """Stops the work on the present request. Calls that have started are not undone."""
        active = (await self.standing(caller, name)).active
        if not active:
            raise Conflict("the assistant is not working on a request", thread_id=name)
        for run in active:
            with suppress(NotFound):  # it has ended meanwhile
                await self._runs.cancel(caller, run.thread_id, run.id, Cancel.INTERRUPT)

    def _turn(self, caller: Principal, name: str, thread_id: str, run_id: str) -> Turn:
        return Turn(self._store, self._runs, caller, name, thread_id, run_id)

    async def _own(self, caller: Principal, name: str, thread_id: str) -> Thread | None:
        """The thread, if it exists. Refuses a thread of another graph, whose state would not fit."""
        try:
            thread = await self._threads.find(caller, thread_id)
        except NotFound:
            return None
        if thread.graph_id not in (None, self._graph_id):
            raise _unknown(name)
        return thread

    async def _not_now(self, caller: Principal, thread_id: str, error: AssentError) -> AssentError:
        look = assistant_threads.pending_or_decided
        waiting, decision = await self._store.read(caller.tenant, look, caller, thread_id)
        if waiting is None:
            extra: View = {"decision": decision} if decision and isinstance(error, ThreadWaits) else {}
            return ThreadBusy("the assistant is still working", hint=None, pending_action=NO_ACTION, **extra)
        await self._store.write(caller.tenant, note, caller, waiting)
        return ThreadWaits("the assistant waits for an answer first", pending_action=pending_action(waiting))

    async def _changed(self, caller: Principal, item_id: str) -> StaleRevision:
        """The error shows the present question, so that the next answer applies to it."""
        asked = await self._store.write(caller.tenant, _show, caller, item_id)
        return StaleRevision(
            hint="read pending_action and answer again",
            revision=asked["revision"],
            hash=asked["hash"],
            pending_action=pending_action(asked),
        )


def _show(tx: Tx, caller: Principal, item_id: str) -> View:
    asked = full(tx, caller, require_item(tx, item_id))
    note(tx, caller, asked)
    return asked


def _require_no_trap(caller: Principal, name: str, thread: Thread) -> None:
    """A name can be guessed: a program could create its thread first, share it, and read the requests of others."""
    owner = thread.owner
    if owner is not None and owner != caller.actor and is_program(owner):
        raise Conflict(
            f"the conversation {name!r} belongs to {owner}, which could read your request",
            hint="choose another thread_id",
            thread_id=name,
        )


def _unknown(name: str) -> NotFound:
    return NotFound(f"the assistant has no thread {name!r}", thread_id=name)
