"""A filter finds the same memories on every database: those that the rule, written once more in Python, finds."""

import json
import operator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assent.errors import Invalid
from assent.kernel import canonical
from assent.kernel.store.containment import MOST_PARTS
from assent.kernel.store.transaction import Tx
from assent.threads.rows.memory import items as memory
from assent.threads.rows.memory.items import Put
from tests.contract.stores import AnyStore

Json = Any
tenants = (f"tenant-{number}" for number in count())
at_every_turn = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

ORDERS = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}
KEYS = st.sampled_from(["a", "b", "a.b", "x-1", "_", "", "ä b", "a'b", "[0]"])
TEXTS = st.sampled_from(["", "a", "A", "b", "10", "9", "true", "null", "{}", "ä", "z", "𝒳", "\ufb01", 'say "a"'])
NUMBERS = (
    st.integers(-3, 3) | st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63)]) | st.integers(-8, 8).map(lambda n: n / 4)
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2), max_leaves=5
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
OPERATORS = st.dictionaries(st.sampled_from(["$eq", "$ne"]), VALUES, max_size=2) | st.dictionaries(
    st.sampled_from(list(ORDERS)), NUMBERS | TEXTS, min_size=1, max_size=2
)
FILTERS = st.dictionaries(KEYS, VALUES | OPERATORS | st.dictionaries(KEYS, OPERATORS, max_size=2), max_size=2)


def fits(value: Json, wanted: Json) -> bool:
    """The rule itself."""
    if not isinstance(wanted, dict):
        return canonical.same(value, wanted)
    if any(key.startswith("$") for key in wanted):
        return all(holds(value, name, operand) for name, operand in wanted.items())
    return isinstance(value, dict) and all(fits(value.get(key), part) for key, part in wanted.items())


def holds(value: Json, name: str, operand: Json) -> bool:
    if name in ("$eq", "$ne"):
        return canonical.same(value, operand) is (name == "$eq")
    kinds = str if isinstance(operand, str) else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        return False
    return bool(ORDERS[name](value, operand))


def keep(tx: Tx, documents: list[dict[str, Json]]) -> None:
    memory.put(tx, [Put(("all",), str(number), document) for number, document in enumerate(documents)])


def found(tx: Tx, wanted: dict[str, Json]) -> set[int]:
    return {int(memory_item.key) for memory_item in memory.search(tx, ("all",), wanted, limit=100, offset=0)}


@at_every_turn
@given(documents=st.lists(DOCUMENTS, min_size=1, max_size=5), filters=st.lists(FILTERS, max_size=4))
async def test_every_database_finds_what_the_rule_says(store: AnyStore, documents: Any, filters: Any) -> None:
    tenant = next(tenants)
    await store.write(tenant, keep, documents)
    for wanted in [*filters, *documents, {}]:
        expected = {
            number
            for number, document in enumerate(documents)
            if all(fits(document.get(key), part) for key, part in wanted.items())
        }
        assert await store.read(tenant, found, wanted) == expected, json.dumps(wanted)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"score": {"$gt": 4.99}}, {1, 2}),
        ({"score": {"$gte": 5, "$lt": 10}}, {1}),
        ({"score": {"$lte": 5}}, {0, 1}),
        ({"score": {"$gt": "4"}}, {3}),
        ({"score": 5}, {1}),
        ({"score": 5.0}, {1}),
        ({"score": {"$ne": 5}}, {0, 2, 3, 4}),
        ({"score": None}, {4}),
        ({"score": {"$eq": None}}, {4}),
        ({"who": {"name": "ada"}}, {0, 1}),
        ({"who": {"$eq": {"name": "ada"}}}, {0}),
        ({"who": {"age": {"$gt": 30}}}, {1}),
        ({"tags": ["a", "b"]}, {2}),
        ({"tags": ["b", "a"]}, set()),
        ({"tags": {"$ne": ["a", "b"]}}, {0, 1, 3, 4}),
        ({"score": {"$gt": 2}, "who": {"name": "ada"}}, {1}),
    ],
)
async def test_documented_filters_match_or_not(store: AnyStore, wanted: dict[str, Json], expected: set[int]) -> None:
    documents: list[dict[str, Json]] = [
        {"score": 1.5, "who": {"name": "ada"}},
        {"score": 5, "who": {"name": "ada", "age": 36}},
        {"score": 10, "tags": ["a", "b"]},
        {"score": "7"},
        {"tags": "a", "note": "a\x00b"},
    ]
    await store.write("acme", keep, documents)
    assert await store.read("acme", found, wanted) == expected


@pytest.mark.parametrize(
    "wanted",
    [
        {"a": {"$regex": "x"}},
        {"a": {"$gt": 1, "b": 2}},
        {"a": {"$gt": None}},
        {"a": {"$lt": True}},
        {"a": {"$lt": [1]}},
        {"a": {"$eq": float("nan")}},
        {"a": "\ud800"},
        {"a": "x\x00"},
        {"$gt": 1},
        {'a" OR 1=1 --': 1},
        {"a\\": 1},
        {"a" * 1001: 1},
        {"a": {"$eq": {'no "key"': 1}}},
        {"a": list(range(MOST_PARTS))},
    ],
)
async def test_invalid_filter_is_refused(store: AnyStore, wanted: dict[str, Json]) -> None:
    with pytest.raises(Invalid):
        await store.read("acme", found, wanted)
