"""Threads as rows: found along an index, thinned out, copied, outlived; on every store."""

import random
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import bindparam, event, select, text

from assent.kernel.store.tables import thread_values
from assent.kernel.store.tables import threads as table
from assent.kernel.store.transaction import Tx
from assent.threads.model.threads import Lifetime, Query, SortBy, Thinning, Thread, ThreadStatus
from assent.threads.rows import thread_search, threads
from assent.threads.rows.state import checkpoints, thread_storage
from assent.threads.rows.state.checkpoints import Stored, StoredWrite
from tests.contract.stores import AnyStore, both_databases, outside

TENANT = "acme"
MANY = 3000
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
WALKS: list[tuple[Query, str]] = [
    (Query(), "created_at"),
    (Query(sort_by=SortBy.UPDATED_AT), "updated_at"),
    (Query(status=ThreadStatus.INTERRUPTED), "status_created_at"),
    (Query(status=ThreadStatus.INTERRUPTED, descending=False), "status_created_at"),
    (Query(status=ThreadStatus.INTERRUPTED, metadata={"graph_id": "g1"}), "graph_id_status_created_at"),
    (Query(status=ThreadStatus.INTERRUPTED, metadata={"assistant_id": "a1"}), "assistant_id_status_created_at"),
]


EXPLAIN: dict[str, Any] = {
    "sqlite": lambda connection, cursor, statement, params, *_: (f"EXPLAIN QUERY PLAN {statement}", params),
    "postgresql": lambda connection, cursor, statement, params, *_: (f"EXPLAIN {statement}", params),
}


def fill(tx: Tx, count: int) -> None:
    dice = random.Random(7)
    statuses = list(ThreadStatus)
    tx.insert_all(
        table,
        [
            {
                "thread_id": str(uuid.UUID(int=number)),
                "status": dice.choice(statuses),
                "graph_id": f"g{number % 5}",
                "assistant_id": f"a{number % 5}",
                "metadata": {"graph_id": f"g{number % 5}", "assistant_id": f"a{number % 5}"},
                "config": {},
                "shown": False,
                "created_at": EPOCH + timedelta(seconds=number),
                "updated_at": EPOCH + timedelta(seconds=dice.random()),
            }
            for number in range(count)
        ],
    )


def fill_values(tx: Tx, count: int) -> None:
    ids = [str(uuid.UUID(int=number)) for number in range(count)]
    texts = list(enumerate(["[1", ",2", "]"]))
    tx.insert_all(thread_values, [{"thread_id": id, "n": n, "text": text} for id in ids for n, text in texts])


def plan(url: str, query: Query) -> str:
    """How the database says it will find a page, in its own words."""
    engine = outside(url)
    dialect = engine.dialect.name
    statement = thread_search.statement(query, dialect)
    with engine.connect() as connection:
        if dialect == "postgresql":  # autovacuum does that; nobody does it for SQLite
            connection.execute(text("ANALYZE"))
        event.listen(engine, "before_cursor_execute", EXPLAIN[dialect], retval=True)
        result = connection.execute(statement, {"tenant": TENANT})
        return "\n".join(str(row[-1]) for row in result.cursor.fetchall())


@both_databases
async def test_thread_searches_use_an_index(store: AnyStore, database: str) -> None:
    await store.write(TENANT, fill, MANY)
    await store.write(TENANT, fill_values, MANY)
    for query, index in WALKS:
        query_plan = plan(database, query)
        assert f"ix_threads_tenant_id_{index}" in query_plan, (query, query_plan)
        assert "TEMP B-TREE" not in query_plan, (query, query_plan)
        assert "Sort" not in query_plan, (query, query_plan)
        assert "Seq Scan" not in query_plan, (query, query_plan)


async def add(store: AnyStore, metadata: dict[str, Any] | None = None, *, tenant: str = TENANT) -> str:
    thread_id = str(uuid.uuid4())
    assert await store.write(tenant, lambda tx: threads.insert(tx, thread_id, metadata or {}))
    return thread_id


async def get(store: AnyStore, thread_id: str) -> Thread:
    thread_row = await store.read(TENANT, threads.get, thread_id)
    assert thread_row is not None
    return thread_row


