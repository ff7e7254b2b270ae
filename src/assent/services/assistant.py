"""The assistant that one graph is: people talk to it in threads of their own naming, and answer what it asks.

A talk is a thread of the LangGraph API and its questions are items of the inbox; nothing is kept here. So whatever is
said here shows everywhere, and what was answered elsewhere is answered here too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID, uuid5

from assent.domain.access import DEFAULT_TENANT, ROLE_SCOPES, Kind, Principal, Role
from assent.domain.ids import new_id
from assent.domain.runs import Run, Strategy
from assent.domain.threads import Thread
from assent.errors import AssentError, InvalidDecision, NotFound, StaleRevision, ThreadBusy, ThreadWaits, Unavailable
from assent.ports import Store
from assent.services import assistant_threads
from assent.services.assistant_answers import Answer, refused, verdicts_of
from assent.services.assistant_turns import Replied, Turn
from assent.services.assistant_views import NO_ACTION, Reply, pending_action
from assent.services.deciding import Proposal
from assent.services.inbox import Inbox
from assent.services.item_views import View
from assent.services.onboarding import LOCAL_USER
from assent.services.runs import Runs
from assent.services.starting import RunRequest
from assent.services.threads import Threads
from assent.store import users

OWN_ID = "assistant_thread_id"
"""Where a thread's metadata keep the name that its talk goes by."""

VIA = "assistant"

_TALKS = UUID("5b0c8f5e-7d0e-5f0c-9a55-6a1f3c1f7b01")


def thread_of(tenant: str, name: str) -> str:
    """The thread that a talk is: its name where that is a thread's id already, and otherwise always the same one."""
    with suppress(ValueError):
        if str(UUID(name)) == name:
            return name
    return str(uuid5(_TALKS, f"{tenant}\n{name}"))


def request_of(graph_id: str, name: str, text: str, *, aloud: bool = False) -> RunRequest:
    """The run that hears what someone says. Where it thinks aloud, it is heard word by word, also after a pause."""
    return RunRequest(
        assistant_id=graph_id,
        input={"messages": [{"role": "user", "content": text}]},
        metadata={OWN_ID: name},
        stream_mode=("values", "messages-tuple") if aloud else ("values",),
        create_thread=True,
        multitask_strategy=Strategy.REJECT,
    )


def again_after(failed: Run) -> RunRequest:
    """The run that goes on where this one failed: from the thread's last checkpoint, with nothing new."""
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
        """Says something to the assistant."""
        thread_id = thread_of(caller.tenant, name)
        await self._own(caller, name, thread_id)  # where there is none, it is made
        return await self._started(caller, name, thread_id, request_of(self._graph_id, name, text, aloud=aloud))

    async def _started(self, caller: Principal, name: str, thread_id: str, request: RunRequest) -> Turn:
        if not self._is_loaded():
            raise Unavailable(
                f"the assistant is not there: the graph {self._graph_id!r} was not loaded",
                hint="the server's log says why",
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
        """Answers what the assistant waits for."""
        thread_id = thread_of(caller.tenant, name)
        thread = await self._own(caller, name, thread_id)
        if thread is None:
            raise _unknown(name)
        asked = await self._store.read(caller.tenant, assistant_threads.asked, caller, thread_id, answer)
        if asked is None:
            failed = await self._store.read(caller.tenant, assistant_threads.failed_after, caller, thread_id, answer)
            if failed is not None:
                return await self._started(caller, name, thread_id, again_after(failed))
            raise await self._store.read(caller.tenant, assistant_threads.nothing_waits, thread_id)
        verdicts = verdicts_of(asked, answer)
        if asked["revision"] > 1 and not thread.shown:
            raise StaleRevision(revision=asked["revision"], hash=asked["hash"], pending_action=pending_action(asked))
        proposal = Proposal(asked["revision"], asked["hash"], verdicts, via=VIA)
        try:
            decided = await self._inbox.decide(caller, asked["id"], proposal)
        except InvalidDecision as error:
            raise refused(asked, answer, error) from None
        if decided["status"] == "PENDING":  # more people have to agree
            return Replied(Reply(name, asked=decided, waits=True))
        # the run that carries an answer has the id of its delivery
        return self._turn(caller, name, thread_id, decided["delivery"]["id"])

    def _turn(self, caller: Principal, name: str, thread_id: str, run_id: str) -> Turn:
        return Turn(self._store, self._runs, caller, name, thread_id, run_id)

    async def _own(self, caller: Principal, name: str, thread_id: str) -> Thread | None:
        """A thread of another graph is none of the assistant's, and its state would not fit."""
        try:
            thread = await self._threads.get(caller, thread_id)
        except NotFound:
            return None
        if thread.graph_id not in (None, self._graph_id):
            raise _unknown(name)
        return thread

    async def _not_now(self, caller: Principal, thread_id: str, error: AssentError) -> AssentError:
        found, decision = await self._store.read(caller.tenant, assistant_threads.standing, caller, thread_id)
        if found is None:
            told: View = {"decision": decision} if decision and isinstance(error, ThreadWaits) else {}
            return ThreadBusy("the assistant is still at it", hint=None, pending_action=NO_ACTION, **told)
        return ThreadWaits("the assistant waits for an answer first", pending_action=pending_action(found))


def _unknown(name: str) -> NotFound:
    return NotFound(f"the assistant has no thread {name!r}", thread_id=name)


class LocalPerson:
    """The person at this machine, as the first start made them; None where the operator has disabled them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __call__(self) -> Principal | None:
        user = await self._store.read(DEFAULT_TENANT, users.by_name, LOCAL_USER)
        if user is None or user.disabled_at is not None:
            return None
        scopes = ROLE_SCOPES[user.role] & ROLE_SCOPES[Role.REVIEWER]
        return Principal(Kind.REVIEWER, user.id, user.name, DEFAULT_TENANT, scopes)
