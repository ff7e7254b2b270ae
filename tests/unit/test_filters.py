"""The text of a filter: what it finds, and what it refuses to guess."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.domain.filters import Filter, parse, term
from assent.domain.items import ItemStatus
from assent.errors import Invalid

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
        ("100% #5 a\\b", Filter(words=("100%", "#5", "a\\b"))),
    ],
)
def test_a_filter_says_what_it_finds(source: str, found: Filter) -> None:
    assert parse(source) == found


@pytest.mark.parametrize(
    "source",
    ["colour:red", ":x", "is:", "is:nice", "older:soon", "older:", "newer:-1h", 'a "b', "x" * 501, "IS:pending"],
)
def test_what_is_not_understood_is_refused(source: str) -> None:
    with pytest.raises(Invalid):
        parse(source)


@given(st.text(max_size=600))
def test_any_text_is_a_filter_or_is_refused(source: str) -> None:
    with suppress(Invalid):
        assert isinstance(parse(source), Filter)


@given(st.text(max_size=100))
def test_a_term_finds_just_its_value_or_there_is_none(value: str) -> None:
    with suppress(Invalid):
        assert parse(term("graph", value)) == Filter(columns=(("graph_id", (value,)),))


@pytest.mark.parametrize("value", ["billing", "two words", 'say "hi"', "it's", "a:b", "100%"])
def test_ordinary_names_have_a_term(value: str) -> None:
    assert parse(f"is:pending {term('graph', value)}") == Filter(OPEN, (("graph_id", (value,)),))
