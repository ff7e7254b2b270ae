"""The store API: items of the store for callers outside of graphs. Graphs see the same rows as their `BaseStore`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assent.errors import Invalid
from assent.identity.authorization import Authorizer
from assent.identity.model.access import Principal
from assent.identity.model.visibility import Visible
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.runs.memory.access import StoreAccess, require_writable
from assent.runs.memory.namespaces import Match, common_start, listed
from assent.threads.model.threads import Visibility
from assent.threads.rows.memory import items as memory
from assent.threads.rows.memory.items import LONGEST_MINUTES, Memory, MemorySection, Namespace, Near, Ownership, Put

if TYPE_CHECKING:
    from assent.runs.memory.index import VectorIndex

_USUAL = MemorySection()


class StoreItems:
    def __init__(
        self,
        store: Store,
        *,
        section: MemorySection = _USUAL,
        index: VectorIndex | None = None,
        authorizer: Authorizer | None = None,
        visibility: Visibility = Visibility.SHARED,
    ) -> None:
        """`visibility`: of new items."""
        self._store = store
        self._section = section
        self._index = index
        self._may = StoreAccess(authorizer)
        self._visibility = visibility

    async def put(
        self,
        caller: Principal,
        namespace: Sequence[str],
        key: str,
        value: Mapping[str, Any],
        *,
        index: bool | Sequence[str] | None = None,
        ttl: float | None = None,
    ) -> None:
        """Stores or replaces an item, for `ttl` minutes; None: forever."""
        asked: dict[str, Any] = {"namespace": tuple(namespace), "key": key, "value": value, "index": index, "ttl": ttl}
        visible, asked = await self._may(caller, "put", asked)
        require_writable(asked["namespace"])
        _require_ttl(asked["ttl"])
        entry = Put(asked["namespace"], asked["key"], asked["value"], asked["ttl"])
        if self._index is not None:
            entry = await self._index.with_vectors(entry, asked["index"])
        by = Ownership(caller.actor, self._visibility)
        await self._store.write(caller.tenant, memory.put, [entry], by, visible)

    @property
    def default_ttl(self) -> float | None:
        """In minutes, for an item whose caller sets none."""
        return self._section.default_ttl

    async def get(
        self, caller: Principal, namespace: Sequence[str], key: str, *, refresh_ttl: bool | None = None
    ) -> Memory | None:
        asked: dict[str, Any] = {"namespace": tuple(namespace), "key": key, "refresh_ttl": refresh_ttl}
        visible, asked = await self._may(caller, "get", asked)
        item = await self._store.read(caller.tenant, memory.get, asked["namespace"], asked["key"], visible)
        await self._refresh(caller, [] if item is None else [item], asked["refresh_ttl"])
        return item

    async def delete(self, caller: Principal, namespace: Sequence[str], key: str) -> None:
        """Deletes the item if there is one that the caller may see."""
        visible, asked = await self._may(caller, "delete", {"namespace": tuple(namespace), "key": key})
        entry = Put(asked["namespace"], asked["key"], None)
        await self._store.write(caller.tenant, memory.put, [entry], visible=visible)

    async def search(
        self,
        caller: Principal,
        prefix: Sequence[str],
        *,
        filter: Mapping[str, Any] | None = None,
        query: str | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[Memory]:
        """The items in and below the namespace: with a `query` the most similar first, otherwise the latest."""
        asked: dict[str, Any] = {"namespace": tuple(prefix), "filter": filter, "limit": limit, "offset": offset}
        visible, asked = await self._may(caller, "search", asked | {"query": query, "refresh_ttl": refresh_ttl})
        near = await self._index.near(asked["query"]) if self._index is not None and asked["query"] else None
        items = await self._store.read(caller.tenant, _search, asked, visible, near)
        await self._refresh(caller, items, asked["refresh_ttl"])
        return items

    async def namespaces(
        self,
        caller: Principal,
        *,
        prefix: Sequence[str] | None = None,
        suffix: Sequence[str] | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        asked: dict[str, Any] = {"namespace": _path(prefix), "suffix": _path(suffix), "max_depth": max_depth}
        visible, asked = await self._may(caller, "list_namespaces", asked | {"limit": limit, "offset": offset})
        matches = [Match(asked["namespace"] or ()), Match(asked["suffix"] or (), at_end=True)]
        present = await self._store.read(caller.tenant, memory.namespaces, common_start(matches), visible)
        return listed(present, matches, max_depth=asked["max_depth"], limit=asked["limit"], offset=asked["offset"])

    async def _refresh(self, caller: Principal, read: Sequence[Memory], wanted: bool | None) -> None:
        refreshes = self._section.refresh_on_read if wanted is None else wanted
        brief = [item for item in read if item.ttl_minutes is not None]
        if refreshes and brief:
            await self._store.write(caller.tenant, memory.refresh, brief)


def _search(tx: Tx, asked: Mapping[str, Any], visible: Visible | None, near: Near | None) -> list[Memory]:
    place = (tx, asked["namespace"] or (), asked["filter"] or {})
    page: dict[str, Any] = {"limit": asked["limit"], "offset": asked["offset"], "visible": visible}
    if near is not None:
        return memory.nearest(*place, near, **page, limited=True)
    memory.require_page(*place, **page)
    return memory.search(*place, **page)


def _path(namespace: Sequence[str] | None) -> Namespace | None:
    return None if namespace is None else tuple(namespace)


def _require_ttl(minutes: Any) -> None:
    if minutes is not None and not 0 <= minutes <= LONGEST_MINUTES:
        raise Invalid(f"ttl must be between 0 and {LONGEST_MINUTES} minutes")
