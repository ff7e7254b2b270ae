"""Long-term memory through LangGraph's own interface: kept, found, listed, outlived, apart by tenant."""

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from assent.errors import Invalid
from assent.kernel.canonical import NotJson
from assent.runs.checkpoints.saver import Scope
from assent.runs.memory import store as engine
from assent.runs.memory.store import MemoryStore
from assent.threads.rows.memory import items as memory
from assent.threads.rows.memory.items import MemorySection
from tests.contract.stores import AnyStore, both_databases, opened

at_every_turn = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
LABELS = st.sampled_from(["users", "user", "u1", "u", "docs", "!", "~", "ä", "Z", "a b", "*x"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PATTERNS = st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple)
VALUE: dict[str, Any] = {
    "none": None,
    "yes": True,
    "int": 598,
    "float": 598.0,
    "large": 1e23,
    "exact": 2**64 + 1,
    "text": "grün \x00 \u202e",
    "list": [1, [2.5, {"deep": []}]],
    "b": 1,
    "a": 2,
}


@pytest.fixture
async def kept(store: AnyStore) -> MemoryStore:
    return MemoryStore(store, Scope("acme"))


@pytest.fixture
async def neighbour(store: AnyStore) -> MemoryStore:
    return MemoryStore(store, Scope("other"))


async def keys(kept: MemoryStore, *prefix: str, **search: Any) -> list[str]:
    return [memory_item.key for memory_item in await kept.asearch(prefix, **search)]


async def test_stored_value_is_returned_unchanged(kept: MemoryStore) -> None:
    await kept.aput(("users", "u1"), "profile", VALUE)
    stored_value = await kept.aget(("users", "u1"), "profile")
    assert isinstance(stored_value, Item)
    assert (stored_value.namespace, stored_value.key) == (("users", "u1"), "profile")
    assert repr(stored_value.value) == repr(VALUE)  # equal is not enough: 598 and 598.0 are
    assert stored_value.created_at == stored_value.updated_at
    assert stored_value.created_at.tzinfo is not None
    assert await kept.aget(("users", "u1"), "nothing") is None
    assert await kept.aget(("users",), "profile") is None


async def test_change_keeps_the_creation_time(kept: MemoryStore) -> None:
    await kept.aput(("users",), "k", {"v": 1})
    made = await kept.aget(("users",), "k")
    await kept.aput(("users",), "k", {"v": 2})
    changed = await kept.aget(("users",), "k")
    assert made is not None
    assert changed is not None
    assert (changed.value, changed.created_at) == ({"v": 2}, made.created_at)
    assert changed.updated_at > made.updated_at
    await kept.adelete(("users",), "k")
    await kept.adelete(("users",), "k")
    assert await kept.aget(("users",), "k") is None


async def test_search_covers_nested_namespaces_latest_first(kept: MemoryStore) -> None:
    for number, namespace in enumerate([("user",), ("users",), ("users", "u1"), ("users2",), ("users", "u1", "x")]):
        await kept.aput(namespace, str(number), {"even": number % 2 == 0})
    assert await keys(kept, "users") == ["4", "2", "1"]
    assert await keys(kept, "users", "u1") == ["4", "2"]
    assert await keys(kept, "use") == []
    assert await keys(kept) == ["4", "3", "2", "1", "0"]
    assert await keys(kept, filter={"even": True}, limit=2) == ["4", "2"]
    assert await keys(kept, filter={"even": True}, limit=2, offset=2) == ["0"]
    await kept.aput(("user",), "0", {})
    assert (await keys(kept))[0] == "0"
    assert (await kept.asearch(("users",)))[0].score is None


async def test_reads_of_a_batch_see_what_was_there_before_it(kept: MemoryStore) -> None:
    ops: list[Op] = [
        PutOp(("n",), "k", {"v": 1}),
        GetOp(("n",), "k"),
        PutOp(("n",), "k", {"v": 2}),
        PutOp(("n",), "gone", {}),
        PutOp(("n",), "gone", None),
        SearchOp(("n",)),
        ListNamespacesOp(),
    ]
    assert await kept.abatch(ops) == [None, None, None, None, None, [], []]
    results = await kept.abatch([GetOp(("n",), "k"), GetOp(("n",), "gone"), ListNamespacesOp()])
    assert results[0] is not None
    assert [getattr(results[0], "value", None), *results[1:]] == [{"v": 2}, None, [("n",)]]
    assert await kept.abatch([]) == []


@at_every_turn
@given(
    present=st.lists(NAMESPACES, max_size=8),
    prefix=st.none() | PATTERNS,
    suffix=st.none() | PATTERNS,
    depth=st.none() | st.integers(1, 3),
    page=st.tuples(st.integers(0, 3), st.integers(1, 4)),
)
async def test_namespaces_are_listed_as_the_reference_lists_them(
    store: AnyStore, present: Any, prefix: Any, suffix: Any, depth: Any, page: Any
) -> None:
    kept, reference = MemoryStore(store, Scope(f"tenant-{hash(tuple(present))}")), InMemoryStore()
    for one in present:
        await kept.aput(one, "k", {})
        reference.put(one, "k", {})
    wanted = {"prefix": prefix, "suffix": suffix, "max_depth": depth, "offset": page[0], "limit": page[1]}
    assert await kept.alist_namespaces(**wanted) == reference.list_namespaces(**wanted)


async def test_namespace_pattern_with_a_leading_wildcard_matches(kept: MemoryStore) -> None:
    for namespace in [("a", "x", "v1"), ("b", "x", "v2"), ("a", "y", "v1")]:
        await kept.aput(namespace, "k", {})
    conditions = (MatchCondition("prefix", ("*", "x")), MatchCondition("suffix", ("v1",)))
    assert await kept.abatch([ListNamespacesOp(conditions)]) == [[("a", "x", "v1")]]


@pytest.mark.parametrize("namespace", [(), ("",), ("a.b",), ("a", ""), ("x\x00",), ("langgraph",), (1,)])
async def test_namespaces_are_refused_as_the_reference_refuses_them(kept: MemoryStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        await kept.aput(namespace, "k", {})
    with pytest.raises(InvalidNamespaceError):
        InMemoryStore().put(namespace, "k", {})
    assert await kept.alist_namespaces() == []


@pytest.mark.parametrize("value", [float("nan"), "\ud800", b"x", {1, 2}, object(), {1: 2}])
async def test_value_outside_json_is_refused(kept: MemoryStore, value: Any) -> None:
    with pytest.raises(NotJson, match="inner"):
        await kept.aput(("n",), "k", {"inner": value})
    assert await keys(kept) == []


async def test_invalid_arguments_are_refused(kept: MemoryStore) -> None:
    with pytest.raises(ValueError, match="NUL"):
        await kept.aput(("n",), "a\x00b", {})
    with pytest.raises(ValueError, match="ttl"):
        await kept.aput(("n",), "k", {}, ttl=-1)
    with pytest.raises(ValueError, match="negative"):
        await kept.asearch(("n",), limit=-1)
    with pytest.raises(Invalid, match=r"\$like"):
        await kept.asearch(("n",), filter={"a": {"$like": "x"}})


async def test_reading_extends_the_time_to_live(store: AnyStore, kept: MemoryStore) -> None:
    await kept.aput(("n",), "brief", {"v": 1}, ttl=10)
    await kept.aput(("n",), "lasting", {})
    store.clock_offset = timedelta(minutes=9)
    assert await kept.aget(("n",), "brief") is not None
    store.clock_offset = timedelta(minutes=18)
    assert await kept.asearch(("n",), filter={"v": 1}) != []
    store.clock_offset = timedelta(minutes=27)
    assert await kept.aget(("n",), "brief", refresh_ttl=False) is not None
    store.clock_offset = timedelta(minutes=29)
    assert await kept.aget(("n",), "brief") is None
    assert await keys(kept) == ["lasting"]
    assert await store.write(None, memory.delete_expired) == 1


async def test_value_stored_after_expiry_is_new(store: AnyStore, kept: MemoryStore) -> None:
    await kept.aput(("n",), "k", {}, ttl=1)
    store.clock_offset = timedelta(minutes=2)
    assert await kept.alist_namespaces() == []
    await kept.aput(("n",), "k", {})
    stored_value = await kept.aget(("n",), "k")
    assert stored_value is not None
    assert stored_value.created_at == stored_value.updated_at
    store.clock_offset = timedelta(days=900)
    assert await kept.aget(("n",), "k") is not None


async def test_time_to_live_comes_from_the_project(store: AnyStore) -> None:
    kept = MemoryStore(store, Scope("acme"), MemorySection(default_ttl=10, refresh_on_read=False))
    await kept.aput(("n",), "usual", {})
    await kept.aput(("n",), "longer", {}, ttl=60)
    store.clock_offset = timedelta(minutes=9)
    assert sorted(await keys(kept)) == ["longer", "usual"]
    store.clock_offset = timedelta(minutes=11)
    assert await keys(kept) == ["longer"]


async def test_query_without_an_index_uses_only_the_filter(kept: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    engine._note_query.cache_clear()
    await kept.aput(("n",), "k", {"a": 1}, index=["a"])
    await kept.aput(("n",), "l", {"a": 2})
    with caplog.at_level(logging.WARNING, engine.__name__):
        assert await keys(kept, "n", query="anything", filter={"a": 1}) == ["k"]
        assert await keys(kept, "n", query="anything else") == ["l", "k"]
    assert len(caplog.records) == 1


@pytest.mark.promise("P10")
async def test_each_tenant_has_its_own_memory(kept: MemoryStore, neighbour: MemoryStore) -> None:
    await kept.aput(("users",), "k", {"mine": True})
    assert await neighbour.aget(("users",), "k") is None
    assert (await keys(neighbour), await neighbour.alist_namespaces()) == ([], [])
    await neighbour.aput(("users",), "k", {"theirs": True})
    await neighbour.adelete(("users",), "k")
    stored_value = await kept.aget(("users",), "k")
    assert stored_value is not None
    assert stored_value.value == {"mine": True}


async def test_synchronous_call_works_in_a_thread_and_is_refused_on_the_loop(kept: MemoryStore) -> None:
    def work() -> dict[str, Any]:
        kept.put(("n",), "k", {"from": "a thread"})
        stored_value = kept.get(("n",), "k")
        assert stored_value is not None
        return stored_value.value

    assert await asyncio.to_thread(work) == {"from": "a thread"}
    assert await asyncio.to_thread(lambda: asyncio.run(keys(kept))) == ["k"]
    with pytest.raises(asyncio.InvalidStateError, match="await"):
        kept.get(("n",), "k")


@both_databases
async def test_memory_survives_a_restart(database: str, store: AnyStore, kept: MemoryStore) -> None:
    await kept.aput(("n",), "k", VALUE)
    await store.close()
    async with opened(database) as again:
        stored_value = await MemoryStore(again, Scope("acme")).aget(("n",), "k")
        assert stored_value is not None
        assert repr(stored_value.value) == repr(VALUE)


async def test_concurrent_writes_are_all_kept(kept: MemoryStore) -> None:
    await asyncio.gather(*(kept.aput(("n", str(number % 5)), str(number), {}) for number in range(60)))
    assert sorted(map(int, await keys(kept, "n", limit=100))) == list(range(60))
