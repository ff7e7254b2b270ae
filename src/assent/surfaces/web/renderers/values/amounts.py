"""Exact arithmetic on amounts of money in text form."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Context, Decimal

from assent.review.model.calls.payments import read

_EXACT = Context(prec=400)  # more digits than any sum of these amounts


def grouped(text: str) -> str:
    """Adds thousands separators and keeps every digit; other texts are unchanged."""
    amount = read(text)
    return text if amount is None else format(amount, ",f")


def total(texts: Iterable[str]) -> str | None:
    """The exact sum; None if an amount is ambiguous."""
    result = Decimal(0)
    for text in texts:
        amount = read(text)
        if amount is None:
            return None
        result = _EXACT.add(result, amount)
    return format(result, "f")
