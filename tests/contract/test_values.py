"""Columns return stored values: timestamps to the microsecond, JSON digit for digit; and the database's clock."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import bindparam, select, text

from assent.errors import Invalid
from assent.kernel.store.containment import contains
from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import Tx
from tests.contract.stores import AnyStore, both_databases, only_postgres, outside
from tests.contract.tables import notes

ACME = "acme"
_NOTE = select(notes.c.at, notes.c.body).where(notes.c.tenant_id == TENANT, notes.c.note_id == bindparam("number"))

one_store_for_all_examples = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
moments = st.datetimes(
    min_value=datetime(1900, 1, 1),  # noqa: DTZ001 - the strategy adds the zone
    max_value=datetime(9990, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11))]),
)
numbers = st.integers() | st.integers(2**53, 2**70) | st.floats(allow_nan=False, allow_infinity=False)
characters = st.characters(exclude_categories=["Cs"])
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(characters, max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(characters, max_size=8), inner, max_size=4),
    max_leaves=12,
)


def keep(tx: Tx, *, at: datetime | None = None, body: Any = None) -> tuple[datetime, Any]:
    """Writes a note and reads it back, in a transaction that leaves nothing for the next example."""
    tx.insert(notes, note_id=1, at=at, body=body)
    note_row = tx.first(_NOTE, number=1)
    tx.change(notes.delete().where(notes.c.tenant_id == TENANT))
    assert note_row is not None
    return note_row.at, note_row.body


@one_store_for_all_examples
@given(at=moments)
async def test_a_moment_is_kept_to_the_microsecond(store: AnyStore, at: datetime) -> None:
    stored, _ = await store.write(ACME, keep, at=at)
    assert stored == at
    assert stored.utcoffset() == timedelta()


@one_store_for_all_examples
@given(body=json_values)
async def test_json_is_kept_exactly(store: AnyStore, body: Any) -> None:
    _, stored = await store.write(ACME, keep, body=[body])
    assert repr(stored) == repr([body])


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64, 2**64 + 1, -(2**70), 10**300, 1e23, -0.0, 5e-324])
async def test_a_number_keeps_every_digit(store: AnyStore, number: float) -> None:
    _, stored = await store.write(ACME, keep, body={"n": [number]})
    assert repr(stored["n"][0]) == repr(number)


async def test_moments_sort_by_time(store: AnyStore) -> None:
    start = datetime(2026, 11, 15, 12, tzinfo=UTC)
    moments = [start + timedelta(microseconds=step) for step in (5, -3, 0, 10**12, 1)]

    def fill(tx: Tx) -> list[datetime]:
        tx.insert_all(notes, [{"note_id": number, "at": at} for number, at in enumerate(moments)])
        rows = tx.all(select(notes.c.at).where(notes.c.tenant_id == TENANT).order_by(notes.c.at))
        return [row.at for row in rows]

    assert await store.write(ACME, fill) == sorted(moments)


async def test_time_is_constant_within_a_function(store: AnyStore) -> None:
    first, second = await store.write(ACME, lambda tx: (tx.now(), tx.now()))
    assert first == second
    assert first.utcoffset() == timedelta()
    assert await store.write(ACME, lambda tx: tx.now()) > first


async def test_the_clock_can_be_set_for_a_test(store: AnyStore) -> None:
    before = await store.read(ACME, lambda tx: tx.now())
    store.clock_offset = timedelta(days=2)
    after = await store.write(ACME, lambda tx: tx.now())
    assert timedelta(days=2) <= after - before < timedelta(days=2, minutes=1)


@both_databases
async def test_now_comes_from_the_databases_clock(database: str, store: AnyStore) -> None:
    epoch = "extract(epoch FROM clock_timestamp())" if database.startswith("postgresql") else "strftime('%s', 'now')"
    now = await store.read(ACME, lambda tx: tx.now())
    with outside(database).connect() as connection:
        there = float(connection.execute(text(f"SELECT {epoch}")).scalar_one())
    assert abs(there - now.timestamp()) < 5


@only_postgres
async def test_text_that_postgres_cannot_hold_is_refused_by_name(store: AnyStore) -> None:
    with pytest.raises(Invalid, match="NUL"):
        await store.write(ACME, lambda tx: tx.insert(notes, note_id=1, slug="a\x00b"))


async def test_row_with_a_nul_does_not_break_searches(store: AnyStore) -> None:
    def fill_and_search(tx: Tx) -> list[int]:
        tx.insert(notes, note_id=1, body={"text": "before\x00after", "kind": "odd"})
        tx.insert(notes, note_id=2, body={"text": "plain", "kind": "odd"})
        fits = contains(notes.c.body, {"kind": "odd"}, tx.dialect)
        return [row.note_id for row in tx.all(select(notes.c.note_id).where(notes.c.tenant_id == TENANT, fits))]

    assert sorted(await store.write(ACME, fill_and_search)) == [1, 2]
