"""The inbox: the use cases over items. Each checks the caller's rights, then runs one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeAlias

from assent.audit.refusals import noted
from assent.errors import AssentError, ClaimedByOther, Forbidden, Invalid, NotFound
from assent.identity import assertions
from assent.identity.model.access import Principal, Scope
from assent.identity.model.passkeys import Party, Proof
from assent.identity.model.visibility import Visible
from assent.identity.rows import users
from assent.kernel import events, fair_threads
from assent.kernel.canonical import Json
from assent.kernel.quotas import documents, quotas
from assent.kernel.store import idempotency
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox.targets import Targets
from assent.review import requests
from assent.review.collaboration import comments, owners
from assent.review.decisions import confirmation, doubts
from assent.review.decisions import decide as deciding
from assent.review.decisions import undo as undoing
from assent.review.decisions.confirmation import Options
from assent.review.decisions.consequences import Case, case_of
from assent.review.decisions.decide import Proposal, require_item
from assent.review.decisions.rights import is_person, require_right
from assent.review.item_views import (
    ItemPage,
    View,
    comment_view,
    event_view,
    full,
    revision_view,
    rows,
    unmasked,
    with_arguments,
)
from assent.review.model.items import ItemStatus
from assent.review.model.questions import Verb
from assent.review.model.search import filters
from assent.review.requests import Request
from assent.review.rows import item_search, items, mentions
from assent.review.rows.item_search import Waiting
from assent.review.rows.secrets import AuthorWords, asks_itself
from assent.review.threads.secrets import require_unmasked
from assent.threads.access import ThreadAccess
from assent.threads.rows import threads
from assent.threads.visible_threads import sees_thread

CLAIM = timedelta(minutes=5)
MOST_AT_ONCE = 200
MOST_EVENTS = 1000
Views: TypeAlias = list[View]
Doubt = Literal["done", "run_again", "abandon"]


@dataclass(frozen=True, slots=True)
class Named:
    """An item of a bulk decision, as the caller saw it."""

    id: str
    revision: int
    hash: str


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommended decision about the revision that the caller saw."""

    revision: int
    hash: str
    verb: Verb
    reason: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result for one item of a bulk decision."""

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

    # Reading

    async def list(
        self,
        caller: Principal,
        *,
        filter: str = "",
        sort: str | None = None,
        group: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        arguments: bool = False,
        facets: bool = False,
    ) -> ItemPage:
        """`sort` and `group` (items with the same agent, thread or type follow each other) prevail over those of the
        filter. `arguments`: includes the arguments of
        the calls, with secrets masked. `facets`: includes the values to narrow the list by, with counts."""
        caller.require(Scope.ITEMS_READ)
        wanted = filters.parse(filter)
        order = _order(wanted, sort, group)
        visible, want = await self._visible(caller), _Want(limit, cursor, arguments, facets)
        return await self._store.read(caller.tenant, _list, caller, wanted, visible, order, want)

    async def following(self, caller: Principal, item_id: str, *, filter: str = "") -> str | None:
        """The next pending item of this list, or the first."""
        caller.require(Scope.ITEMS_READ)
        wanted, visible = filters.parse(filter), await self._visible(caller)
        order = _order(wanted, None, None)
        return await self._store.read(caller.tenant, _following, caller, wanted, visible, order, item_id)

    async def pending(self, caller: Principal, wanted: Sequence[filters.Filter]) -> Sequence[Waiting]:
        """The number of pending items of each filter, in one query."""
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

    async def timeline(
        self, caller: Principal, item_id: str, *, limit: int = MOST_EVENTS, before: int | None = None
    ) -> Views:
        """The events, oldest first. Of a long history only the newest part, or the part before an event."""
        caller.require(Scope.ITEMS_READ)
        look = partial(_timeline, limit=limit, before=before)
        return await self._store.read(caller.tenant, await self._seen(caller, item_id, look), caller, item_id)

    async def opened(self, caller: Principal, item_id: str) -> tuple[View, Views, Views, Views]:
        """A consistent snapshot of the item, its revisions, comments and timeline."""
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, await self._seen(caller, item_id, _opened), caller, item_id)

    # Deciding

    async def decide(
        self,
        caller: Principal,
        item_id: str,
        proposal: Proposal,
        *,
        key: str | None = None,
        proof: Proof | None = None,
    ) -> View:
        if proof is not None:
            await assertions.load()

        def act(tx: Tx) -> View:
            return full(tx, caller, deciding.decide(tx, caller, item_id, proposal, proof))

        return await self._once(caller, item_id, key, ("decide", item_id, _plain(proposal)), act)

    async def to_confirm(
        self, caller: Principal, item_id: str, proposal: Proposal, party: Party | None
    ) -> Options | None:
        """The WebAuthn options for the signature that this decision needs; None if it needs none."""

        def act(tx: Tx, caller: Principal, item_id: str) -> Options | None:
            return deciding.to_confirm(tx, caller, item_id, proposal, party)

        return await self._ask_passkey(caller, item_id, act)

    async def to_confirm_doubt(
        self, caller: Principal, item_id: str, party: Party | None, *, grant_id: str | None = None
    ) -> Options | None:
        """The same for another run of a call in doubt."""

        def act(tx: Tx, caller: Principal, item_id: str) -> Options | None:
            return doubts.to_confirm(tx, caller, item_id, party, grant_id=grant_id)

        return await self._ask_passkey(caller, item_id, act)

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

        request = ("revision", item_id, revision, hash, notes, str(grace))
        return await self._once(caller, item_id, key, request, act)

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
        proof: Proof | None = None,
    ) -> View:
        """`grant_id` selects one of several calls in doubt. It is required where the call ran again: it names the doubt
        that the caller was shown."""
        if proof is not None:
            await assertions.load()

        def act(tx: Tx) -> View:
            settled = doubts.settle(
                tx, caller, item_id, outcome, notes, via=via, grant_id=grant_id, named=True, proof=proof
            )
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
        grace: timedelta = timedelta(),
        via: str = "rest",
        key: str | None = None,
    ) -> Results:
        """Decides each item separately: a failure does not stop the others. A dry run only predicts the results. During
        the grace period each decision can be undone."""
        if len(chosen) > MOST_AT_ONCE:
            raise Invalid(f"at most {MOST_AT_ONCE} items at once")
        proposals = [
            Proposal(item.revision, item.hash, verb=verb, message=message, grace=grace, via=via) for item in chosen
        ]
        return [
            await self._one_of_many(caller, item.id, proposal, dry_run=dry_run, key=key)
            for item, proposal in zip(chosen, proposals, strict=True)
        ]

    async def undo_many(self, caller: Principal, chosen: Sequence[str], *, key: str | None = None) -> Results:
        """Undoes each of the caller's decisions that is still in its grace period."""
        if len(chosen) > MOST_AT_ONCE:
            raise Invalid(f"at most {MOST_AT_ONCE} items at once")
        results = Results()
        for item_id in chosen:
            try:
                undone = await self.undo(caller, item_id, key=f"{key} {item_id}" if key else None)
                results.append(Result(item_id, True, undone["status"]))
            except AssentError as error:
                failure = {"code": error.code, "message": error.message, **error.extra}
                results.append(Result(item_id, False, error=failure))
        return results

    async def _one_of_many(
        self, caller: Principal, item_id: str, proposal: Proposal, *, dry_run: bool, key: str | None
    ) -> Result:
        """The idempotency key covers each item: on a retry, decided items are skipped and the rest is tried."""
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
        """The item, and whether it is new: the same `dedupe_key` returns the existing one."""
        caller.require(Scope.ITEMS_CREATE)
        require_unmasked({"payload": request.payload, "actions": _args(request.actions)}, "")
        if request.callback is not None:
            self._targets.check_url(request.callback)
        await fair_threads.beside(requests.require_schemas, request.actions)

        def act(tx: Tx) -> Json:
            item, fresh = requests.create(tx, caller, request)
            return {"item": full(tx, caller, item), "fresh": fresh}

        made = await self._store.write(
            caller.tenant, idempotency.once, caller.actor, key, ("create", _plain(request)), act
        )
        return made["item"], made["fresh"]

    async def resubmit(
        self, caller: Principal, item_id: str, changes: Mapping[str, Json], *, key: str | None = None
    ) -> View:
        caller.require(Scope.ITEMS_CREATE)
        actions = changes.get("actions") or ()
        require_unmasked({"payload": changes.get("payload"), "actions": _args(actions)}, "")
        await fair_threads.beside(requests.require_schemas, actions)

        def act(tx: Tx) -> View:
            return full(tx, caller, requests.resubmit(tx, caller, item_id, changes))

        return await self._once(caller, item_id, key, ("resubmit", item_id, dict(changes)), act)

    async def cancel(
        self, caller: Principal, item_id: str, *, notes: str | None = None, key: str | None = None
    ) -> View:
        def act(tx: Tx) -> View:
            return full(tx, caller, requests.cancel(tx, caller, item_id, notes))

        return await self._once(caller, item_id, key, ("cancel", item_id, notes), act)

    async def reveal(self, caller: Principal, item_id: str) -> Views:
        """The arguments with their secrets, for a person who may decide the item, and for its requester on a thread of
        its own. Recorded in the timeline."""
        caller.require(Scope.ITEMS_READ)
        revealing = await self._seen(caller, item_id, _reveal)
        async with noted(self._store, caller):
            revealed: Views = await self._store.write(caller.tenant, revealing, caller, item_id)
        return revealed

    # Collaboration

    async def comment(self, caller: Principal, item_id: str, text: str, *, key: str | None = None) -> View:
        caller.require(Scope.COMMENTS_WRITE)
        if not text.strip():
            raise Invalid("a comment needs a text")

        def act(tx: Tx) -> View:
            return comments.add(tx, caller, require_item(tx, item_id), text)

        return await self._once(caller, item_id, key, ("comment", item_id, text), act)

    async def recommend(self, caller: Principal, item_id: str, advice: Advice, *, key: str | None = None) -> View:
        """A comment that names the verb which the caller recommends to the people who decide."""
        caller.require(Scope.COMMENTS_WRITE)
        if not advice.reason.strip():
            raise Invalid("a recommendation needs a reason")

        def act(tx: Tx) -> View:
            return _recommend(tx, caller, item_id, advice)

        return await self._once(caller, item_id, key, ("recommend", item_id, _plain(advice)), act)

    async def assign(self, caller: Principal, item_id: str, person: str | None) -> View:
        """Makes a person the owner of the item: by name or id, `me`, or nobody. Others still may decide it."""
        caller.require(Scope.COMMENTS_WRITE)
        return await self._change(caller, item_id, _assign, person)

    async def people(self, caller: Principal, part: str = "", *, limit: int = 20) -> Views:
        """The people of the tenant whom a comment can mention, by a part of the name."""
        caller.require(Scope.COMMENTS_WRITE)
        if not is_person(caller) or caller.user is not None:
            raise Forbidden("only a person of this server can list people", missing=[Scope.DECIDE.value])
        return await self._store.read(caller.tenant, _people, part.strip(), limit)

    async def claim(self, caller: Principal, item_id: str) -> View:
        """Marks the item as claimed by the caller for a while. It does not stop others from deciding."""
        caller.require(Scope.COMMENTS_WRITE)
        return await self._change(caller, item_id, _claim)

    async def unclaim(self, caller: Principal, item_id: str) -> View:
        caller.require(Scope.COMMENTS_WRITE)
        return await self._change(caller, item_id, _unclaim)

    async def save_draft(self, caller: Principal, item_id: str, draft: Json) -> View:
        """The caller's private draft; null deletes it."""
        caller.require(Scope.COMMENTS_WRITE)
        await documents.require_given(self._store.limits, draft=draft)
        require_unmasked(draft, "draft", whole=True)  # a draft text may quote a mask
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

    # Helpers

    async def _once(
        self, caller: Principal, item_id: str, key: str | None, request: Json, act: Callable[[Tx], View]
    ) -> View:
        seen = await self._seen(caller, item_id, lambda tx, caller, item_id: act(tx))

        def once(tx: Tx) -> Any:
            return idempotency.once(tx, caller.actor, key, request, lambda tx: seen(tx, caller, item_id))

        async with noted(self._store, caller):
            done: View = await self._store.write(caller.tenant, once)
        return done

    async def _ask_passkey(
        self, caller: Principal, item_id: str, act: Callable[[Tx, Principal, str], Options | None]
    ) -> Options | None:
        asking = await self._seen(caller, item_id, act)
        async with noted(self._store, caller):
            options: Options | None = await self._store.write(caller.tenant, asking, caller, item_id)
        return options

    async def _change(
        self, caller: Principal, item_id: str, change: Callable[..., None], *args: Any, **kwargs: Any
    ) -> View:
        """Changes the item and returns all of it, so the caller needs the right to read it."""
        caller.require(Scope.ITEMS_READ)

        def changed(tx: Tx, caller: Principal, item_id: str) -> View:
            change(tx, caller, item_id, *args, **kwargs)
            return full(tx, caller, require_item(tx, item_id))

        return await self._store.write(caller.tenant, await self._seen(caller, item_id, changed), caller, item_id)

    async def _visible(self, caller: Principal) -> Visible | None:
        return await self._may.inbox(caller) if caller.user is not None else None

    async def _seen(
        self, caller: Principal, item_id: str, function: Callable[[Tx, Principal, str], Any]
    ) -> Callable[[Tx, Principal, str], Any]:
        """The store function, which raises `NotFound` for an item that the project's auth handlers hide from the
        caller."""
        visible = await self._visible(caller)
        if visible is None:
            return function

        def checked(tx: Tx, caller: Principal, item_id: str) -> Any:
            item = items.get(tx, item_id)
            thread = threads.get(tx, item.thread_id, values=False) if item and item.thread_id else None
            if thread is None or not thread.shown_to(visible):
                raise NotFound(f"item {item_id!r} not found")
            return function(tx, caller, item_id)

        return checked


