"""Containment means the same on every database, and what Postgres means by it."""

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from assent.errors import Invalid
from assent.kernel.store.containment import MOST_ELEMENTS, MOST_PARTS, check_filter, contains
from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import Tx
from tests.contract.stores import AnyStore
from tests.contract.tables import notes

Json = Any
tenants = (f"tenant-{number}" for number in count())
at_every_turn = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])

NAMES = ("a", "b", "c", "a.b", "x-1", "_", "0", "value", "type", "", "ä", "🙂", "a b", "a'b", "[0]", "$.a", "\u2028")
KEYS = st.sampled_from(NAMES)
TEXTS = st.sampled_from(["", "a", "A", "1", "true", "null", "[1]", "{}", '{"a":1}', "ä", "a\\b", 'say "a"', "$.a"])
NUMBERS = (
    st.integers(-3, 3)
    | st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63), 10**30])
    | st.integers(-8, 8).map(lambda n: n / 4)
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS


def nested(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Json]:
    return st.recursive(
        SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
    )


DOCUMENTS = st.dictionaries(KEYS | TEXTS, nested(KEYS | TEXTS), max_size=4)
FILTERS = st.dictionaries(KEYS, nested(KEYS), max_size=3)


def contained(part: Json, whole: Json) -> bool:
    """The rule itself."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contained(part[key], whole[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and all(any(contained(one, other) for other in whole) for one in part)
    return isinstance(part, bool) is isinstance(whole, bool) and bool(part == whole)


@st.composite
def parts(draw: st.DrawFn, whole: Json) -> Json:
    """Something that the whole contains, as far as its keys may stand in a filter."""
    if isinstance(whole, dict):
        usable = [name for name in NAMES if name in whole]
        chosen = draw(st.lists(st.sampled_from(usable), unique=True)) if usable else []
        return {key: draw(parts(whole[key])) for key in chosen}
    if isinstance(whole, list):
        chosen = draw(st.lists(st.sampled_from(whole), max_size=3)) if whole else []
        return [draw(parts(one)) for one in chosen]
    return whole


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Documents, and filters of which many fit some of them."""
    documents = draw(st.lists(DOCUMENTS, min_size=1, max_size=5))
    fitting = draw(st.lists(st.sampled_from(documents).flatmap(parts), max_size=3))
    filters = [*fitting, *draw(st.lists(FILTERS, max_size=2)), {}]
    return documents, [wanted for wanted in filters if is_filter(wanted)]


def is_filter(wanted: dict[str, Json]) -> bool:
    try:
        check_filter(wanted)
    except Invalid:
        return False
    return True


def keep(tx: Tx, documents: list[Json]) -> None:
    tx.insert_all(notes, [{"note_id": number, "body": body} for number, body in enumerate(documents)])


def found(tx: Tx, wanted: dict[str, Json]) -> list[int]:
    condition = contains(notes.c.body, wanted, tx.dialect)
    statement = select(notes.c.note_id).where(notes.c.tenant_id == TENANT, condition).order_by(notes.c.note_id)
    return [row.note_id for row in tx.all(statement)]


@at_every_turn
@given(question=questions())
async def test_every_database_finds_what_the_rule_says(store: AnyStore, question: Any) -> None:
    documents, filters = question
    tenant = next(tenants)
    await store.write(tenant, keep, documents)
    for wanted in filters:
        expected = [number for number, body in enumerate(documents) if contained(wanted, body)]
        assert await store.read(tenant, found, wanted) == expected, json.dumps(wanted)


@pytest.mark.parametrize(
    ("document", "wanted", "fits"),
    [
        ({"a": {"b": {"c": 1, "d": 2}}}, {"a": {"b": {"c": 1}}}, True),
        ({"a": {"b": 1}}, {"a": {}}, True),
        ({"a": 1}, {"a": {}}, False),
        ({"a": [1, 2, 3]}, {"a": [3, 1, 1]}, True),
        ({"a": [1, [2, 3]]}, {"a": [[3]]}, True),
        ({"a": [[1]]}, {"a": [1]}, False),
        ({"a": [1]}, {"a": 1}, False),
        ({"a": [{"b": 1, "c": 2}, "x"]}, {"a": [{"c": 2}]}, True),
        ({"a": ["{", {"b": 1}]}, {"a": [{"b": 1}]}, True),
        ({"a": []}, {"a": []}, True),
        ({"a": {}}, {"a": []}, False),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": 598}, {"a": 598.0}, True),
        ({"a": "1"}, {"a": 1}, False),
        ({"a": [1]}, {"a": "[1]"}, False),
        ({"a": "x"}, {"a": "X"}, False),
        ({"a": 10**400}, {"a": 10**400}, True),
        ({"a": 1}, {"a": 10**400}, False),
        ({"a.b": 1}, {"a.b": 1}, True),
        ({"a": {"b": 1}}, {"a.b": 1}, False),
    ],
)
async def test_documented_cases_are_contained_or_not(store: AnyStore, document: Json, wanted: Json, fits: bool) -> None:
    await store.write("acme", keep, [document])
    assert contained(wanted, document) is fits
    assert await store.read("acme", found, wanted) == ([0] if fits else [])


@pytest.mark.parametrize(
    "wanted",
    [
        {'a"b': 1},
        {"a\\b": 1},
        {"a\n": 1},
        {"k" * 1001: 1},
        {"a": {"b": [{'"': 1}]}},
        {f"k{number}": 1 for number in range(MOST_PARTS)},
        {"a": list(range(MOST_PARTS))},
        {"a": list(range(MOST_ELEMENTS + 1))},
        {"a": [1] * MOST_ELEMENTS, "b": [1]},
        json.loads('{"a":' * 13 + "1" + "}" * 13),
        json.loads('{"a":' + "[" * 6 + "1" + "]" * 6 + "}"),
    ],
)
async def test_invalid_filter_is_refused(store: AnyStore, wanted: Json) -> None:
    with pytest.raises(Invalid):
        await store.read("acme", found, wanted)


async def test_largest_allowed_filter_is_accepted(store: AnyStore) -> None:
    wide = {"a": list(range(MOST_ELEMENTS)), **{f"k{number}": 1 for number in range(MOST_PARTS - MOST_ELEMENTS - 2)}}
    deep = json.loads('{"a":' * 12 + "1" + "}" * 12)
    mixed = json.loads('{"a":[' * 4 + "1" + "]}" * 4)
    arrays = json.loads('{"a":' + "[" * 5 + "1" + "]" * 5 + "}")
    await store.write("acme", keep, [wide, deep, mixed, arrays])
    for number, wanted in enumerate((wide, deep, mixed, arrays)):
        assert await store.read("acme", found, wanted) == [number]


async def test_a_row_without_json_contains_nothing(store: AnyStore) -> None:
    await store.write("acme", keep, [None, {}])
    assert await store.read("acme", found, {}) == [1]
    assert await store.read("acme", found, {"a": None}) == []
