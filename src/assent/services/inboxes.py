"""Inboxes: saved views, each person's own. Either the items of a graph of a deployment, or what a search finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from assent.domain import filters
from assent.domain.access import Principal, Scope
from assent.domain.assistants import Assistant, own_id
from assent.domain.filters import Filter
from assent.domain.ids import as_uuid, new_id
from assent.errors import Conflict, Invalid, NotFound
from assent.ports import Store
from assent.services.deployments import Deployments
from assent.services.inbox import Inbox
from assent.store import assistants, requests
from assent.store import inboxes as rows
from assent.store.inboxes import SavedInbox
from assent.store.item_search import Waiting
from assent.store.transaction import Tx

MOST = 50
LONGEST_NAME = 100
View: TypeAlias = dict[str, Any]
Views: TypeAlias = list[View]
Resolve = Callable[[Principal, str], Awaitable[Assistant]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An inbox as a person describes it: a graph's name or an assistant's id of a deployment, or else a filter."""

    graph_id: str = ""
    url: str = ""
    name: str = ""
    filter: str = ""


class Inboxes:
    def __init__(
        self, store: Store, inbox: Inbox, deployments: Deployments | None = None, resolve: Resolve | None = None
    ) -> None:
        """`resolve` finds an assistant that can be run; without it, one that the database knows has to do."""
        self._store = store
        self._inbox = inbox
        self._deployments = deployments or Deployments()
        self._resolve = resolve or self._stored

    async def list(self, caller: Principal) -> Views:
        """Each with how many of its items wait, as far as the inbox counts."""
        caller.require(Scope.ITEMS_READ)
        found = await self._store.read(caller.tenant, rows.of_owner, caller.actor)
        counts = await self._inbox.pending(caller, [_parsed(one.filter) for one in found]) if found else []
        return [_view(one, count) for one, count in zip(found, counts, strict=True)]

    async def get(self, caller: Principal, inbox_id: str) -> View:
        caller.require(Scope.ITEMS_READ)
        found = await self._store.read(caller.tenant, _found, caller.actor, inbox_id)
        [count] = await self._inbox.pending(caller, [_parsed(found.filter)])
        return _view(found, count)

    async def create(
        self, caller: Principal, wanted: Wanted, *, here: str | None = None, key: str | None = None
    ) -> View:
        """`here` is the address by which the caller reached this server, and so one of its own."""
        columns, inbox_id = await self._columns(caller, wanted, here), new_id()

        def act(tx: Tx) -> str:
            return _append(tx, caller.actor, inbox_id, columns)

        request = {"inbox": asdict(wanted)}
        made = await self._store.write(caller.tenant, requests.once, caller.actor, key, request, act)
        return await self.get(caller, made)

    async def update(self, caller: Principal, inbox_id: str, wanted: Wanted, *, here: str | None = None) -> View:
        columns = await self._columns(caller, wanted, here)
        await self._store.write(caller.tenant, _change, caller.actor, inbox_id, columns)
        return await self.get(caller, inbox_id)

    async def remove(self, caller: Principal, inbox_id: str) -> View:
        """Only the view: its items stay where they are."""
        removed = await self.get(caller, inbox_id)
        await self._store.write(caller.tenant, rows.remove, caller.actor, inbox_id)
        return removed

    def this_server(self, here: str | None = None) -> str | None:
        return self._deployments.this(here)

    async def _columns(self, caller: Principal, wanted: Wanted, here: str | None) -> View:
        caller.require(Scope.ITEMS_READ)
        graph_id, filter, name = wanted.graph_id.strip(), wanted.filter.strip(), _checked(wanted.name)
        if bool(graph_id) is bool(filter):
            raise Invalid("an inbox shows either a graph or a search", hint="give an Assistant/Graph ID, or a filter")
        if graph_id:
            return await self._deployment(caller, graph_id, wanted.url.strip(), name, here)
        if wanted.url.strip():
            raise Invalid("a search looks at everything on this server", hint="leave the deployment URL out")
        if not name:
            raise Invalid("a saved search needs a name")
        if not filter.isprintable():
            raise Invalid("a filter is one line of printable characters")
        filters.parse(filter)
        return {"name": name, "filter": filter, "graph_id": None, "url": None}

    async def _deployment(self, caller: Principal, graph_id: str, url: str, name: str, here: str | None) -> View:
        own = self._deployments.require_own(url, here) if url else self._deployments.this(here)
        try:
            assistant = await self._resolve(caller, graph_id)
        except (Invalid, NotFound):
            hint = "the name of a graph, as langgraph.json has it, or the id of an assistant"
            raise Invalid(f"there is no graph or assistant {graph_id!r} on this server", hint=hint) from None
        by_name = graph_id == assistant.graph_id
        filter = filters.term("graph", graph_id) if by_name else filters.term("assistant", assistant.id)
        kept = graph_id if by_name else assistant.id
        usual = assistant.graph_id if by_name or assistant.is_graphs_own else assistant.name
        return {"name": name or _cut(usual), "filter": filter, "graph_id": kept, "url": own}

    async def _stored(self, caller: Principal, name_or_id: str) -> Assistant:
        wanted = as_uuid(name_or_id) or own_id(name_or_id)
        found = await self._store.read(caller.tenant, assistants.get, wanted)
        if found is None:
            raise NotFound(f"there is no assistant {name_or_id!r}")
        return found


def _checked(name: str) -> str:
    """Something that can be shown in one line."""
    stripped = name.strip()
    if len(stripped) > LONGEST_NAME or not stripped.isprintable():
        raise Invalid(f"the name of an inbox has at most {LONGEST_NAME} printable characters")
    return stripped


def _cut(name: str) -> str:
    return "".join(char for char in name if char.isprintable())[:LONGEST_NAME]


def _parsed(filter: str) -> Filter:
    """One that an earlier release understood must not take every page along with it: it finds nothing."""
    try:
        return filters.parse(filter)
    except Invalid:
        return filters.NOTHING


def _view(inbox: SavedInbox, waiting: Waiting) -> View:
    named = {"id": inbox.id, "name": inbox.name, "filter": inbox.filter}
    counted = {"count": waiting.number, "at_least": waiting.at_least}
    return {**named, "graph_id": inbox.graph_id, "url": inbox.url, "local": True, **counted}


def _found(tx: Tx, owner: str, inbox_id: str) -> SavedInbox:
    found = rows.get(tx, owner, inbox_id)
    if found is None:
        raise NotFound(f"there is no inbox {inbox_id!r}")
    return found


def _append(tx: Tx, owner: str, inbox_id: str, columns: View) -> str:
    if len(rows.of_owner(tx, owner)) >= MOST:
        raise Conflict(f"you have {MOST} inboxes, and no more can be added", hint="remove one that you do not need")
    rows.append(tx, owner, inbox_id, **columns)
    return inbox_id


def _change(tx: Tx, owner: str, inbox_id: str, columns: View) -> None:
    _found(tx, owner, inbox_id)
    rows.change(tx, owner, inbox_id, **columns)