@dataclass(frozen=True, slots=True)
class _Want:
    """The wanted part of a list, and what it includes."""

    limit: int
    cursor: str | None
    arguments: bool
    facets: bool


Order: TypeAlias = dict[str, Any]


def _order(wanted: filters.Filter, sort: str | None, group: str | None) -> Order:
    for name, value, known in (("sort", sort, item_search.SORTS), ("group", group, item_search.GROUPS)):
        if value is not None and value not in known:
            raise Invalid(f"{name}: {value!r} is not a {name} of items", hint=f"one of: {', '.join(known)}")
    return {"sort": sort or filters.SORTS[wanted.sort or "newest"], "group": group or wanted.group}


def _list(
    tx: Tx, caller: Principal, wanted: filters.Filter, visible: Visible | None, order: Order, want: _Want
) -> ItemPage:
    searched = (tx, wanted, caller.actor, visible)
    page = item_search.page(*searched, **order, limit=want.limit, cursor=want.cursor)
    counts = item_search.counts(*searched)
    views = [with_arguments(tx, item) for item in page.items] if want.arguments else rows(tx, page.items)
    return ItemPage(views, page.next, asdict(counts), item_search.facets(*searched) if want.facets else {})


def _following(
    tx: Tx, caller: Principal, wanted: filters.Filter, visible: Visible | None, order: Order, item_id: str
) -> str | None:
    near = item_search.after(tx, wanted, caller.actor, visible, require_item(tx, item_id), **order)
    return next((item.id for item in near if item.status is ItemStatus.PENDING), None)


