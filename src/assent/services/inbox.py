"""The inbox: what waits for people, and everything they can do about it. Rights first, then one transaction each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from assent.domain import filters
from assent.domain.access import Kind, Principal, Scope
from assent.domain.canonical import Json
from assent.domain.ids import new_id
from assent.domain.items import ItemStatus
from assent.domain.questions import Verb
from assent.domain.timeline import Event
from assent.domain.visibility import Visible, shows
from assent.errors import AssentError, ClaimedByOther, Forbidden, Invalid, NotFound
from assent.notify.targets import Targets
from assent.ports import Store
from assent.services import deciding, doubts, requesting, undoing
from assent.services.carrying import case_of
from assent.services.deciding import Proposal, found
from assent.services.item_views import ItemPage, View, comment_view, full, revision_view, rows, unmasked
from assent.services.refusals import noted
from assent.services.requesting import Request
from assent.services.rights import require_right
from assent.services.thread_access import ThreadAccess
from assent.store import events, item_search, items, jsontext, requests, threads
from assent.store.item_search import Waiting
from assent.store.transaction import Tx

CLAIM = timedelta(minutes=5)
MOST_AT_ONCE = 200
Views: TypeAlias = list[View]
Doubt = Literal["done", "run_again", "abandon"]


@dataclass(frozen=True, slots=True)
class Named:
    """An item as whoever decides about many at once saw it."""

    id: str
    revision: int
    hash: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one of many."""

    id: str
    ok: bool
    status: str | None = None
    error: Mapping[str, Any] = field(default_factory=dict)


Results: TypeAlias = list[Result]


