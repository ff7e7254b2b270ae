"""The gate without a server: questions, decisions and grants in one SQLite file or Postgres database, by the server's
own functions.

The gate writes the question itself before it raises it, as the server does for its runs. A person decides with
`decide`, and the graph resumes with `command`. The database has no keys: write access to it is the right to decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from assent.errors import Conflict, Invalid
from assent.gate.records import Pending
from assent.gate.stored import Book, StoreKeeper
from assent.identity.model.access import DEFAULT_TENANT, Kind, Principal, Scope
from assent.kernel.canonical import Json
from assent.kernel.store.local import local_store
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.dialects import question_of
from assent.review.model.grants import Call
from assent.review.model.items import Execution, Item, ItemStatus
from assent.review.model.questions import Resolution, Verb, Verdict
from assent.review.rows import gate, grants, items

if TYPE_CHECKING:
    from langgraph.types import Command

T = TypeVar("T")

DEFAULT_PATH = ".assent/gate.db"
_RIGHTS = frozenset({Scope.DECIDE, Scope.ITEMS_READ})


@dataclass(frozen=True, slots=True)
class LocalItem:
    """A call that is pending or decided. `revision` and `hash` identify the question shown here: a decision is valid
    for that question only. `args_text` is the exact text of the arguments."""

    id: str
    status: ItemStatus
    resolution: Resolution | None
    execution: Execution | None
    revision: int
    hash: str
    thread_id: str
    tool: str
    args: Json
    args_text: str
    description: str | None
    allowed: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    grant_id: str | None = None
    """The grant of the call if it is in doubt: `settle` names it."""


class _LocalBook(Book):
    """The gate writes its questions itself, as a server does for its runs."""

    def record_question(self, tx: Tx, pending: Pending) -> None:
        """Leaves the other questions of the thread unchanged."""
        gate.mark_delivered(tx, pending.thread_id, pending.before)
        _doubt_interrupted(tx, pending.thread_id)
        thread_items.follow(tx, thread_items.Waiting(pending.thread_id, _all_pending(tx, pending), gated=True))

    def answer(self, tx: Tx, call: Call, interrupt_id: str) -> Json:
        return gate.decided_answer(tx, call.thread_id, interrupt_id)

    def record_use(self, tx: Tx, thread_id: str, interrupt_ids: Sequence[str]) -> None:
        gate.mark_delivered(tx, thread_id, interrupt_ids)


class LocalInbox(StoreKeeper):
    book = _LocalBook()

    def __init__(self, path: str | Path = DEFAULT_PATH) -> None:
        """`path` is a file, or the `postgresql://` URL of a database. It is opened on first use, and several processes
        may share it."""
        self._store = local_store(path, DEFAULT_TENANT)

    def items(self, status: str | None = "pending") -> list[LocalItem]:
        """Oldest first; None lists every status."""
        wanted = None if status is None else _status(status)

        def look(tx: Tx) -> list[LocalItem]:
            _close_expired(tx, gate.listed(tx, ItemStatus.PENDING))
            return [_view(tx, item) for item in gate.listed(tx, wanted)]

        return self.run(look)

    def get(self, item_id: str) -> LocalItem:
        from assent.review.decisions.decide import require_item

        def look(tx: Tx) -> LocalItem:
            _close_expired(tx, [require_item(tx, item_id)])
            return _view(tx, require_item(tx, item_id))

        return self.run(look)

    def decide(
        self,
        item_id: str,
        verb: Literal["approve", "edit", "reject", "respond"],
        *,
        revision: int,
        hash: str,
        by: str,
        args: Json = None,
        message: str | None = None,
    ) -> LocalItem:
        """Records the decision of `by` on the revision they saw. `edit` needs `args`; `reject` and `respond` take
        `message`."""
        from assent.review.decisions.consequences import case_of
        from assent.review.decisions.decide import Proposal, decide, require_item

        def write(tx: Tx) -> LocalItem:
            [action] = case_of(tx, require_item(tx, item_id)).question.actions
            verdict = Verdict(action.key, _verb(verb), args=args, message=message)
            decided = decide(tx, _person(by), item_id, Proposal(revision, hash, verdicts=(verdict,), via="library"))
            return _view(tx, decided)

        return self.run(write)

    def settle(
        self,
        item_id: str,
        outcome: Literal["done", "run_again", "abandon"],
        *,
        by: str,
        notes: str | None = None,
        grant_id: str | None = None,
    ) -> LocalItem:
        """Records the outcome of an interrupted call: it happened, it must run again, or it is abandoned. `grant_id` is
        that of the item that was shown. It is required where the call ran again and is in doubt a second time."""
        from assent.review.decisions.doubts import settle

        def write(tx: Tx) -> LocalItem:
            person = _person(by)
            settled = settle(tx, person, item_id, outcome, notes, via="library", grant_id=grant_id, named=True)
            return _view(tx, settled)

        return self.run(write)

    def command(self, thread_id: str) -> Command[Any]:
        """Resumes the graph: `graph.invoke(inbox.command(thread_id), config)`. Contains only the decided answers;
        pending questions are raised again."""
        from langgraph.types import Command

        answers = self.run(lambda tx: gate.decided_answers(tx, thread_id))
        if not answers:
            raise Conflict(f"the thread {thread_id!r} waits for no decided item; decide one first")
        return Command(resume=answers)

    def run(self, function: Callable[[Tx], T]) -> T:
        return self._store.write(function)

    async def arun(self, function: Callable[[Tx], T]) -> T:
        return await asyncio.to_thread(self._store.write, function)


def _doubt_interrupted(tx: Tx, thread_id: str) -> None:
    """Marks interrupted calls as in doubt, because no server detects a dead process here. A thread runs in one process
    at a time: a started call that no task of this process makes was interrupted."""
    from assent.gate.task import alive

    thread_items.cut_off(tx, grants.left_started(tx, thread_id, but_not_in=alive(thread_id)), "gate")


def _all_pending(tx: Tx, pending: Pending) -> list[dict[str, Json]]:
    """This question after the other open questions of the thread, as they were raised."""
    waiting: list[dict[str, Json]] = []
    _close_expired(tx, items.open_of_thread(tx, pending.thread_id))
    for item in items.open_of_thread(tx, pending.thread_id):
        if item.interrupt_id not in (*pending.before, pending.interrupt_id):
            asked = items.revision(tx, item.id, item.revision)
            waiting.append({"id": item.interrupt_id, "value": asked.asked, "response_schema": asked.response_schema})
    return [*waiting, pending.question]


def _close_expired(tx: Tx, candidates: Iterable[Item]) -> None:
    """Closes items past their deadline on each read, because no server checks deadlines here."""
    for item in candidates:
        if item.status.open and item.expires_at is not None and item.expires_at <= tx.now():
            thread_items.close(tx, item, Resolution.EXPIRED)


def _view(tx: Tx, item: Item) -> LocalItem:
    question = question_of(item, items.revision(tx, item.id, item.revision))
    [action] = question.actions
    return LocalItem(
        id=item.id,
        status=item.status,
        resolution=item.resolution,
        execution=item.execution,
        revision=item.revision,
        hash=item.hash,
        thread_id=str(item.thread_id),
        tool=action.name,
        args=action.args,
        args_text=action.args_text,
        description=action.description,
        allowed=tuple(action.allowed),
        created_at=item.created_at,
        expires_at=item.expires_at,
        grant_id=_doubted(tx, item),
    )


def _doubted(tx: Tx, item: Item) -> str | None:
    if item.execution is not Execution.IN_DOUBT:
        return None
    return next((grant.id for grant in grants.in_doubt(tx, item.id)), None)


def _person(name: str) -> Principal:
    if not name.strip():
        raise Invalid("by: a name is required")
    return Principal(Kind.REVIEWER, name, name, DEFAULT_TENANT, _RIGHTS, via="library")


def _status(name: str) -> ItemStatus:
    try:
        return ItemStatus(name.upper())
    except ValueError:
        raise Invalid(f"status: status of {', '.join(status.lower() for status in ItemStatus)}") from None


def _verb(name: str) -> Verb:
    try:
        return Verb(name)
    except ValueError:
        raise Invalid(f"unknown verb {name!r}") from None
