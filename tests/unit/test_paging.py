"""Cursors by themselves: opaque, safe in a URL, and read back exactly."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Column, Connection, MetaData, String, Table, create_engine, select

from assent.errors import Invalid
from assent.kernel.store.paging import LARGEST_PAGE, Keyset
from assent.kernel.store.tables import TENANT, Instant
from assent.kernel.store.transaction import Tx

words = Table(
    "words",
    MetaData(),
    Column("tenant_id", String, primary_key=True),
    Column("word", String, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
)
ORDER = Keyset((words.c.word, words.c.at, words.c.number))
WORDS = select(words).where(words.c.tenant_id == TENANT)
AT = datetime(2026, 11, 15, 12, 30, 0, 1, tzinfo=UTC)


def in_memory(rows: list[tuple[str, int]]) -> Tx:
    connection = create_engine("sqlite://").connect()
    words.create(connection)
    tx = Tx(connection, "acme", _no_clock)
    tx.insert_all(words, [{"word": word, "number": number, "at": AT} for word, number in rows])
    return tx


def _no_clock(connection: Connection) -> datetime:
    raise AssertionError("paging needs no clock")


def page(tx: Tx, limit: int, cursor: str | None = None) -> tuple[list[str], str | None]:
    page_of_rows = ORDER.page(tx, WORDS, lambda row: str(row.word), limit=limit, cursor=cursor)
    return page_of_rows.items, page_of_rows.next


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
int64 = st.integers(-(2**63), 2**63 - 1)


@given(words=st.lists(st.tuples(texts, int64), min_size=2, max_size=6, unique=True))
def test_cursor_of_any_row_is_read_back(words: list[tuple[str, int]]) -> None:
    tx, met, cursor = in_memory(words), list[str](), None
    for _ in words:
        items, cursor = page(tx, 1, cursor)
        met += items
        assert cursor is None or re.fullmatch(r"[A-Za-z0-9_-]+", cursor)
    assert met == [word for word, _ in sorted(words)]
    assert cursor is None


def test_the_last_page_has_no_cursor() -> None:
    tx = in_memory([("a", 1), ("b", 2)])
    assert page(tx, 2) == (["a", "b"], None)
    assert page(tx, LARGEST_PAGE) == (["a", "b"], None)
    assert page(in_memory([]), 5) == ([], None)


def test_a_cursor_stays_good_when_its_row_is_gone() -> None:
    tx = in_memory([("a", 1), ("b", 2), ("c", 3)])
    _, cursor = page(tx, 2)
    tx.change(words.delete().where(words.c.tenant_id == TENANT, words.c.word == "b"))
    assert page(tx, 2, cursor) == (["c"], None)


def test_a_cursor_of_another_list_is_refused() -> None:
    tx = in_memory([("a", 1), ("b", 2)])
    other = Keyset((words.c.number, words.c.word))
    _, cursor = page(tx, 1)
    with pytest.raises(Invalid, match="not valid for this list"):
        other.page(tx, WORDS, _anything, limit=1, cursor=cursor)


@pytest.mark.parametrize("limit", [0, LARGEST_PAGE + 1])
def test_page_size_outside_its_bounds_is_refused(limit: int) -> None:
    with pytest.raises(Invalid, match=f"between 1 and {LARGEST_PAGE}"):
        page(in_memory([]), limit)


def _anything(row: Any) -> Any:
    return row