class Inbox:
    def __init__(self, store: Store, *, targets: Targets | None = None, access: ThreadAccess | None = None) -> None:
        self._store = store
        self._targets = targets or Targets()
        self._may = access or ThreadAccess()

    # Looking

    async def list(
        self,
        caller: Principal,
        *,
        filter: str = "",
        sort: str = "-created_at",
        limit: int = 50,
        cursor: str | None = None,
    ) -> ItemPage:
        caller.require(Scope.ITEMS_READ)
        if sort not in item_search.SORTS:
            raise Invalid(f"sort: {sort!r} is not an order", hint=f"one of: {', '.join(item_search.SORTS)}")
        wanted, visible = filters.parse(filter), await self._visible(caller)
        return await self._store.read(caller.tenant, _list, caller, wanted, visible, sort, limit, cursor)

    async def following(self, caller: Principal, item_id: str, *, filter: str = "") -> str | None:
        """The next item of this list that waits: an older one, or the newest where there is none."""
        caller.require(Scope.ITEMS_READ)
        wanted, visible = filters.parse(filter), await self._visible(caller)
        return await self._store.read(caller.tenant, _following, caller, wanted, visible, item_id)

    async def pending(self, caller: Principal, wanted: Sequence[filters.Filter]) -> Sequence[Waiting]:
        """How many items of each filter wait, in one look."""
        caller.require(Scope.ITEMS_READ)
        visible = await self._visible(caller)
        return await self._store.read(caller.tenant, item_search.pending, wanted, caller.actor, visible)

    async def get(self, caller: Principal, item_id: str) -> View:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, await self._seen(caller, item_id, _get), caller, item_id)

    async def revisions(self, caller: Principal, item_id: str) -> Views:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, await self._seen(caller, item_id, _revisions), caller, item_id)

    async def comments(self, caller: Principal, item_id: str) -> Views:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, await self._seen(caller, item_id, _comments), caller, item_id)

    async def timeline(self, caller: Principal, item_id: str) -> Views:
        """What happened to it, oldest first."""
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, await self._seen(caller, item_id, _timeline), caller, item_id)

    async def opened(self, caller: Principal, item_id: str) -> tuple[View, Views, Views, Views]:
        """All of it as of one moment: the item, its revisions, comments and timeline."""
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, await self._seen(caller, item_id, _opened), caller, item_id)

    # Deciding

    async def decide(self, caller: Principal, item_id: str, proposal: Proposal, *, key: str | None = None) -> View:
        def act(tx: Tx) -> View:
            return full(tx, caller, deciding.decide(tx, caller, item_id, proposal))

        return await self._once(caller, item_id, key, ("decide", item_id, _plain(proposal)), act)

    async def undo(self, caller: Principal, item_id: str, *, key: str | None = None) -> View:
        def act(tx: Tx) -> View:
            return full(tx, caller, undoing.undo(tx, caller, item_id))

        return await self._once(caller, item_id, key, ("undo", item_id), act)

    async def ask_for_revision(
        self,
        caller: Principal,
        item_id: str,
        *,
        revision: int,
        hash: str,
        notes: str,
        grace: timedelta = timedelta(),
        via: str = "rest",
        key: str | None = None,
    ) -> View:
        def act(tx: Tx) -> View:
            asked = deciding.ask_for_revision(tx, caller, item_id, revision, hash, notes, grace=grace, via=via)
            return full(tx, caller, asked)

        return await self._once(caller, item_id, key, ("revision", item_id, revision, hash, notes), act)

    async def settle_doubt(
        self,
        caller: Principal,
        item_id: str,
        outcome: Doubt,
        *,
        notes: str | None = None,
        grant_id: str | None = None,
        via: str = "rest",
        key: str | None = None,
    ) -> View:
        """Of several calls that are in doubt, `grant_id` names the one that is spoken of."""

        def act(tx: Tx) -> View:
            settled = doubts.settle(tx, caller, item_id, outcome, notes, via=via, grant_id=grant_id)
            return full(tx, caller, settled)

        return await self._once(caller, item_id, key, ("in-doubt", item_id, outcome, notes, grant_id), act)

    async def decide_many(
        self,
        caller: Principal,
        chosen: Sequence[Named],
        verb: Verb,
        *,
        message: str | None = None,
        dry_run: bool = False,
        via: str = "rest",
        key: str | None = None,
    ) -> Results:
        """Each for itself: one that cannot be decided does not keep the others. A dry run says what would happen."""
        if len(chosen) > MOST_AT_ONCE:
            raise Invalid(f"at most {MOST_AT_ONCE} items at once")
        proposals = [Proposal(one.revision, one.hash, verb=verb, message=message, via=via) for one in chosen]
        return [
            await self._one_of_many(caller, one.id, proposal, dry_run=dry_run, key=key)
            for one, proposal in zip(chosen, proposals, strict=True)
        ]

    async def _one_of_many(
        self, caller: Principal, item_id: str, proposal: Proposal, *, dry_run: bool, key: str | None
    ) -> Result:
        """The key of the whole stands for each of them: what was done is not done again, the rest is tried."""
        own_key = f"{key} {item_id}" if key else None
        try:
            if dry_run:
                status = await self._foreseen(caller, item_id, proposal)
            else:
                status = (await self.decide(caller, item_id, proposal, key=own_key))["status"]
        except AssentError as error:
            return Result(item_id, False, error={"code": error.code, "message": error.message, **error.extra})
        return Result(item_id, True, status)

    async def _foreseen(self, caller: Principal, item_id: str, proposal: Proposal) -> str:
        tried = await self._seen(caller, item_id, lambda tx, caller, item_id: _tried(tx, caller, item_id, proposal))
        status: str = await self._store.read(caller.tenant, tried, caller, item_id)
        return status

    # Requests

    async def create(self, caller: Principal, request: Request, *, key: str | None = None) -> tuple[View, bool]:
        """The item, and whether it is new: the same `dedupe_key` finds the one that is there."""
        caller.require(Scope.ITEMS_CREATE)
        if request.callback is not None:
            self._targets.check_url(request.callback)
        await asyncio.to_thread(requesting.require_schemas, request.actions)

        def act(tx: Tx) -> Json:
            item, fresh = requesting.create(tx, caller, request)
            return {"item": full(tx, caller, item), "fresh": fresh}

        made = await self._store.write(
            caller.tenant, requests.once, caller.actor, key, ("create", _plain(request)), act
        )
        return made["item"], made["fresh"]

    async def resubmit(
        self, caller: Principal, item_id: str, changes: Mapping[str, Json], *, key: str | None = None
    ) -> View:
        caller.require(Scope.ITEMS_CREATE)
        await asyncio.to_thread(requesting.require_schemas, changes.get("actions") or ())

        def act(tx: Tx) -> View:
            return full(tx, caller, requesting.resubmit(tx, caller, item_id, changes))

        return await self._once(caller, item_id, key, ("resubmit", item_id, dict(changes)), act)

    async def cancel(
        self, caller: Principal, item_id: str, *, notes: str | None = None, key: str | None = None
    ) -> View:
        def act(tx: Tx) -> View:
            return full(tx, caller, requesting.cancel(tx, caller, item_id, notes))

        return await self._once(caller, item_id, key, ("cancel", item_id, notes), act)

    async def reveal(self, caller: Principal, item_id: str) -> Views:
        """The arguments with their secrets, for a person who may decide this. The timeline keeps that they looked."""
        caller.require(Scope.DECIDE)
        if caller.kind is not Kind.REVIEWER:
            raise Forbidden("only a person is shown secrets", missing=[Scope.DECIDE.value])
        revealing = await self._seen(caller, item_id, _reveal)
        async with noted(self._store, caller):
            revealed: Views = await self._store.write(caller.tenant, revealing, caller, item_id)
        return revealed

    # Working together

    async def comment(self, caller: Principal, item_id: str, text: str, *, key: str | None = None) -> View:
        caller.require(Scope.COMMENTS_WRITE)
        if not text.strip():
            raise Invalid("a comment needs a text")

        def act(tx: Tx) -> View:
            return _comment(tx, caller, item_id, text)

        return await self._once(caller, item_id, key, ("comment", item_id, text), act)

    async def claim(self, caller: Principal, item_id: str) -> View:
        """Says that the caller is at it, for a while. It keeps nobody from deciding."""
        caller.require(Scope.COMMENTS_WRITE)
        return await self._change(caller, item_id, _claim)

    async def unclaim(self, caller: Principal, item_id: str) -> View:
        caller.require(Scope.COMMENTS_WRITE)
        return await self._change(caller, item_id, _unclaim)

    async def save_draft(self, caller: Principal, item_id: str, draft: Json) -> View:
        """What the caller has begun to write, for themselves; null throws it away."""
        caller.require(Scope.COMMENTS_WRITE)
        return await self._change(caller, item_id, _mark, draft=draft)

    async def snooze(self, caller: Principal, item_id: str, until: datetime | None) -> View:
        caller.require(Scope.COMMENTS_WRITE)
        return await self._change(caller, item_id, _mark, snoozed_until=until)

    async def link(self, caller: Principal, item_id: str, thread_id: str) -> View:
        caller.require(Scope.COMMENTS_WRITE)
        return await self._change(caller, item_id, _link, thread_id)

    async def unlink(self, caller: Principal, item_id: str, thread_id: str) -> View:
        caller.require(Scope.COMMENTS_WRITE)
        return await self._change(caller, item_id, _unlink, thread_id)

    # What they share

    async def _once(
        self, caller: Principal, item_id: str, key: str | None, request: Json, act: Callable[[Tx], View]
    ) -> View:
        seen = await self._seen(caller, item_id, lambda tx, caller, item_id: act(tx))

        def once(tx: Tx) -> Any:
            return requests.once(tx, caller.actor, key, request, lambda tx: seen(tx, caller, item_id))

        async with noted(self._store, caller):
            done: View = await self._store.write(caller.tenant, once)
        return done

    async def _change(
        self, caller: Principal, item_id: str, change: Callable[..., None], *args: Any, **kwargs: Any
    ) -> View:
        def changed(tx: Tx, caller: Principal, item_id: str) -> View:
            change(tx, caller, item_id, *args, **kwargs)
            return full(tx, caller, found(tx, item_id))

        return await self._store.write(caller.tenant, await self._seen(caller, item_id, changed), caller, item_id)

    async def _visible(self, caller: Principal) -> Visible | None:
        return await self._may.inbox(caller) if caller.user is not None else None

    async def _seen(
        self, caller: Principal, item_id: str, function: Callable[[Tx, Principal, str], Any]
    ) -> Callable[[Tx, Principal, str], Any]:
        """The store function, for which an item is missing that the project's auth handlers hide from the caller."""
        visible = await self._visible(caller)
        if visible is None:
            return function

        def checked(tx: Tx, caller: Principal, item_id: str) -> Any:
            item = items.get(tx, item_id)
            thread = threads.get(tx, item.thread_id) if item and item.thread_id else None
            if thread is None or not shows(visible, thread.metadata):
                raise NotFound(f"there is no item {item_id!r}")
            return function(tx, caller, item_id)

        return checked


