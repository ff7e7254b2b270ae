"""Inboxes: each person's saved views. Either the items of a graph of a deployment, or the results of a search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from assent.errors import Conflict, Invalid, NotFound
from assent.identity.model.access import Principal, Scope
from assent.kernel.ids import as_uuid, new_id
from assent.kernel.store import idempotency
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.deployments import Deployments, origin, parsed
from assent.review.inbox import Inbox
from assent.review.model.search import filters
from assent.review.model.search.filters import Filter
from assent.review.rows import inboxes
from assent.review.rows.inboxes import SavedInbox
from assent.review.rows.item_search import Waiting
from assent.threads.model.assistants import Assistant, own_id
from assent.threads.rows import assistants
from assent.threads.rows.remote import deployments

MOST = 50
LONGEST_NAME = 100
View: TypeAlias = dict[str, Any]
Views: TypeAlias = list[View]
Resolve = Callable[[Principal, str], Awaitable[Assistant]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requested settings of an inbox: a graph's name or an assistant's id of a deployment, or else a filter."""

    graph_id: str = ""
    url: str = ""
    name: str = ""
    filter: str = ""


class Inboxes:
    def __init__(
        self, store: Store, inbox: Inbox, deployments: Deployments | None = None, resolve: Resolve | None = None
    ) -> None:
        """`resolve` returns a runnable assistant; the default looks it up in the database."""
        self._store = store
        self._inbox = inbox
        self._deployments = deployments or Deployments()
        self._resolve = resolve or self._stored

    async def list(self, caller: Principal) -> Views:
        """Each inbox with the number of its pending items, up to the count limit."""
        caller.require(Scope.ITEMS_READ)
        saved = await self._store.read(caller.tenant, inboxes.of_owner, caller.actor)
        counts = await self._inbox.pending(caller, [_parsed(inbox.filter) for inbox in saved]) if saved else []
        problems = await self._problems(caller)
        return [_view(inbox, count, problems) for inbox, count in zip(saved, counts, strict=True)]

    async def get(self, caller: Principal, inbox_id: str) -> View:
        caller.require(Scope.ITEMS_READ)
        inbox = await self._store.read(caller.tenant, _require_inbox, caller.actor, inbox_id)
        [count] = await self._inbox.pending(caller, [_parsed(inbox.filter)])
        return _view(inbox, count, await self._problems(caller))

    async def _problems(self, caller: Principal) -> Mapping[str, str | None]:
        """The problem of each deployment that is followed, by its URL."""
        known = await self._store.read(caller.tenant, deployments.all_of)
        return {each.url: each.message if each.problem else None for each in known}

    async def create(
        self, caller: Principal, wanted: Wanted, *, here: str | None = None, key: str | None = None
    ) -> View:
        """`here` is the address of the caller's request, and so one of this server's own."""
        columns, inbox_id = await self._columns(caller, wanted, here), new_id()

        def act(tx: Tx) -> str:
            return _append(tx, caller.actor, inbox_id, columns)

        request = {"inbox": asdict(wanted)}
        made = await self._store.write(caller.tenant, idempotency.once, caller.actor, key, request, act)
        return await self.get(caller, made)

    async def update(self, caller: Principal, inbox_id: str, wanted: Wanted, *, here: str | None = None) -> View:
        columns = await self._columns(caller, wanted, here)
        await self._store.write(caller.tenant, _change, caller.actor, inbox_id, columns)
        return await self.get(caller, inbox_id)

    async def remove(self, caller: Principal, inbox_id: str) -> View:
        """Removes only the view: its items stay."""
        removed = await self.get(caller, inbox_id)
        await self._store.write(caller.tenant, inboxes.remove, caller.actor, inbox_id)
        return removed

    def this_server(self, here: str | None = None) -> str | None:
        return self._deployments.this(here)

    async def _columns(self, caller: Principal, wanted: Wanted, here: str | None) -> View:
        caller.require(Scope.ITEMS_READ)
        graph_id, filter, name = wanted.graph_id.strip(), wanted.filter.strip(), _checked(wanted.name)
        if bool(graph_id) is bool(filter):
            raise Invalid("an inbox shows either a graph or a search", hint="enter an Assistant/Graph ID, or a filter")
        if graph_id:
            return await self._deployment(caller, graph_id, wanted.url.strip(), name, here)
        if wanted.url.strip():
            raise Invalid("a search covers all items of this server", hint="leave the deployment URL out")
        if not name:
            raise Invalid("a saved search needs a name")
        if not filter.isprintable():
            raise Invalid("a filter is one line of printable characters")
        filters.parse(filter)
        return {"name": name, "filter": filter, "graph_id": None, "url": None}

    async def _deployment(self, caller: Principal, graph_id: str, url: str, name: str, here: str | None) -> View:
        if url and not self._deployments.is_own(url, here):
            return await self._remote(caller, graph_id, url, name)
        own = origin(url) if url else self._deployments.this(here)
        try:
            assistant = await self._resolve(caller, graph_id)
        except (Invalid, NotFound):
            hint = "the name of a graph, as langgraph.json has it, or the id of an assistant"
            raise Invalid(f"graph or assistant {graph_id!r} not found on this server", hint=hint) from None
        by_name = graph_id == assistant.graph_id
        filter = filters.term("graph", graph_id) if by_name else filters.term("assistant", assistant.id)
        target = graph_id if by_name else assistant.id
        usual = assistant.graph_id if by_name or assistant.is_graphs_own else assistant.name
        return {"name": name or _cut(usual), "filter": filter, "graph_id": target, "url": own}

    async def _remote(self, caller: Principal, graph_id: str, url: str, name: str) -> View:
        """The items of a graph of another deployment, which an administrator has added."""
        known = await self._store.read(caller.tenant, deployments.all_of)
        deployment = next((each for each in known if _same_server(each.url, url)), None)
        if deployment is None:
            raise Invalid(
                f"{origin(url)} is not this server, and not one of the deployments that it follows",
                hint="an administrator adds it in Settings, with its key; see docs/deployments.md",
            )
        column = "assistant" if as_uuid(graph_id) else "graph"
        filter = f"{filters.term('deployment', deployment.id)} {filters.term(column, graph_id)}"
        return {"name": name or _cut(graph_id), "filter": filter, "graph_id": graph_id, "url": deployment.url}

    async def _stored(self, caller: Principal, name_or_id: str) -> Assistant:
        wanted = as_uuid(name_or_id) or own_id(name_or_id)
        assistant = await self._store.read(caller.tenant, assistants.get, wanted)
        if assistant is None:
            raise NotFound(f"assistant {name_or_id!r} not found")
        return assistant


