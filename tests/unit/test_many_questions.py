"""The questions of one stop are bounded in sum: one transaction stores their items."""

from __future__ import annotations

from typing import Any

import pytest

from assent.kernel.limits import MOST_ITEM_VALUES, MOST_QUESTIONS, Limits
from assent.review import thread_items

LIMITS = Limits()


def asked(count: int, value: Any = "Which?") -> list[dict[str, Any]]:
    return [{"id": str(number), "value": value, "response_schema": None} for number in range(count)]


@pytest.mark.parametrize(
    ("most", "value"),
    [(MOST_QUESTIONS, "Which?"), (4, "x" * 250_000), (4, {"args": [1] * (MOST_ITEM_VALUES - 100)})],
)
def test_questions_that_are_fine_one_by_one_are_too_many(most: int, value: Any) -> None:
    assert thread_items.flaw(LIMITS, asked(most + 1, value))
    assert thread_items.flaw(LIMITS, asked(1, value)) is None
    assert thread_items.flaw(LIMITS, asked(most, value)) is None, "the control: as many as there may be"
