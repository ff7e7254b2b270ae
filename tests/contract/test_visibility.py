"""The filter of a handler matches the same rows in Python and in SQL; ambiguous filters are refused."""

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assent.identity.model.visibility import BadFilter, read, shows
from assent.kernel.store.transaction import Tx
from assent.threads.model.threads import Query
from assent.threads.rows import thread_search, threads
from tests.contract.stores import AnyStore

Json = Any
tenants = (f"tenant-{number}" for number in count())
at_every_turn = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

KEYS = st.sampled_from(["owner", "members", "a.b", "x-1", "org id", "é's"])
TEXTS = st.sampled_from(["", "ada", "Ada", "bob", "1", "true", "null", '["ada"]', "ä", 'say "ada"', "%", "a_a"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([1.0, 0.5, 2**53 + 1]) | TEXTS
METADATA = st.dictionaries(
    KEYS, SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(KEYS, SCALARS, max_size=2), max_size=3
)
CONDITIONS = (
    SCALARS
    | SCALARS.map(lambda value: {"$eq": value})
    | SCALARS.map(lambda value: {"$contains": value})
    | st.lists(SCALARS, min_size=1, max_size=3).map(lambda values: {"$contains": values})
)
PLAIN = st.dictionaries(KEYS, CONDITIONS, max_size=2)
GROUPS = st.lists(PLAIN, min_size=1, max_size=3)
FILTERS = PLAIN | st.fixed_dictionaries({}, optional={"$or": GROUPS, "$and": GROUPS, "owner": CONDITIONS})


def keep(tx: Tx, rows: list[dict[str, Json]]) -> None:
    for number, metadata in enumerate(rows):
        threads.insert(tx, str(number), metadata)


@at_every_turn
@given(rows=st.lists(METADATA, min_size=1, max_size=6), filters=st.lists(FILTERS, min_size=1, max_size=5))
async def test_python_and_the_databases_agree(store: AnyStore, rows: Any, filters: Any) -> None:
    tenant = next(tenants)
    await store.write(tenant, keep, rows)
    for filter in filters:
        visible = read(filter)
        expected = {str(number) for number, metadata in enumerate(rows) if shows(visible, metadata)}
        page, _ = await store.read(tenant, thread_search.search, Query(visible=visible, limit=100))
        assert {thread.id for thread in page} == expected, json.dumps(filter)
        assert await store.read(tenant, thread_search.count, Query(visible=visible)) == len(expected)


@pytest.mark.parametrize(
    ("filter", "metadata", "shown"),
    [
        ({"owner": "ada"}, {"owner": "ada"}, True),
        ({"owner": "ada"}, {"owner": "bob"}, False),
        ({"owner": "ada"}, {}, False),
        ({"owner": "ada"}, {"owner": ["ada"]}, False),
        ({"owner": None}, {}, False),
        ({"owner": None}, {"owner": None}, True),
        ({"owner": 1}, {"owner": True}, False),
        ({"owner": {"$eq": "ada"}}, {"owner": "ada"}, True),
        ({"members": {"$contains": "ada"}}, {"members": ["bob", "ada"]}, True),
        ({"members": {"$contains": "ada"}}, {"members": "ada"}, False),
        ({"members": {"$contains": "ad"}}, {"members": ["ada"]}, False),
        ({"members": {"$contains": ["ada", "bob"]}}, {"members": ["bob", "eve", "ada"]}, True),
        ({"members": {"$contains": ["ada", "bob"]}}, {"members": ["ada"]}, False),
        ({"owner": "ada", "org": "x"}, {"owner": "ada"}, False),
        ({"org": {"$eq": "x", "$contains": "ada"}}, {"org": "x"}, False),
        ({"$or": [{"owner": "ada"}, {"owner": "bob"}]}, {"owner": "bob"}, True),
        ({"$or": [{"owner": "ada"}, {"owner": "bob"}], "org": "x"}, {"owner": "bob", "org": "y"}, False),
        ({"$and": [{"owner": "ada"}, {"org": "x"}]}, {"owner": "ada", "org": "x"}, True),
        ({}, {"anything": 1}, True),
    ],
)
async def test_documented_filters_match_or_not(filter: Any, metadata: dict[str, Json], shown: bool) -> None:
    assert shows(read(filter), metadata) is shown
    assert shows(None, metadata)


@pytest.mark.parametrize(
    "filter",
    [
        "ada",
        ["owner"],
        7,
        {"owner": {}},
        {"owner": {"$in": ["ada"]}},
        {"owner": {"name": "ada"}},
        {"owner": {"$eq": {"name": "ada"}}},
        {"owner": ["ada"]},
        {"owner": {"$contains": []}},
        {"owner": {"$contains": [["ada"]]}},
        {"owner": float("nan")},
        {"owner": "a\x00"},
        {"owner": "\ud800"},
        {"owner": b"ada"},
        {1: "ada"},
        {"": "ada"},
        {'a"b': "ada"},
        {"$not": [{"owner": "ada"}]},
        {"$or": []},
        {"$or": {"owner": "ada"}},
        {"$or": ["ada"]},
        {"$or": [{"$or": [{"$or": [{"owner": "ada"}]}]}]},
        {f"k{number}": 1 for number in range(51)},
    ],
)
def test_ambiguous_filter_is_refused(filter: Any) -> None:
    with pytest.raises(BadFilter):
        read(filter)