def _get(tx: Tx, caller: Principal, item_id: str) -> View:
    return full(tx, caller, require_item(tx, item_id))


def _revisions(tx: Tx, caller: Principal, item_id: str) -> Views:
    return _revisions_of(tx, case_of(tx, require_item(tx, item_id)))


def _revisions_of(tx: Tx, case: Case) -> Views:
    return [revision_view(revision, case) for revision in items.revisions(tx, case.item.id)]


def _comments(tx: Tx, caller: Principal, item_id: str) -> Views:
    return _comments_of(tx, case_of(tx, require_item(tx, item_id)))


def _comments_of(tx: Tx, case: Case) -> Views:
    words = AuthorWords(tx, case.item, case.words)
    mentioned = mentions.of_item(tx, case.item.id)
    return [
        comment_view(row, words.of(row.actor), mentioned.get(row.comment_id, ()))
        for row in items.comments_of(tx, case.item.id)
    ]


def _timeline(tx: Tx, caller: Principal, item_id: str, *, limit: int, before: int | None) -> Views:
    return _timeline_of(tx, case_of(tx, require_item(tx, item_id)), limit=limit, before=before)


def _timeline_of(tx: Tx, case: Case, *, limit: int = MOST_EVENTS, before: int | None = None) -> Views:
    entries = events.newest_of_subject(tx, case.item.subject, limit=limit, before=before)
    words = AuthorWords(tx, case.item, case.words)
    return [event_view(event, payload, words.about(event)) for event, payload in entries]