def ask(tx: Tx, thread_id: str, question: str) -> None:
    threads.set_state(
        tx,
        thread_id,
        status=ThreadStatus.INTERRUPTED,
        values=None,
        interrupts={"task": [{"id": question, "value": "?"}]},
        error=None,
        next=["ask"],
    )


async def test_later_question_stays_unseen(store: AnyStore) -> None:
    thread_id = await add(store)
    await store.write(TENANT, ask, thread_id, "first")
    first = await get(store, thread_id)
    await store.write(TENANT, ask, thread_id, "second")

    await store.write(TENANT, threads.mark_shown, thread_id, as_of=first.state_updated_at)
    second = await get(store, thread_id)
    assert (second.pending[0]["id"], second.shown) == ("second", False)

    await store.write(TENANT, threads.mark_shown, thread_id, as_of=second.state_updated_at)
    assert (await get(store, thread_id)).shown


async def test_time_to_live_ends_by_the_databases_clock(store: AnyStore) -> None:
    kept, short, busy, long = [await add(store) for _ in range(4)]
    for thread_id, minutes in ((short, 5.0), (busy, 5.0), (long, 60.0)):
        await store.write(TENANT, threads.set_lifetime, thread_id, Lifetime(minutes, Thinning.KEEP_LATEST))
    await store.write(TENANT, threads.set_status, busy, ThreadStatus.BUSY)
    assert await store.read(None, threads.expired, 10) == []

    store.clock_offset = timedelta(minutes=6)
    assert await store.read(None, threads.expired, 10) == [(TENANT, short)]
    await store.write(TENANT, threads.set_lifetime, short, None)
    assert await store.read(None, threads.expired, 10) == []
    assert (await get(store, long)).ttl_strategy == Thinning.KEEP_LATEST
    assert (await get(store, kept)).expires_at is None


async def search(store: AnyStore, query: Query, *, tenant: str = TENANT) -> list[str]:
    matching_threads, _ = await store.read(tenant, thread_search.search, query)
    return [thread.id for thread in matching_threads]


async def test_a_search_stays_inside_its_tenant(store: AnyStore) -> None:
    mine, theirs = await add(store, {"k": 1}), await add(store, {"k": 1}, tenant="other")
    assert await search(store, Query(metadata={"k": 1})) == [mine]
    assert await search(store, Query(ids=[theirs])) == []
    assert await store.read("other", thread_search.count, Query()) == 1


async def test_values_that_are_null_do_not_break_a_search_by_values(store: AnyStore) -> None:
    await add(store)
    done = await add(store)
    state: dict[str, Any] = {"status": ThreadStatus.IDLE, "interrupts": {}, "error": None, "next": []}
    await store.write(TENANT, threads.set_state, done, values={"topic": {"name": "x"}, "tags": [1, 2]}, **state)
    assert await search(store, Query(values={"topic": {"name": "x"}, "tags": [2]})) == [done]
    assert await store.read(TENANT, thread_search.count, Query(values={"topic": {"name": "y"}})) == 0


@pytest.mark.parametrize("order", list(SortBy))
@pytest.mark.parametrize("descending", [True, False])
async def test_pages_are_complete_in_any_sort_order(store: AnyStore, order: SortBy, descending: bool) -> None:
    await store.write(TENANT, fill, 25)
    seen: list[str] = []
    for offset in range(0, 30, 10):
        query = Query(sort_by=order, descending=descending, offset=offset)
        page, more = await store.read(TENANT, thread_search.search, query)
        assert more == (offset < 20)
        seen += [thread.id for thread in page]
    assert len(seen) == len(set(seen)) == 25
    if order in (SortBy.CREATED_AT, SortBy.THREAD_ID):
        assert seen == sorted(seen, reverse=descending)


def put(tx: Tx, thread_id: str, ns: str, number: int, metadata: str = "{}") -> None:
    checkpoint_id, parent = (f"1f000000-0000-6000-8000-{one:012}" for one in (number, number - 1))
    checkpoints.put(tx, thread_id, Stored(checkpoint_id, ns, parent, "msgpack", b"12345", metadata), None)
    write = StoredWrite("task", 0, "", "channel", "msgpack", b"123")
    checkpoints.put_writes(tx, thread_id, ns, checkpoint_id, [write], None, replace=False)


def past(tx: Tx, thread_id: str) -> list[tuple[str, int]]:
    rows = checkpoints.history(tx, thread_id, None, before=None, limit=None)
    return [(row.ns, int(row.checkpoint_id[-4:])) for row in rows]


