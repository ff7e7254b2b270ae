"""What a run's webhook says, and how its receiver can know that it is from us (standardwebhooks.com).

The body is LangGraph's: the run's row with its outcome. What is ours is that it tells *waiting for a person* from
*done*: `waiting`, with the questions in `interrupts`. The signature is made per attempt over id, time and body.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from assent.domain.runs import Outcome, Run, RunStatus, run_view

SECRET_PREFIX = "whsec_"  # noqa: S105 - how every such secret begins
_SENT_AT = ',"webhook_sent_at":"%s"}'


def body(run: Run, outcome: Outcome, pending: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`run` is the row as it ended; `pending` are the questions that its thread waits on."""
    stopped_on_the_way = outcome.status is RunStatus.SUCCESS and bool(outcome.next)
    return run_view(run) | {
        "status": "rollback" if outcome.rolled_back else outcome.status,
        "run_started_at": run.started_at and run.started_at.isoformat(),
        "run_ended_at": run.ended_at and run.ended_at.isoformat(),
        "values": outcome.values,
        "error": outcome.error,
        "waiting": bool(pending) or stopped_on_the_way,
        "interrupts": list(pending),
        "next": list(outcome.next),
    }


def stamped(text: str, sent_at: datetime) -> bytes:
    """The stored text of a body with the time of this attempt in it. Appended rather than parsed and written again:
    whatever numbers and characters were stored stay as they are."""
    return (text.removesuffix("}") + _SENT_AT % sent_at.isoformat()).encode()


def signing_key(secret: bytes, tenant: str) -> bytes:
    """Each tenant's own, so that what one tenant's receiver knows forges nothing for another's."""
    return hmac.digest(secret, b"assent webhooks of " + tenant.encode(), "sha256")


def shown_key(key: bytes) -> str:
    """The key as receivers are given it, and as the Standard Webhooks libraries take it."""
    return SECRET_PREFIX + base64.b64encode(key).decode()


def headers(key: bytes, delivery_id: str, sent_at: datetime, content: bytes) -> dict[str, str]:
    timestamp = str(int(sent_at.timestamp()))
    signed = b".".join((delivery_id.encode(), timestamp.encode(), content))
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {"webhook-id": delivery_id, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}
