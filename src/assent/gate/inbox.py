"""The gate without a server: questions, decisions and grants in one local SQLite file, by the server's own functions.

What the server does for its runs, the gate does here itself: it writes the question down before it is raised. A person
decides with `decide`, and the graph goes on with `command`. A file knows no keys, so who may write to it may decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from assent.domain.access import DEFAULT_TENANT, Kind, Principal, Scope
from assent.domain.canonical import Json
from assent.domain.items import Execution, Item, ItemStatus
from assent.domain.questions import Resolution, Verb, Verdict
from assent.errors import Conflict, Invalid
from assent.gate.keeper import Keeper, Pending, current_keeper
from assent.store import asking, gate, grants, items
from assent.store.local import LocalStore
from assent.store.transaction import Tx

if TYPE_CHECKING:
    from langgraph.types import Command

T = TypeVar("T")

DEFAULT_PATH = ".assent/gate.db"
_RIGHTS = frozenset({Scope.DECIDE, Scope.ITEMS_READ})


@dataclass(frozen=True, slots=True)
class LocalItem:
    """A call that waits for a decision, or had one. `revision` and `hash` name what is seen here: a decision holds for
    that and nothing else. `args_text` is the exact text of what runs."""

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


class LocalInbox(Keeper):
    def __init__(self, path: str | Path = DEFAULT_PATH) -> None:
        """Nothing is opened before the first use. Several processes may share one file."""
        self._store = LocalStore(Path(path), DEFAULT_TENANT)

    def items(self, status: str | None = "pending") -> list[LocalItem]:
        """Oldest first; with None, those of every status."""
        wanted = None if status is None else _status(status)

        def look(tx: Tx) -> list[LocalItem]:
            _close_expired(tx, gate.listed(tx, ItemStatus.PENDING))
            return [_view(tx, item) for item in gate.listed(tx, wanted)]

        return self.run(look)

    def get(self, item_id: str) -> LocalItem:
        from assent.services.deciding import found

        def look(tx: Tx) -> LocalItem:
            _close_expired(tx, [found(tx, item_id)])
            return _view(tx, found(tx, item_id))

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
        """What `by` says to the revision they saw. `args` come with edit, `message` with reject and respond."""
        from assent.services.carrying import case_of
        from assent.services.deciding import Proposal, decide, found

        def write(tx: Tx) -> LocalItem:
            [action] = case_of(tx, found(tx, item_id)).question.actions
            verdict = Verdict(action.key, _verb(verb), args=args, message=message)
            decided = decide(tx, _person(by), item_id, Proposal(revision, hash, verdicts=(verdict,), via="library"))
            return _view(tx, decided)

        return self.run(write)

    def settle(
        self, item_id: str, outcome: Literal["done", "run_again", "abandon"], *, by: str, notes: str | None = None
    ) -> LocalItem:
        """What became of a call that was cut off: it is done, it is to be run again, or it is left at that."""
        from assent.services.doubts import settle

        return self.run(lambda tx: _view(tx, settle(tx, _person(by), item_id, outcome, notes, via="library")))

    def command(self, thread_id: str) -> Command[Any]:
        """What to go on with: `graph.invoke(inbox.command(thread_id), config)`. Holds what was decided, and only that;
        what is still pending is asked again."""
        from langgraph.types import Command

        answers = self.run(lambda tx: gate.decided_answers(tx, thread_id))
        if not answers:
            raise Conflict(f"nothing was decided that the thread {thread_id!r} waits for")
        return Command(resume=answers)

    def run(self, function: Callable[[Tx], T]) -> T:
        return self._store.write(function)

    async def arun(self, function: Callable[[Tx], T]) -> T:
        return await asyncio.to_thread(self._store.write, function)

    def raising(self, pending: Pending) -> Callable[[Tx], None]:
        """Other questions of the thread, by other tasks or about other calls, stay as they are."""

        def write(tx: Tx) -> None:
            gate.heard(tx, pending.thread_id, pending.before)
            _doubt_the_dead(tx, pending.thread_id)
            own = {"id": pending.interrupt_id, "value": pending.value, "response_schema": pending.response_schema}
            waiting = [*_others(tx, pending), own]
            asking.follow(tx, asking.Waiting(pending.thread_id, waiting, gated=True))

        return write

    def heard(self, thread_id: str, interrupt_ids: Sequence[str]) -> Callable[[Tx], None]:
        return lambda tx: gate.heard(tx, thread_id, interrupt_ids)


def _doubt_the_dead(tx: Tx, thread_id: str) -> None:
    """No server notices here that a process has died. A thread runs in one process at a time: calls of it that were
    begun, and that no task of this process makes, were cut off."""
    from assent.gate.task import alive

    asking.cut_off(tx, grants.left_started(tx, thread_id, but_not_in=alive(thread_id)), "gate")


def _others(tx: Tx, pending: Pending) -> list[dict[str, Json]]:
    """What else the thread waits for, as it was raised."""
    found: list[dict[str, Json]] = []
    _close_expired(tx, items.open_of_thread(tx, pending.thread_id))
    for item in items.open_of_thread(tx, pending.thread_id):
        if item.interrupt_id not in (*pending.before, pending.interrupt_id):
            asked = items.revision(tx, item.id, item.revision)
            found.append({"id": item.interrupt_id, "value": asked.asked, "response_schema": asked.response_schema})
    return found


def _close_expired(tx: Tx, found: Iterable[Item]) -> None:
    """No server looks at the time here, so whoever looks at the items does: what nobody has decided in time is over."""
    for item in found:
        if item.status.open and item.expires_at is not None and item.expires_at <= tx.now():
            asking.close(tx, item, Resolution.EXPIRED)


def keeper_for(named: Keeper | None) -> Keeper:
    """The server's, where one runs the graph; else the one that the author named, or the file in this directory."""
    return current_keeper() or named or default_inbox()


@cache
def default_inbox() -> LocalInbox:
    return LocalInbox()


def _view(tx: Tx, item: Item) -> LocalItem:
    question = asking.question_of(item, items.revision(tx, item.id, item.revision))
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
    )


def _person(name: str) -> Principal:
    if not name.strip():
        raise Invalid("by: say who decides")
    return Principal(Kind.REVIEWER, name, name, DEFAULT_TENANT, _RIGHTS, via="library")


def _status(name: str) -> ItemStatus:
    try:
        return ItemStatus(name.upper())
    except ValueError:
        raise Invalid(f"status: one of {', '.join(one.lower() for one in ItemStatus)}") from None


def _verb(name: str) -> Verb:
    try:
        return Verb(name)
    except ValueError:
        raise Invalid(f"unknown verb {name!r}") from None
