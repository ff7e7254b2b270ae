"""Keyset paging: the pages put together are the list, whatever was inserted in the meantime."""

import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Row, select

from assent.errors import Invalid
from assent.kernel.store.paging import Keyset, Page
from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import Tx
from tests.contract.stores import AnyStore
from tests.contract.tables import notes

Item = tuple[datetime, int]

START = datetime(2026, 11, 15, tzinfo=UTC)
NOTES = select(notes.c.at, notes.c.note_id).where(notes.c.tenant_id == TENANT)
ASCENDING = Keyset((notes.c.at, notes.c.note_id))
DESCENDING = Keyset((notes.c.at, notes.c.note_id), descending=True)

# Few moments for many notes, so that the last column has to decide.
moments = st.lists(st.integers(0, 6), max_size=25)
orders = st.sampled_from([ASCENDING, DESCENDING])


def fill(tx: Tx, offsets: list[int], first: int = 0) -> None:
    rows = [
        {"note_id": first + number, "at": START + timedelta(microseconds=offset)}
        for number, offset in enumerate(offsets)
    ]
    tx.insert_all(notes, rows)


def page(tx: Tx, order: Keyset, limit: int, cursor: str | None) -> Page[Item]:
    return order.page(tx, NOTES, _item, limit=limit, cursor=cursor)


def _item(row: Row[Any]) -> Item:
    return row.at, row.note_id


async def walk(store: AnyStore, tenant: str, order: Keyset, limit: int) -> list[list[Item]]:
    pages, cursor = [], None
    while True:
        page_of_rows = await store.read(tenant, page, order, limit, cursor)
        pages.append(page_of_rows.items)
        if (cursor := page_of_rows.next) is None:
            return pages


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(offsets=moments, limit=st.integers(1, 9), order=orders)
async def test_pages_together_are_the_sorted_list(
    store: AnyStore, offsets: list[int], limit: int, order: Keyset
) -> None:
    tenant = uuid.uuid4().hex
    await store.write(tenant, fill, offsets)
    pages = await walk(store, tenant, order, limit)
    whole = sorted(
        ((START + timedelta(microseconds=offset), number) for number, offset in enumerate(offsets)),
        reverse=order.descending,
    )
    assert [item for items in pages for item in items] == whole
    assert all(len(items) == limit for items in pages[:-1])
    assert len(pages[-1]) <= limit


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=moments, meanwhile=moments, limit=st.integers(1, 9), order=orders)
async def test_inserts_between_pages_neither_repeat_nor_skip_rows(
    store: AnyStore, before: list[int], meanwhile: list[int], limit: int, order: Keyset
) -> None:
    """Each row that was there from the beginning is met exactly once; by offset, rows would repeat or be skipped."""
    tenant = uuid.uuid4().hex
    await store.write(tenant, fill, before)
    first = await store.read(tenant, page, order, limit, None)
    await store.write(tenant, fill, meanwhile, first=1000)
    met, cursor = list(first.items), first.next
    while cursor:
        page_of_rows = await store.read(tenant, page, order, limit, cursor)
        met, cursor = met + page_of_rows.items, page_of_rows.next
    assert sorted(number for _, number in met if number < 1000) == list(range(len(before)))
    assert met == sorted(met, reverse=order.descending)


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_page_has_at_most_its_limit(store: AnyStore, limit: int) -> None:
    with pytest.raises(Invalid, match="limit"):
        await store.read("acme", page, ASCENDING, limit, None)


BAD_CURSORS = {
    "empty": "",
    "not base64": "%%%",
    "not ascii": "cursør",
    "not json": "AAAA",
    "a number": "NQ",
    "too few values": "WyIyMDI2LTExLTE1VDAwOjAwOjAwWiJd",
    "swapped types": "WzUsIjIwMjYtMTEtMTVUMDA6MDA6MDBaIl0",
    "no time": "WyJ5ZXN0ZXJkYXkiLDVd",
    "a time without a zone": "WyIyMDI2LTExLTE1VDAwOjAwOjAwIiw1XQ",
    "beyond 64 bits": "WyIyMDI2LTExLTE1VDAwOjAwOjAwWiIsMTg0NDY3NDQwNzM3MDk1NTE2MTVd",
    "a truth": "WyIyMDI2LTExLTE1VDAwOjAwOjAwWiIsdHJ1ZV0",
    "an object": "eyJhIjoxLCJiIjoyfQ",
    "nothing": "bnVsbA",
    "nested": "W1siMjAyNi0xMS0xNVQwMDowMDowMFoiXSxbNV1d",
}


@pytest.mark.parametrize("cursor", BAD_CURSORS.values(), ids=BAD_CURSORS.keys())
async def test_forged_cursor_is_refused(store: AnyStore, cursor: str) -> None:
    with pytest.raises(Invalid, match="cursor"):
        await store.read("acme", page, ASCENDING, 10, cursor)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cursor=st.text(max_size=40) | st.from_regex(r"[A-Za-z0-9_-]{0,60}", fullmatch=True))
async def test_any_cursor_is_accepted_or_refused(store: AnyStore, cursor: str) -> None:
    with suppress(Invalid):
        await store.read("acme", page, ASCENDING, 10, cursor)


async def test_a_cursor_works_for_its_own_tenants_rows_only(store: AnyStore) -> None:
    await store.write("acme", fill, [1, 2, 3])
    cursor = (await store.read("acme", page, ASCENDING, 1, None)).next
    assert cursor is not None
    assert (await store.read("other", page, ASCENDING, 10, cursor)).items == []
    assert len((await store.read("acme", page, ASCENDING, 10, cursor)).items) == 2
