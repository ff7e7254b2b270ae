"""Which index SQLite walks must not hang on the order in which the indexes happened to be made: without statistics it
takes the first of several that look alike, and that one may lead past every item there is."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text

from assent.domain import filters
from assent.store import item_search
from assent.store.tables import items, metadata
from assent.store.transaction import Tx


@pytest.mark.parametrize("seed", range(8))
def test_what_is_in_doubt_is_found_without_passing_all_items(seed: int) -> None:
    for statement, plan in plans("is:in-doubt", seed):
        assert all("execution" in step for step in plan if "items" in step), (statement, plan)


def test_control_the_plan_of_all_that_wait_names_another_index() -> None:
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
