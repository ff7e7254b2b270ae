"""A write is a function over one transaction: all of it or nothing, run again where that is safe, told only after."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import bindparam, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from assent.errors import Conflict, Unavailable
from assent.kernel.store.drivers.postgres import PostgresStore
from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.tables import TENANT as TENANTS
from assent.kernel.store.transaction import Tx
from tests.contract.stores import AnyStore, all_at_once, both_databases, only_postgres, only_sqlite, opened, outside
from tests.contract.tables import add, compare_and_set, notes, point, values

TENANT = "acme"
CONTROL_STATEMENTS = ["COMMIT", "  rollback", "END", "BEGIN", "SAVEPOINT mine", "RELEASE job", "/* x */ COMMIT"]


class Counted:
    """A function that knows how often it was run."""

    def __init__(self, function: Callable[[Tx], Any]) -> None:
        self.function = function
        self.runs = 0

    def __call__(self, tx: Tx) -> Any:
        self.runs += 1
        return self.function(tx)


def adding(name: str) -> Counted:
    return Counted(lambda tx: add(tx, name))


async def test_write_returns_its_result_and_is_visible_to_reads(store: AnyStore) -> None:
    assert await store.write(TENANT, add, "one", value=1) == "one"
    assert await store.read(TENANT, values) == {"one": 1}


@both_databases
async def test_written_rows_are_there_after_reopening(database: str, store: AnyStore) -> None:
    await store.write(TENANT, add, "one")
    await store.close()
    async with opened(database) as again:
        assert await again.read(TENANT, values) == {"one": 0}


_NOTES = select(notes).where(notes.c.tenant_id == TENANTS, notes.c.slug == bindparam("slug"))
_ANY_OF = select(notes.c.note_id).where(
    notes.c.tenant_id == TENANTS, notes.c.slug.in_(bindparam("slugs", expanding=True))
)
_REWRITE = (
    update(notes)
    .where(notes.c.tenant_id == TENANTS, notes.c.slug == bindparam("which"))
    .values(body=bindparam("text"), note_id=notes.c.note_id + bindparam("by", value=0))
)


async def test_repeated_statement_gives_the_same_rows_as_the_first_time(store: AnyStore) -> None:
    """On SQLite, further executions go past SQLAlchemy."""
    at, body = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), {"long": 2**70, "list": [1.0, None]}

    def repeat(tx: Tx) -> None:
        tx.insert(notes, note_id=1, slug="a", at=at, body=body)
        for _ in range(4):
            [row] = tx.all(_NOTES, slug="a")
            assert (row.note_id, row.slug, row.at, row.body, tuple(row)) == (
                1,
                "a",
                at,
                body,
                (TENANT, 1, "a", at, body),
            )
            assert tx.first(_NOTES, slug="b") is None
            assert [row.note_id for row in tx.all(_ANY_OF, slugs=["a", "b"])] == [1]
            assert tx.all(_ANY_OF, slugs=[]) == []

    await store.write(TENANT, repeat)
    assert await store.read("other", lambda tx: tx.all(_NOTES, slug="a")) == []


async def test_repeated_change_takes_each_executions_values(store: AnyStore) -> None:
    def repeat(tx: Tx) -> list[Any]:
        tx.insert(notes, note_id=1, slug="a")
        for number in range(3):
            assert tx.change(_REWRITE, which="a", text={"n": number}) == 1
        assert tx.change(_REWRITE, which="b", text=None) == 0
        assert tx.change(_REWRITE, which="a", text=None, by=5) == 1, "a default gives way to a value"
        return [(row.note_id, row.body) for row in tx.all(_NOTES, slug="a")]

    assert await store.write(TENANT, repeat) == [(6, None)]


async def test_call_on_a_closed_store_raises(store: AnyStore) -> None:
    await store.close()
    with pytest.raises(Unavailable, match="closed"):
        await store.write(TENANT, add, "one")
    with pytest.raises(Unavailable, match="closed"):
        await store.read(TENANT, values)


async def test_a_store_opens_again_after_closing(store: AnyStore) -> None:
    await store.close()
    await store.close()
    await store.open()
    assert await store.write(None, lambda tx: 1) == 1


@pytest.mark.parametrize("error", [Conflict("no"), ValueError("no"), KeyError("no"), asyncio.CancelledError("no")])
async def test_error_of_a_function_reaches_its_caller_and_is_rolled_back(store: AnyStore, error: BaseException) -> None:
    def fail(tx: Tx) -> None:
        add(tx, "half")
        raise error

    with pytest.raises(type(error), match="no"):
        await store.write(TENANT, fail)
    assert await store.read(TENANT, values) == {}


async def test_stop_iteration_of_a_function_blocks_no_other_write(store: AnyStore) -> None:
    """A future refuses StopIteration, and a loop that stops there would leave every neighbour waiting for ever."""
    outcomes = await asyncio.wait_for(
        all_at_once(store, TENANT, adding("a"), lambda tx: next(iter(())), adding("b")), timeout=10
    )
    assert [outcomes[0], type(outcomes[1]), outcomes[2]] == ["a", RuntimeError, "b"]


async def test_failing_function_of_a_group_is_rolled_back_alone(store: AnyStore) -> None:
    def fail(tx: Tx) -> None:
        add(tx, "half")
        raise Conflict("refused")

    before, after = adding("before"), adding("after")
    outcomes = await all_at_once(store, TENANT, before, fail, after)
    assert [outcomes[0], type(outcomes[1]), outcomes[2]] == ["before", Conflict, "after"]
    assert await store.read(TENANT, values) == {"before": 0, "after": 0}
    assert before.runs == after.runs == 1


async def test_bad_statement_rolls_back_its_own_function_only(store: AnyStore) -> None:
    def twice(tx: Tx) -> None:
        add(tx, "same")
        add(tx, "same")

    outcomes = await all_at_once(store, TENANT, adding("before"), twice, adding("after"))
    assert [outcomes[0], type(outcomes[1]), outcomes[2]] == ["before", IntegrityError, "after"]
    assert await store.read(TENANT, values) == {"before": 0, "after": 0}


async def test_failure_at_commit_fails_only_the_function_that_caused_it(store: AnyStore) -> None:
    """The reference to nowhere is found by COMMIT itself, after every function of the group had gone well."""
    before, guilty, after = adding("before"), Counted(lambda tx: point(tx, "p", "nowhere")), adding("after")
    outcomes = await all_at_once(store, TENANT, before, guilty, after)
    assert [outcomes[0], outcomes[2]] == ["before", "after"]
    assert isinstance(outcomes[1], IntegrityError)
    assert await store.read(TENANT, values) == {"before": 0, "after": 0}
    runs = 1 if isinstance(store, PostgresStore) else 2  # on SQLite the group was run again, each alone
    assert [before.runs, guilty.runs, after.runs] == [runs, runs, runs]


async def test_control_a_valid_reference_commits(store: AnyStore) -> None:
    def both(tx: Tx) -> None:
        point(tx, "p", "later")
        add(tx, "later")

    await store.write(TENANT, both)
    assert await store.read(TENANT, values) == {"later": 0}


@pytest.mark.parametrize("statement", CONTROL_STATEMENTS)
async def test_a_function_cannot_end_its_transaction(store: AnyStore, statement: str) -> None:
    """On SQLite it would commit its neighbours' work as well, which is then run a second time."""

    def meddle(tx: Tx) -> None:
        add(tx, "half")
        tx.sql(statement)

    before, after = adding("before"), adding("after")
    outcomes = await all_at_once(store, TENANT, before, meddle, after)
    assert isinstance(outcomes[1], RuntimeError)
    assert "must not" in str(outcomes[1])
    assert await store.read(TENANT, values) == {"before": 0, "after": 0}
    assert before.runs == after.runs == 1


