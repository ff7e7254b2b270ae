"""Amounts of money as texts of digits: read, grouped and added exactly, or left as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Context, Decimal

_AMOUNT = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?")
_EXACT = Context(prec=400)  # wider than any sum of what is read here


def read(text: str) -> Decimal | None:
    """The amount; None where there could be two readings of it (`12,50`, `１２`, `NaN`)."""
    return Decimal(text) if _AMOUNT.fullmatch(text) else None


def grouped(text: str) -> str:
    """With its thousands apart, and every digit that it had; what is no plain amount stays as it is."""
    amount = read(text)
    return text if amount is None else format(amount, ",f")


def total(texts: Iterable[str]) -> str | None:
    """The exact sum; None as soon as one of them is no plain amount."""
    found = Decimal(0)
    for text in texts:
        amount = read(text)
        if amount is None:
            return None
        found = _EXACT.add(found, amount)
    return format(found, "f")
