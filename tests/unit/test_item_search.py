"""Which index SQLite walks must not hang on the order in which the indexes happened to be made: without statistics it
takes the first of several that look alike, and that one may lead past every item there is."""

import random
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, text

from assent.kernel.store.tables import items, metadata
from assent.kernel.store.transaction import Tx
from assent.review.model.search import filters
from assent.review.rows import item_search

ROUTED = "routing IS NOT NULL"


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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("status", ["pending", "resolved"])
def test_grouped_list_is_read_in_the_order_of_an_index(status: str, seed: int) -> None:
    for group, sort in product(item_search.GROUPS, item_search.SORTS):
        [(statement, plan), *_] = plans(f"is:{status}", seed, sort=sort, group=group)
        sorting = [step for step in plan if "TEMP B-TREE" in step]
        assert all("SEARCH items USING INDEX" in step for step in plan if "items" in step), (statement, plan)
        assert sorting == [] or (group == "thread" and "OF ORDER BY" in sorting[0]), (group, sort, plan)


@pytest.mark.parametrize("filter", ["agent:billing", "risk:critical", "kind:payment", "is:approved agent:billing"])
def test_items_with_a_rare_value_are_looked_up_by_their_ids(filter: str) -> None:
    status = "" if "is:" in filter else "is:pending "
    for statement, plan in plans(status + filter, 0, group="thread"):
        steps = [step for step in plan if " items " in step]
        assert all("item_id=?" in step or "INDEX ix_items_tenant_id_open" in step for step in steps), (statement, plan)


def test_control_without_their_index_groups_are_sorted() -> None:
    dropped = "ix_items_tenant_id_open_requester_created_at_item_id"
    [(_, plan), *_] = plans("is:pending", 0, group="agent", dropped=dropped)
    assert any("TEMP B-TREE" in step for step in plan)


@pytest.mark.parametrize("seed", range(8))
def test_items_that_were_routed_to_others_are_looked_up_in_their_index(seed: int) -> None:
    with create_engine("sqlite://").connect() as connection:
        metadata.create_all(connection)
        _shuffle(connection, seed)
        said: list[str] = []
        raw: Any = connection.connection.driver_connection
        raw.set_trace_callback(said.append)
        item_search.counts(
            Tx(connection, "default", lambda _: datetime.now(UTC)), filters.parse(""), "reviewer:ana", None
        )
        raw.set_trace_callback(None)
        lookups = [one for one in said if ROUTED in one]
        assert lookups
        assert all("ix_items_routed" in step for one in lookups for step in _plan(connection, one))


def plans(
    filter: str, seed: int, *, sort: str = "-created_at", group: str | None = None, dropped: str | None = None
) -> list[tuple[str, list[str]]]:
    with create_engine("sqlite://").connect() as connection:
        metadata.create_all(connection)
        _shuffle(connection, seed)
        _insert(connection)
        if dropped:
            connection.execute(text(f"DROP INDEX {dropped}"))
        said: list[str] = []
        raw: Any = connection.connection.driver_connection
        raw.set_trace_callback(said.append)
        tx, found = Tx(connection, "default", lambda _: datetime.now(UTC)), filters.parse(filter)
        item_search.page(tx, found, "reviewer:ana", None, sort=sort, group=group, limit=30, cursor=None)
        item_search.counts(tx, found, "reviewer:ana", None)
        raw.set_trace_callback(None)
        selected = [one for one in said if "FROM items" in one and ROUTED not in one]
        assert len(selected) >= 3
        return [(one, _plan(connection, one)) for one in selected]


def _shuffle(connection: Connection, seed: int) -> None:
    """The indexes of the items, made anew in another order."""
    indexes = sorted(items.indexes, key=lambda index: str(index.name))
    random.Random(seed).shuffle(indexes)
    for index in indexes:
        index.drop(connection)
    for index in indexes:
        index.create(connection)


def _insert(connection: Connection) -> None:
    """A pending and an approved item with the values that the filters look for."""
    blank: dict[str, Any] = {"String": "", "Integer": 0, "Boolean": False, "Instant": datetime.now(UTC), "JsonText": {}}
    row = {column.name: blank[type(column.type).__name__] for column in items.c if not column.nullable}
    row |= {"tenant_id": "default", "requester": "agent:billing", "kind": "payment", "risk": "critical", "risk_rank": 4}
    for status, is_open in (("PENDING", True), ("APPROVED", False)):
        connection.execute(items.insert().values(**row | {"item_id": status, "status": status, "open": is_open}))


def _plan(connection: Connection, statement: str) -> list[str]:
    explained = connection.execute(text(f"EXPLAIN QUERY PLAN {statement}".replace(":", r"\:")))
    return [str(row.detail) for row in explained]