@pytest.mark.parametrize("way", ["commit", "rollback"])
async def test_function_cannot_end_its_transaction_by_the_driver_connection(store: AnyStore, way: str) -> None:
    def meddle(tx: Tx) -> None:
        add(tx, "half")
        getattr(tx._connection, way)()

    outcomes = await all_at_once(store, TENANT, adding("before"), meddle, adding("after"))
    assert isinstance(outcomes[1], RuntimeError)
    assert await store.read(TENANT, values) == {"before": 0, "after": 0}


@pytest.mark.parametrize("way", ["commit", "rollback"])
async def test_refused_end_of_a_transaction_leaves_nothing_for_the_next_one(store: AnyStore, way: str) -> None:
    """The next transaction gets the same connection."""

    def meddle(tx: Tx) -> None:
        add(tx, "half")
        getattr(tx._connection, way)()

    for kind in (store.write, store.read):
        with pytest.raises((RuntimeError, DBAPIError)):
            await kind(TENANT, meddle)
        await store.write(TENANT, add, kind.__name__)
    assert await store.read(TENANT, values) == {"write": 0, "read": 0}


async def test_write_in_a_read_is_refused(store: AnyStore) -> None:
    with pytest.raises(DBAPIError, match=r"(?i)read-?only"):
        await store.read(TENANT, add, "sneaked in")
    assert await store.read(TENANT, values) == {}
    await store.write(TENANT, add, "the control")
    assert await store.read(TENANT, values) == {"the control": 0}


@both_databases
async def test_read_sees_one_snapshot(database: str, store: AnyStore) -> None:
    await store.write(TENANT, add, "x", value=1)
    elsewhere = outside(database)

    def look_twice(tx: Tx) -> tuple[dict[str, int], dict[str, int]]:
        first = values(tx)
        with elsewhere.connect() as connection:
            connection.execute(text("UPDATE counters SET value = 2"))
        return first, values(tx)

    assert await store.read(TENANT, look_twice) == ({"x": 1}, {"x": 1})
    assert await store.read(TENANT, values) == {"x": 2}


