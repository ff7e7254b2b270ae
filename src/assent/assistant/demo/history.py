"""Thirty days of decisions that could have been made, for the pages of the demo. The same in every demo."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from assent.review.model.questions import Verb
from assent.review.samples import Sample

DAYS = 30
_SEED = 20
_PEOPLE = (("ana", 5), ("ben", 3), ("chen", 2))
_CUSTOMERS = ("mira", "tomas", "lena", "yusuf", "ines", "paul", "wei", "sara")
_REASONS = ("arrived broken", "never arrived", "wrong size", "ordered twice", "late by two weeks")
_REFUSALS = ("The order was already refunded.", "Not a customer of ours.", "Ask for photos first.", "Wrong recipient.")
_NOTES = ("Shorter, and without the discount.", "Please name the order.", "Write to the billing address.")

Args = dict[str, Any]


def history(now: datetime) -> list[Sample]:
    """Oldest first. Nothing of it is later than yesterday."""
    chance = random.Random(_SEED)  # noqa: S311 - no secret depends on it
    return [sample for day in range(DAYS - 1, 0, -1) for sample in _day(chance, now, day)]


def _day(chance: random.Random, now: datetime, day: int) -> Iterator[Sample]:
    start = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=day)
    busy = start.weekday() < 5
    for _ in range(chance.randint(7, 12) if busy else chance.randint(1, 3)):
        asked_at = start + timedelta(hours=chance.uniform(7, 18))
        yield _sample(chance, now - asked_at, busy=busy)


def _sample(chance: random.Random, age: timedelta, *, busy: bool) -> Sample:
    tool, agent, make, rates = chance.choices(_TOOLS, weights=[5, 6, 2, 3, 2, 1])[0]
    args = make(chance)
    minutes = chance.lognormvariate(2.0 if busy else 4.0, 1.1)
    ending = chance.choices(("approve", "edit", "reject", "expire"), weights=rates)[0]
    verb = None if ending == "expire" else Verb(ending)
    return Sample(
        tool=tool,
        args=args,
        agent=agent,
        age=age,
        wait=timedelta(days=7) if verb is None and age > timedelta(days=7) else timedelta(minutes=min(minutes, 600)),
        reviewer=chance.choices([name for name, _ in _PEOPLE], weights=[share for _, share in _PEOPLE])[0],
        verb=verb,
        edited=_edited(args) if verb is Verb.EDIT else None,
        message=chance.choice(_REFUSALS) if verb is Verb.REJECT else None,
        sent_back=chance.choice(_NOTES) if tool == "send_email" and chance.random() < 0.12 else None,
    )


def _edited(args: Args) -> Args:
    if "amount" in args:
        return {**args, "amount": round(args["amount"] * 0.8, 2)}
    return {**args, "note": "checked"}


def _refund(chance: random.Random) -> Args:
    amount = round(chance.lognormvariate(3.8, 0.8), 2)
    return {
        "order_id": str(chance.randint(4100, 4899)),
        "amount": amount,
        "currency": "EUR",
        "reason": chance.choice(_REASONS),
    }


def _mail(chance: random.Random) -> Args:
    name = chance.choice(_CUSTOMERS)
    subject = f"Your order {chance.randint(4100, 4899)}"
    body = f"Hello {name.title()},\n\nthank you for writing. We looked into it.\n\nKind regards"
    return {"to": f"{name}@example.com", "subject": subject, "body": body}


def _invoice(chance: random.Random) -> Args:
    amount = round(chance.lognormvariate(7.5, 0.9), 2)
    return {"invoice": f"2026-{chance.randint(60, 180)}", "amount": amount, "currency": "EUR", "payee": "Nordwind Ltd"}


def _ticket(chance: random.Random) -> Args:
    return {"ticket": chance.randint(900, 1400), "status": chance.choice(("solved", "waiting", "escalated"))}


def _limit(chance: random.Random) -> Args:
    before = chance.choice((300, 600, 1200))
    return {"service": chance.choice(("checkout", "search", "mail")), "before": before, "after": before * 2}


def _files(chance: random.Random) -> Args:
    return {"path": f"/srv/uploads/{chance.randint(4100, 4899)}", "recursive": chance.random() < 0.5}


_TOOLS: tuple[tuple[str, str, Callable[[random.Random], Args], tuple[float, float, float, float]], ...] = (
    ("refund_payment", "support", _refund, (0.74, 0.11, 0.12, 0.03)),
    ("send_email", "support", _mail, (0.8, 0.1, 0.08, 0.02)),
    ("pay_invoice", "billing", _invoice, (0.86, 0.03, 0.09, 0.02)),
    ("update_ticket", "support", _ticket, (0.93, 0.02, 0.03, 0.02)),
    ("set_rate_limit", "operations", _limit, (0.7, 0.14, 0.12, 0.04)),
    ("delete_files", "operations", _files, (0.4, 0.05, 0.45, 0.1)),
)