def _list(
    tx: Tx,
    caller: Principal,
    wanted: filters.Filter,
    visible: Visible | None,
    sort: str,
    limit: int,
    cursor: str | None,
) -> ItemPage:
    page = item_search.page(tx, wanted, caller.actor, visible, sort=sort, limit=limit, cursor=cursor)
    counts = item_search.counts(tx, wanted, caller.actor, visible)
    return ItemPage(rows(page.items), page.next, asdict(counts))


def _following(tx: Tx, caller: Principal, wanted: filters.Filter, visible: Visible | None, item_id: str) -> str | None:
    near = item_search.after(tx, wanted, caller.actor, visible, found(tx, item_id))
    return next((one.id for one in near if one.status is ItemStatus.PENDING), None)


def _get(tx: Tx, caller: Principal, item_id: str) -> View:
    return full(tx, caller, found(tx, item_id))


def _revisions(tx: Tx, caller: Principal, item_id: str) -> Views:
    case = case_of(tx, found(tx, item_id))
    return [revision_view(case.item, revision, case) for revision in items.revisions(tx, item_id)]


def _comments(tx: Tx, caller: Principal, item_id: str) -> Views:
    found(tx, item_id)
    return [comment_view(row) for row in items.comments_of(tx, item_id)]


def _timeline(tx: Tx, caller: Principal, item_id: str) -> Views:
    item = found(tx, item_id)
    return [_entry(*entry) for entry in events.of_subject(tx, item.subject)]