async def test_concurrent_compare_and_set_has_one_winner(store: AnyStore) -> None:
    await store.write(TENANT, add, "x", value=0)
    tries = [lambda tx, wanted=wanted: compare_and_set(tx, "x", 0, wanted) for wanted in range(1, 65)]
    outcomes = await all_at_once(store, TENANT, *tries)
    assert sorted(outcomes) == [False] * 63 + [True]
    assert await store.read(TENANT, values) == {"x": outcomes.index(True) + 1}


async def test_control_check_and_change_in_two_steps_has_several_winners(store: AnyStore) -> None:
    """The control: with the check made apart from the change, all of them believe that they won."""
    await store.write(TENANT, add, "x", value=0)
    seen = await asyncio.gather(*(store.read(TENANT, values) for _ in range(8)))
    assert [found["x"] for found in seen] == [0] * 8


async def test_concurrent_inserts_of_one_key_have_one_winner(store: AnyStore) -> None:
    def take(tx: Tx, note_id: int) -> bool:
        return tx.insert_new(notes, note_id=note_id, slug="same")

    outcomes = await asyncio.gather(*(store.write(TENANT, take, number) for number in range(40)))
    assert sorted(outcomes) == [False] * 39 + [True]
    assert await store.write("another tenant", take, 1)


async def test_insert_of_an_existing_key_leaves_the_transaction_usable(store: AnyStore) -> None:
    def take_then_add(tx: Tx) -> bool:
        taken = tx.insert_new(notes, note_id=1, slug="same")
        add(tx, "after")
        return taken

    await store.write(TENANT, lambda tx: tx.insert(notes, note_id=1, slug="same"))
    assert await store.write(TENANT, take_then_add) is False
    assert await store.read(TENANT, values) == {"after": 0}


async def test_control_plain_insert_of_an_existing_key_raises(store: AnyStore) -> None:
    """The control of the two above: the key is unique, and only `insert_new` makes that an answer."""
    await store.write(TENANT, add, "x")
    with pytest.raises(IntegrityError):
        await store.write(TENANT, add, "x")


async def test_cancelled_caller_does_not_affect_other_writes(store: AnyStore) -> None:
    impatient = asyncio.create_task(store.write(TENANT, add, "impatient"))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.gather(*(store.write(TENANT, add, f"n{number}") for number in range(20)))
    with pytest.raises(asyncio.CancelledError):
        await impatient
    stored_values = await store.read(TENANT, values)
    assert {f"n{number}" for number in range(20)} <= stored_values.keys()


@only_postgres
@pytest.mark.parametrize("state", ["40001", "40P01"])
async def test_serialization_failure_of_postgres_is_retried(store: AnyStore, state: str) -> None:
    def complain_once(tx: Tx) -> None:
        runs.append(1)
        add(tx, "x")
        if len(runs) == 1:
            tx.sql(f"DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '{state}'; END $$")

    runs: list[int] = []
    await store.write(TENANT, complain_once)
    assert len(runs) == 2
    assert await store.read(TENANT, values) == {"x": 0}


@only_sqlite
async def test_rollback_by_sqlite_is_retried_for_the_group(store: AnyStore) -> None:
    def provoke(tx: Tx) -> None:
        tx.sql("INSERT OR ROLLBACK INTO counters VALUES ('acme', 'taken', 1)")

    await store.write(TENANT, add, "taken")
    before, after = adding("before"), adding("after")
    outcomes = await all_at_once(store, TENANT, before, provoke, after)
    assert [outcomes[0], type(outcomes[1]), outcomes[2]] == ["before", IntegrityError, "after"]
    assert await store.read(TENANT, values) == {"before": 0, "after": 0, "taken": 0}
    assert [before.runs, after.runs] == [2, 1]


async def test_swallowed_database_error_fails_the_write(store: AnyStore) -> None:
    """Postgres answers the COMMIT of a failed transaction by rolling back, without a word: lost, and told as done."""

    def hide(tx: Tx) -> str:
        add(tx, "half")
        with suppress(IntegrityError):
            add(tx, "half")
        return "all is well"

    with pytest.raises(RuntimeError, match="must not hide"):
        await store.write(TENANT, hide)
    assert await store.read(TENANT, values) == {}


@only_sqlite
async def test_unexpected_error_in_the_writer_thread_fails_its_writes_and_no_later_one(
    store: AnyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(store, SqliteStore)

    def fail(*_: Any) -> None:
        raise MemoryError("on purpose")

    with monkeypatch.context() as broken:
        broken.setattr(store, "_attempt", fail)
        with pytest.raises(MemoryError):
            await asyncio.wait_for(store.write(TENANT, add, "lost"), 10)
    await asyncio.wait_for(store.write(TENANT, add, "kept"), 10)
    assert await store.read(TENANT, values) == {"kept": 0}