def _opened(tx: Tx, caller: Principal, item_id: str) -> tuple[View, Views, Views, Views]:
    case = case_of(tx, require_item(tx, item_id))
    revisions, comments, timeline = (part(tx, case) for part in (_revisions_of, _comments_of, _timeline_of))
    return full(tx, caller, case.item, case), revisions, comments, timeline


def _tried(tx: Tx, caller: Principal, item_id: str, proposal: Proposal) -> str:
    """Predicts a decision. Only a caller who may decide the item learns its status."""
    item = require_item(tx, item_id)
    case = case_of(tx, item)
    require_right(tx, caller, case)
    status = deciding.foreseen(tx, caller, item, proposal)
    if status != ItemStatus.REJECTED and case.terms.confirm:
        confirmation.require(tx, caller, item, "", None)
    return status


def _recommend(tx: Tx, caller: Principal, item_id: str, advice: Advice) -> View:
    item = require_item(tx, item_id)
    deciding.require_open(tx, item, advice.revision, advice.hash, to=ItemStatus.APPROVED)
    text = f"Recommends to {advice.verb} revision {advice.revision}: {advice.reason}"
    facts = {"verb": advice.verb, "revision": advice.revision}
    return {**comments.add(tx, caller, item, text, kind="item.recommended", facts=facts), **facts}


