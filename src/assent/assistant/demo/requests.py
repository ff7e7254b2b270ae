"""Example items that the demo's agents create through the API, without a run. Nothing is ever executed."""

from __future__ import annotations

from assent.review.requests import Request

CHANGE = Request(
    type="config_change",
    title="Raise the rate limit of the checkout service",
    description="Checkout answered 429 to **2.1 %** of its calls last week. Nothing is changed before someone agrees.",
    payload={
        "file": "checkout/limits.toml",
        "changes": [
            {"field": "rate_limit.per_minute", "from": 600, "to": 1200},
            {"field": "rate_limit.burst", "from": 50, "to": 100},
            {"field": "timeouts.payment_seconds", "from": 30, "to": 20},
            {"field": "alerts.notify", "from": None, "to": "ops@example.com"},
        ],
    },
    entity={"type": "service", "id": "checkout"},
    dedupe_key="demo:config_change",
)

MIGRATION = Request(
    type="sql",
    title="Clear out the carts that nobody came back to",
    description="Carts without an order for a year, and what was noted about them, take up **38 GB**.",
    payload={
        "database": "shop",
        "query": (
            "DELETE FROM cart_lines\n"
            " WHERE cart_id IN (SELECT id FROM carts WHERE touched_at < now() - interval '1 year');\n\n"
            "TRUNCATE cart_events;\n"
        ),
    },
    entity={"type": "database", "id": "shop"},
    dedupe_key="demo:sql",
)

UPLOAD = Request(
    type="knowledge_upload",
    title="Add three documents to the handbook",
    description="They answer questions that support was asked 41 times last month.",
    payload={
        "collection": "handbook",
        "files": [
            {
                "name": "returns.md",
                "type": "text/markdown",
                "content": (
                    "# Returns\n\nA parcel can be sent back within 30 days. Refunds take up to five working days "
                    "and go to the card that was charged.\n\n"
                    "## What cannot be returned\n\nGift cards and opened software."
                ),
            },
            {"name": "warranty.pdf", "type": "application/pdf", "size": 184320},
            {"name": "shipping-zones.csv", "type": "text/csv", "size": 9127},
        ],
    },
    entity={"type": "collection", "id": "handbook"},
    dedupe_key="demo:knowledge_upload",
)

PAYMENT = Request(
    type="payment",
    title="Pay the invoice of Nordwind Ltd",
    description="Invoice 2026-118 matches the order and the delivery note. It is due on Friday.",
    payload={
        "amount": "12480.50",
        "currency": "EUR",
        "payee": "Nordwind Ltd",
        "iban": "DE02 1203 0000 0000 2020 51",
        "reference": "Invoice 2026-118",
    },
    entity={"type": "invoice", "id": "2026-118"},
    dedupe_key="demo:payment",
)

ALL = (CHANGE, MIGRATION, UPLOAD, PAYMENT)