async def with_past(store: AnyStore, places: Sequence[tuple[str, int]], metadata: str = "{}") -> str:
    thread_id = await add(store)
    for ns, number in places:
        await store.write(TENANT, put, thread_id, ns, number, metadata)
    return thread_id


async def test_only_the_latest_state_of_each_namespace_is_kept(store: AnyStore) -> None:
    places = [("", 1), ("", 2), ("child:1", 3), ("child:1", 4), ("", 5)]
    pruned, other = await with_past(store, places), await with_past(store, places)
    assert await store.write(TENANT, thread_storage.keep_latest, pruned)
    assert sorted(await store.read(TENANT, past, pruned)) == [("", 5), ("child:1", 4)]
    assert len(await store.read(TENANT, past, other)) == 5

    sizes = await store.read(TENANT, thread_storage.sizes, pruned)
    assert sizes["checkpoint_writes"] == (2, 6)
    head = await store.read(TENANT, checkpoints.latest, pruned, "")
    assert head is not None
    assert head.parent_id is None


async def test_history_needed_by_the_latest_state_is_not_pruned(store: AnyStore) -> None:
    thread_id = await with_past(store, [("", 1), ("", 2)], '{"counters_since_delta_snapshot": {"log": [1, 1]}}')
    assert not await store.write(TENANT, thread_storage.keep_latest, thread_id)
    assert len(await store.read(TENANT, past, thread_id)) == 2


async def test_copy_has_its_own_checkpoints(store: AnyStore) -> None:
    source = await with_past(store, [("", 1), ("child:1", 2)])
    copied = await add(store)
    await store.write(TENANT, thread_storage.copy_checkpoints, source, copied)
    sizes = [await store.read(TENANT, thread_storage.sizes, thread_id) for thread_id in (source, copied)]
    assert sizes[0]["checkpoints"] == sizes[1]["checkpoints"] == (2, 14)

    await store.write(TENANT, threads.remove, source)
    assert len(await store.read(TENANT, past, copied)) == 2
    assert await store.read(TENANT, past, source) == []


@pytest.mark.parametrize("grown", [{"messages": ["é" * 900] * 60, "x": 1}, {"x": 1, "messages": ["b"] * 9000}])
async def test_large_values_are_read_searched_and_replaced_whole(store: AnyStore, grown: dict[str, Any]) -> None:
    thread_id = await add(store)
    longer = {**grown, "messages": [*grown["messages"], "new"]}
    for values in ({"x": 1}, grown, longer, {**longer, "messages": longer["messages"][7:]}, {"x": 2}, grown, [grown]):
        await store.write(TENANT, put_values, thread_id, values)
        assert (await get(store, thread_id)).values == values
        if isinstance(values, dict):
            query = Query(values={"x": values["x"]})
            page, _ = await store.read(TENANT, thread_search.search_for_answer, query)
            assert ([thread.values for thread in page], await store.read(TENANT, thread_search.count, query)) == (
                [values],
                1,
            )
    assert await store.write(TENANT, threads.remove, thread_id)
    assert await store.read(TENANT, pieces, thread_id) == {}


def put_values(tx: Tx, thread_id: str, values: Any) -> None:
    facts: dict[str, Any] = {"interrupts": {}, "error": None, "next": []}
    threads.set_state(tx, thread_id, status=ThreadStatus.IDLE, values=values, **facts)


def pieces(tx: Tx, thread_id: str) -> dict[int, str]:
    mine = (thread_values.c.tenant_id == bindparam("tenant"), thread_values.c.thread_id == thread_id)
    rows = tx.all(select(thread_values.c.n, thread_values.c.text).where(*mine))
    return {row.n: row.text for row in rows}


async def test_only_the_changed_pieces_of_large_values_are_written(store: AnyStore) -> None:
    thread_id, said = await add(store), [f"{n}" * 300 for n in range(200)]
    await store.write(TENANT, put_values, thread_id, {"count": 9, "messages": said})
    before = await store.read(TENANT, pieces, thread_id)
    await store.write(TENANT, put_values, thread_id, {"count": 10, "messages": [*said, "more"]})
    after = await store.read(TENANT, pieces, thread_id)
    assert len(before) > 20
    assert len(after.items() - before.items()) == 2  # the count, and the end of the messages
