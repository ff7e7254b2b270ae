"""The words of the full-text index, and the terms that menus add to a filter."""

import pytest

from assent.errors import Invalid
from assent.review.model.search import filters, search_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Refund_payment 4711", ["refund", "payment", "4711"]),
        ("Café ＡＢＣ", ["cafe", "abc"]),
        ("退款订单", ["退款", "款订", "订单", "单"]),
        ("第4711号", ["第", "4711", "号"]),
        ("!? \"'§ 🎉", []),
        ("x" * 101, []),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert search_words.words_of(text) == words


def test_index_of_a_long_text_ends_at_the_limit() -> None:
    assert len(search_words.indexed(["§tpayment"], ["word " * 9000])) == search_words.MOST_WORDS


@pytest.mark.parametrize(
    ("source", "field", "value", "toggled"),
    [
        ("", "kind", "payment", "kind:payment"),
        ("kind:payment", "kind", "shell", "kind:payment,shell"),
        ("refund kind:payment,shell", "kind", "payment", "refund kind:shell"),
        ("kind:payment", "kind", "payment", ""),
        ("sort:risk", "sort", "deadline", "sort:deadline"),
        ("is:claimed", "is", "gated", "is:claimed is:gated"),
        ("is:claimed is:gated", "is", "gated", "is:claimed"),
        ("agent:bot", "agent", "big bot", 'agent:"bot,big bot"'),
        ('agent:"bot,big bot"', "agent", "bot", 'agent:"big bot"'),
    ],
)
def test_value_of_a_menu_is_added_and_removed(source: str, field: str, value: str, toggled: str) -> None:
    assert filters.toggled(source, field, value) == toggled
    filters.parse(toggled)


def test_order_is_part_of_the_filter() -> None:
    wanted = filters.parse("refund sort:deadline group:agent")
    assert (wanted.words, wanted.sort, wanted.group) == (("refund",), "deadline", "agent")
    for unknown in ("sort:title", "group:risk", "sort:"):
        with pytest.raises(Invalid, match="unknown value"):
            filters.parse(unknown)
