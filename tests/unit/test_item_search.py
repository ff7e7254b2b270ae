"""Which index SQLite walks must not hang on the order in which the indexes happened to be made: without statistics it
takes the first of several that look alike, and that one may lead past every item there is."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text

from assent.kernel.store.tables import items, metadata
from assent.kernel.store.transaction import Tx
from assent.review.model import filters
from assent.review.rows import item_search


@pytest.mark.parametrize("seed", range(8))
def test_search_for_items_in_doubt_uses_an_index(seed: int) -> None:
    for statement, plan in plans("is:in-doubt", seed):
        assert all("execution" in step for step in plan if "items" in step), (statement, plan)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("filter", ["id:0199a0b1", "is:pending id:0199a0b1-7", "is:approved graph:g id:0199a0b1"])
def test_search_by_id_prefix_uses_a_range_of_the_primary_key(filter: str, seed: int) -> None:
    for statement, plan in plans(filter, seed):
        assert all("item_id>? AND item_id<?" in step for step in plan if "SEARCH items" in step), (statement, plan)
        assert not any("SCAN items" in step for step in plan)


def test_control_search_for_pending_items_uses_another_index() -> None:
    assert any("execution" not in step for _, plan in plans("is:pending", 0) for step in plan if "items" in step)


def plans(filter: str, seed: int) -> list[tuple[str, list[str]]]:
    with create_engine("sqlite://").connect() as connection:
        metadata.create_all(connection)
        _shuffle(connection, seed)
        said: list[str] = []
        raw: Any = connection.connection.driver_connection
        raw.set_trace_callback(said.append)
        tx, found = Tx(connection, "default", lambda _: datetime.now(UTC)), filters.parse(filter)
        item_search.page(tx, found, "reviewer:ana", None, sort="-created_at", limit=30, cursor=None)
        item_search.counts(tx, found, "reviewer:ana", None)
        raw.set_trace_callback(None)
        selected = [one for one in said if "FROM items" in one]
        assert len(selected) == 3
        return [(one, _plan(connection, one)) for one in selected]


def _shuffle(connection: Connection, seed: int) -> None:
    """The indexes of the items, made anew in another order."""
    indexes = sorted(items.indexes, key=lambda index: str(index.name))
    random.Random(seed).shuffle(indexes)
    for index in indexes:
        index.drop(connection)
    for index in indexes:
        index.create(connection)


def _plan(connection: Connection, statement: str) -> list[str]:
    explained = connection.execute(text(f"EXPLAIN QUERY PLAN {statement}".replace(":", r"\:")))
    return [str(row.detail) for row in explained]
