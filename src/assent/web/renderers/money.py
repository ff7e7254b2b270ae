"""Payments, refunds and transfers: how much, in which currency, to whom; several with their exact total."""

from __future__ import annotations

import re

from assent.web.language import gettext as _
from assent.web.renderers import amounts
from assent.web.renderers.blocks import Caution, Facts, Money, Rendering, Table
from assent.web.renderers.plain import plain
from assent.web.renderers.reading import Args, View, actions, entries, first, mapping, only, others, text
from assent.web.renderers.registry import renders

_MOVES = re.compile(r"(?i)transfer|pay(?:ment|out|_|$)|refund|charge|invoice|wire|remit")
_AMOUNT, _CURRENCY = "amount", ("currency", "currency_code")
_PAYEE = ("payee", "recipient", "to", "beneficiary", "vendor", "customer", "name")
_ACCOUNT = ("account", "iban", "account_number", "to_account", "destination")
_LISTS = ("payments", "transfers", "lines", "items")


def moves_money(item: View) -> bool:
    called = actions(item)
    return bool(called) and all(
        _MOVES.search(str(one.get("name") or "")) and _is_payment(mapping(one.get("args"))) for one in called
    )


@renders("payment", "money", "transfer", "refund", label="Payment", icon="money", matches=moves_money)
def money(item: View) -> Rendering | None:
    listed = entries(first(only(item), *_LISTS)) or [one.get("args") for one in actions(item)]
    payments = [mapping(one) for one in listed]
    if not payments or not all(map(_is_payment, payments)):
        return None
    return _one(payments[0]) if len(payments) == 1 else _several(payments)


def _one(payment: Args) -> Rendering:
    rest = others(payment, _AMOUNT, _CURRENCY, _PAYEE, _ACCOUNT)
    facts = {"Payee": _payee(payment), "Account": first(payment, *_ACCOUNT), **rest}
    return Rendering(Money(payment[_AMOUNT], text(payment, *_CURRENCY)), *_cautions([payment]), Facts(facts))


def _several(payments: list[Args]) -> Rendering:
    currencies = {text(one, *_CURRENCY) for one in payments}
    total = amounts.total(plain(one[_AMOUNT]) for one in payments) if len(currencies) == 1 else None
    rows = [
        (_payee(one) or "–", first(one, *_ACCOUNT) or "–", f"{_digits(one)} {text(one, *_CURRENCY)}")
        for one in payments
    ]
    return Rendering(
        Money(total, next(iter(currencies)), _("Total")) if total is not None else None,
        None if total is not None else Caution("There is no total: the currencies or the amounts differ in kind."),
        *_cautions(payments),
        Table(("Payee", "Account", "Amount"), rows),
    )


def _cautions(payments: list[Args]) -> list[Caution]:
    read = [(plain(one[_AMOUNT]), amounts.read(plain(one[_AMOUNT]))) for one in payments]
    unclear = [text for text, amount in read if amount is None]
    negative = [text for text, amount in read if amount is not None and amount < 0]
    return [
        *([Caution("The amount can be read in more than one way.", ", ".join(unclear))] if unclear else []),
        *([Caution("The amount is negative: money flows the other way.", ", ".join(negative))] if negative else []),
    ]


def _is_payment(args: Args) -> bool:
    amount = args.get(_AMOUNT)
    return isinstance(amount, str | int | float) and not isinstance(amount, bool) and bool(text(args, *_CURRENCY))


def _payee(payment: Args) -> object:
    """A name, where the payee is nothing but that."""
    payee = first(payment, *_PAYEE)
    return text(mapping(payee), "name") if mapping(payee).keys() == {"name"} else payee


def _digits(payment: Args) -> str:
    return amounts.grouped(plain(payment[_AMOUNT]))