def _opened(tx: Tx, caller: Principal, item_id: str) -> tuple[View, Views, Views, Views]:
    parts = (_revisions, _comments, _timeline)
    revisions, comments, timeline = (part(tx, caller, item_id) for part in parts)
    return _get(tx, caller, item_id), revisions, comments, timeline


def _entry(event: Event, payload: str | None) -> View:
    """What an event tells; null where that was erased."""
    told = {"seq": event.seq, "at": event.at.isoformat(), "kind": event.kind, "actor": event.actor}
    return {**told, "payload": None if payload is None else jsontext.load(payload)}


def _tried(tx: Tx, caller: Principal, item_id: str, proposal: Proposal) -> str:
    """What deciding would do, without doing it. Where an item stands is told to who could decide it."""
    item = found(tx, item_id)
    require_right(tx, caller, case_of(tx, item))
    return deciding.foreseen(tx, caller, item, proposal)


def _comment(tx: Tx, caller: Principal, item_id: str, text: str) -> View:
    item, comment_id = found(tx, item_id), new_id()
    items.add_comment(tx, item_id, comment_id, caller.actor, text)
    events.append(tx, caller, "item.commented", item.subject, {"comment": comment_id, "text": text})
    return {"id": comment_id, "actor": caller.actor, "text": text, "at": tx.now().isoformat()}


def _reveal(tx: Tx, caller: Principal, item_id: str) -> Views:
    item = found(tx, item_id)
    require_right(tx, caller, case_of(tx, item))
    events.append(tx, caller, "item.revealed", item.subject, {"revision": item.revision})
    return unmasked(tx, item)


def _claim(tx: Tx, caller: Principal, item_id: str) -> None:
    item = found(tx, item_id, lock=True)
    claimed = item.claimed_until is not None and item.claimed_until > tx.now()
    if claimed and item.claimed_by != caller.actor:
        until = item.claimed_until.isoformat() if item.claimed_until else None
        raise ClaimedByOther(claimed_by=item.claimed_by, until=until)
    items.change(tx, item, claimed_by=caller.actor, claimed_until=tx.now() + CLAIM)
    if not claimed:
        events.append(tx, caller, "item.claimed", item.subject)


def _unclaim(tx: Tx, caller: Principal, item_id: str) -> None:
    item = found(tx, item_id, lock=True)
    if item.claimed_by == caller.actor:
        items.change(tx, item, claimed_by=None, claimed_until=None)
        events.append(tx, caller, "item.unclaimed", item.subject)


def _mark(tx: Tx, caller: Principal, item_id: str, **columns: Any) -> None:
    found(tx, item_id)
    items.mark(tx, item_id, caller.actor, **columns)


def _link(tx: Tx, caller: Principal, item_id: str, thread_id: str) -> None:
    item = found(tx, item_id)
    if threads.get(tx, thread_id) is None:
        raise NotFound(f"there is no thread {thread_id!r}")
    if items.link(tx, item_id, thread_id):
        events.append(tx, caller, "item.linked", item.subject, {"thread": thread_id})


def _unlink(tx: Tx, caller: Principal, item_id: str, thread_id: str) -> None:
    item = found(tx, item_id)
    if items.unlink(tx, item_id, thread_id):
        events.append(tx, caller, "item.unlinked", item.subject, {"thread": thread_id})


def _plain(request: Any) -> Json:
    """A request as JSON, for its hash."""
    return {
        name: str(value) if isinstance(value, timedelta | datetime) else value
        for name, value in asdict(request).items()
    }