def _reveal(tx: Tx, caller: Principal, item_id: str) -> Views:
    item = require_item(tx, item_id)
    if not asks_itself(tx, caller.actor, item):
        if not is_person(caller):
            raise Forbidden(
                "only the requester, on a thread of its own, and people who may decide can see secrets",
                missing=[Scope.DECIDE.value],
                item=item.id,
            )
        require_right(tx, caller, case_of(tx, item))
    events.append(tx, caller, "item.revealed", item.subject, {"revision": item.revision})
    return unmasked(tx, item)


def _people(tx: Tx, part: str, limit: int) -> Views:
    return [
        {"id": user.id, "name": user.name, "decides": user.may(Scope.DECIDE)} for user in users.like(tx, part, limit)
    ]


def _assign(tx: Tx, caller: Principal, item_id: str, person: str | None) -> None:
    owners.assign(tx, caller, require_item(tx, item_id, lock=True), person)


def _claim(tx: Tx, caller: Principal, item_id: str) -> None:
    item = require_item(tx, item_id, lock=True)
    claimed = item.claimed_until is not None and item.claimed_until > tx.now()
    if claimed and item.claimed_by != caller.actor:
        until = item.claimed_until.isoformat() if item.claimed_until else None
        raise ClaimedByOther(claimed_by=item.claimed_by, until=until)
    items.change(tx, item, claimed_by=caller.actor, claimed_until=tx.now() + CLAIM)
    if not claimed:
        events.append(tx, caller, "item.claimed", item.subject)


def _unclaim(tx: Tx, caller: Principal, item_id: str) -> None:
    item = require_item(tx, item_id, lock=True)
    if item.claimed_by == caller.actor:
        items.change(tx, item, claimed_by=None, claimed_until=None)
        events.append(tx, caller, "item.unclaimed", item.subject)


def _mark(tx: Tx, caller: Principal, item_id: str, **columns: Any) -> None:
    if columns.get("draft") is not None:
        quotas.require_storage(tx)
    require_item(tx, item_id)
    items.mark(tx, item_id, caller.actor, **columns)


def _link(tx: Tx, caller: Principal, item_id: str, thread_id: str) -> None:
    item = require_item(tx, item_id)
    _require_seen(tx, caller, thread_id)
    if items.link(tx, item_id, thread_id):
        events.append(tx, caller, "item.linked", item.subject, {"thread": thread_id})


def _unlink(tx: Tx, caller: Principal, item_id: str, thread_id: str) -> None:
    """People also remove the link to a thread that is gone."""
    item = require_item(tx, item_id)
    if not caller.is_person:
        _require_seen(tx, caller, thread_id)
    if items.unlink(tx, item_id, thread_id):
        events.append(tx, caller, "item.unlinked", item.subject, {"thread": thread_id})


def _require_seen(tx: Tx, caller: Principal, thread_id: str) -> None:
    if not sees_thread(tx, caller, thread_id):
        raise NotFound(f"thread {thread_id!r} not found")


def _args(actions: Iterable[Mapping[str, Any]]) -> list[Json]:
    return [{"args": action.get("args")} for action in actions]


def _plain(request: Any) -> Json:
    """A request as JSON, for its hash."""
    return {
        name: str(value) if isinstance(value, timedelta | datetime) else value
        for name, value in asdict(request).items()
    }
