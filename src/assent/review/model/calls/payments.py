"""Payments, refunds and transfers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.calls.arguments import Args, text
from assent.review.model.calls.cautions import Caution

AMOUNT, CURRENCY = "amount", ("currency", "currency_code")
_MOVES = re.compile(r"(?i)transfer|pay(?:ment|out|_|$)|refund|charge|invoice|wire|remit")
_EXACT = re.compile(r"[+-]?[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?")


def moves_money(name: str, args: Args) -> bool:
    return bool(_MOVES.search(name)) and is_payment(args)


def is_payment(args: Args) -> bool:
    amount = args.get(AMOUNT)
    return isinstance(amount, str | int | float) and not isinstance(amount, bool) and bool(text(args, *CURRENCY))


def written(amount: Json) -> str:
    """The amount as the agent wrote it."""
    return amount if isinstance(amount, str) else canonical.text(amount)


def read(amount: str) -> Decimal | None:
    """The amount; None if ambiguous (`12,50`, `１２`, `NaN`)."""
    return Decimal(amount) if _EXACT.fullmatch(amount) else None


def cautions(payments: Iterable[Args]) -> list[Caution]:
    amounts = [(text, read(text)) for text in (written(payment[AMOUNT]) for payment in payments)]
    unclear = [text for text, amount in amounts if amount is None]
    negative = [text for text, amount in amounts if amount is not None and amount < 0]
    return [
        *([Caution("The amount is ambiguous.", ", ".join(unclear))] if unclear else []),
        *([Caution("The amount is negative: money flows the other way.", ", ".join(negative))] if negative else []),
    ]