def _same_server(url: str, other: str) -> bool:
    return parsed(url) == parsed(other) and urlsplit(url).path.strip("/") == urlsplit(other).path.strip("/")


def _checked(name: str) -> str:
    """The name, if it fits on one line."""
    stripped = name.strip()
    if len(stripped) > LONGEST_NAME or not stripped.isprintable():
        raise Invalid(f"the name of an inbox has at most {LONGEST_NAME} printable characters")
    return stripped


def _cut(name: str) -> str:
    return "".join(char for char in name if char.isprintable())[:LONGEST_NAME]


def _parsed(filter: str) -> Filter:
    """A filter that this release no longer supports matches nothing, instead of failing every page."""
    try:
        return filters.parse(filter)
    except Invalid:
        return filters.NOTHING


def _view(inbox: SavedInbox, waiting: Waiting, problems: Mapping[str, str | None]) -> View:
    named = {"id": inbox.id, "name": inbox.name, "filter": inbox.filter}
    counted = {"count": waiting.number, "at_least": waiting.at_least}
    return {**named, "graph_id": inbox.graph_id, "url": inbox.url, **_place(inbox, problems), **counted}


def _place(inbox: SavedInbox, problems: Mapping[str, str | None]) -> View:
    """Whether it is on this server, and the problem of its deployment: an empty list may mean that it is stopped."""
    remote = "deployment:" in inbox.filter and inbox.url is not None
    if not remote:
        return {"local": True, "problem": None}
    return {"local": False, "problem": problems.get(str(inbox.url), "the deployment was removed")}


def _require_inbox(tx: Tx, owner: str, inbox_id: str) -> SavedInbox:
    inbox = inboxes.get(tx, owner, inbox_id)
    if inbox is None:
        raise NotFound(f"inbox {inbox_id!r} not found")
    return inbox


def _append(tx: Tx, owner: str, inbox_id: str, columns: View) -> str:
    if len(inboxes.of_owner(tx, owner)) >= MOST:
        raise Conflict(f"you have {MOST} inboxes, the maximum", hint="remove one that you do not need")
    inboxes.append(tx, owner, inbox_id, **columns)
    return inbox_id


def _change(tx: Tx, owner: str, inbox_id: str, columns: View) -> None:
    _require_inbox(tx, owner, inbox_id)
    inboxes.change(tx, owner, inbox_id, **columns)
