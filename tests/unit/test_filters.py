"""The text of a filter: what it finds, and what it refuses to guess."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.errors import Invalid
from assent.review.model.items import ItemStatus
from assent.review.model.search.filters import Filter, id_range, parse, term

OPEN = frozenset({ItemStatus.PENDING, ItemStatus.REVISION_REQUESTED})


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("", Filter()),
        ("   ", Filter()),
        ("is:pending", Filter(statuses=OPEN)),
        ("is:resolved", Filter(statuses=frozenset(ItemStatus) - OPEN)),
        ("is:approved is:rejected", Filter(statuses=frozenset({ItemStatus.APPROVED, ItemStatus.REJECTED}))),
        ("is:revision", Filter(statuses=frozenset({ItemStatus.REVISION_REQUESTED}))),
        ("is:gated", Filter(columns=(("gated", (True,)),))),
        ("is:in-doubt", Filter(columns=(("execution", ("in_doubt",)),))),
        ("is:snoozed is:claimed", Filter(snoozed=True, claimed=True)),
        ("type:tool,form", Filter(columns=(("type", ("tool", "form")),))),
        ("type:tool graph:billing", Filter(columns=(("type", ("tool",)), ("graph_id", ("billing",))))),
        ("older:2h newer:7d", Filter(older=timedelta(hours=2), newer=timedelta(days=7))),
        ("refund please", Filter(words=("refund", "please"))),
        ('"refund please"', Filter(words=("refund please",))),
        ("from:agent:a1", Filter(columns=(("requester", ("agent:a1",)),))),
        ("id:0199A0B1-7", Filter(ids=("0199a0b1-7",))),
        ("id:0199a0b1,0199a0b2", Filter(ids=("0199a0b1", "0199a0b2"))),
        ("100% #5 a\\b", Filter(words=("100%", "#5", "a\\b"))),
    ],
)
def test_filter_text_is_parsed_into_its_terms(source: str, found: Filter) -> None:
    assert parse(source) == found


@pytest.mark.parametrize(
    "source",
    ["colour:red", ":x", "is:", "is:nice", "older:soon", "older:", "newer:-1h", 'a "b', "x" * 501, "IS:pending"],
)
def test_unknown_filter_term_is_refused(source: str) -> None:
    with pytest.raises(Invalid):
        parse(source)


@given(st.text(max_size=600))
def test_any_text_is_a_filter_or_is_refused(source: str) -> None:
    with suppress(Invalid):
        assert isinstance(parse(source), Filter)


@given(st.text(max_size=100))
def test_value_has_an_exact_term_or_none(value: str) -> None:
    with suppress(Invalid):
        assert parse(term("graph", value)) == Filter(columns=(("graph_id", (value,)),))


@pytest.mark.parametrize("value", ["billing", "two words", 'say "hi"', "it's", "a:b", "100%"])
def test_ordinary_names_have_a_term(value: str) -> None:
    assert parse(f"is:pending {term('graph', value)}") == Filter(OPEN, (("graph_id", (value,)),))


def test_range_of_an_id_prefix_contains_every_id_with_that_prefix() -> None:
    whole = "0199a0b1-7c3d-7aaa-8bbb-0123456789ab"
    for length in range(1, 37):
        bounds = id_range(whole[:length])
        assert bounds is not None
        assert bounds[0] <= whole <= bounds[1]
        assert all(bound.startswith(whole[:length]) and len(bound) == 36 for bound in bounds)


@pytest.mark.parametrize(
    "prefix", ["", "xxxxxxxx", "0199a0b17", "0199a0b1-7c3d-7aaa-8bbb-0123456789ab0", "%", "0199a0b1\n"]
)
def test_text_that_is_no_id_prefix_has_no_range(prefix: str) -> None:
    assert id_range(prefix) is None
