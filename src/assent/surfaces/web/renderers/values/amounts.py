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


def filled(text: str, currency: str) -> str:
    """As `grouped`, with the cents of a known currency filled up: `249.90`."""
    amount, sign = read(text), _SIGNS.get(currency.upper())
    if amount is None or sign is None or sign in _WHOLE:
        return grouped(text)
    is_short = 0 <= -int(amount.as_tuple().exponent) < 2
    return format(amount.quantize(Decimal("0.01"), context=_EXACT) if is_short else amount, ",f")


def priced(text: str, currency: str) -> str:
    """The amount with its currency: `€249.90`, `12 XAU`. Every digit stays; cents are filled up."""
    digits, sign = filled(text, currency), _SIGNS.get(currency.upper())
    if read(text) is None or sign is None:
        return f"{digits} {currency}"
    return f"-{sign}{digits[1:]}" if digits.startswith("-") else f"{sign}{digits}"


_SIGNS = {"EUR": "€", "USD": "$", "GBP": "£", "JPY": "¥", "CNY": "CN¥", "INR": "₹", "KRW": "₩", "CHF": "CHF "}
_WHOLE = frozenset({"¥", "₩"})


def total(texts: Iterable[str]) -> str | None:
    """The exact sum; None if an amount is ambiguous."""
    result = Decimal(0)
    for text in texts:
        amount = read(text)
        if amount is None:
            return None
        result = _EXACT.add(result, amount)
    return format(result, "f")
