"""Payments, refunds and transfers: amount, currency, payee, and the exact total of several."""

from __future__ import annotations

from assent.review.model.calls import payments as calls
from assent.review.model.calls.payments import AMOUNT, CURRENCY, is_payment
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.blocks import Caution, Facts, Money, Rendering, Table
from assent.surfaces.web.renderers.plain import plain
from assent.surfaces.web.renderers.registry import renders
from assent.surfaces.web.renderers.values import amounts
from assent.surfaces.web.renderers.values.reading import (
    Args,
    View,
    actions,
    call,
    entries,
    first,
    mapping,
    only,
    others,
    text,
)

_PAYEE = ("payee", "recipient", "to", "beneficiary", "vendor", "customer", "name")
_ACCOUNT = ("account", "iban", "account_number", "to_account", "destination")
_LISTS = ("payments", "transfers", "lines", "items")


def moves_money(item: View) -> bool:
    called = actions(item)
    return bool(called) and all(
        calls.moves_money(str(action.get("name") or ""), mapping(action.get("args"))) for action in called
    )


def sentence(item: View) -> str | None:
    """Such as: Refund €249.90 to order 4711."""
    name, payment = call(item)
    if not is_payment(payment) or not isinstance(first(payment, *_LISTS), str | None):
        return None
    amount = amounts.priced(plain(payment[AMOUNT]), text(payment, *CURRENCY))
    order, payee = first(payment, *_ORDER), _payee(payment)
    verb = next((word for word, stem in _VERBS.items() if stem in name.lower()), _("Pay"))
    if order is not None:
        return _("%(verb)s %(amount)s to order %(order)s") % {"verb": _(verb), "amount": amount, "order": plain(order)}
    if isinstance(payee, str | int):
        return _("%(verb)s %(amount)s to %(payee)s") % {"verb": _(verb), "amount": amount, "payee": plain(payee)}
    return f"{_(verb)} {amount}"


_VERBS = {"Refund": "refund", "Transfer": "transfer", "Charge": "charge", "Wire": "wire"}
_ORDER = ("order", "order_id", "order_number")


@renders("payment", "money", "transfer", "refund", label="Payment", icon="money", matches=moves_money, title=sentence)
def money(item: View) -> Rendering | None:
    listed = entries(first(only(item), *_LISTS)) or [action.get("args") for action in actions(item)]
    payments = [mapping(payment) for payment in listed]
    if not payments or not all(map(is_payment, payments)):
        return None
    return _one(payments[0]) if len(payments) == 1 else _several(payments)


def _one(payment: Args) -> Rendering:
    rest = others(payment, AMOUNT, CURRENCY, _PAYEE, _ACCOUNT)
    facts = {"Payee": _payee(payment), "Account": first(payment, *_ACCOUNT), **rest}
    return Rendering(Money(payment[AMOUNT], text(payment, *CURRENCY)), *_cautions([payment]), Facts(facts))


def _several(payments: list[Args]) -> Rendering:
    currencies = {text(payment, *CURRENCY) for payment in payments}
    total = amounts.total(plain(payment[AMOUNT]) for payment in payments) if len(currencies) == 1 else None
    rows = [
        (_payee(payment) or "–", first(payment, *_ACCOUNT) or "–", f"{_digits(payment)} {text(payment, *CURRENCY)}")
        for payment in payments
    ]
    return Rendering(
        Money(total, next(iter(currencies)), _("Total")) if total is not None else None,
        None if total is not None else Caution("No total: the currencies differ or an amount is ambiguous."),
        *_cautions(payments),
        Table(("Payee", "Account", "Amount"), rows),
    )


def _cautions(payments: list[Args]) -> list[Caution]:
    return [Caution(caution.text, caution.detail) for caution in calls.cautions(payments)]


def _payee(payment: Args) -> object:
    """The payee; its name if it has no other field."""
    payee = first(payment, *_PAYEE)
    return text(mapping(payee), "name") if mapping(payee).keys() == {"name"} else payee


def _digits(payment: Args) -> str:
    return amounts.filled(plain(payment[AMOUNT]), text(payment, *CURRENCY))
