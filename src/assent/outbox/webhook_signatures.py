"""Signatures by which a receiver verifies a webhook (standardwebhooks.com), made per attempt over id, time and body."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import datetime

SECRET_PREFIX = "whsec_"  # noqa: S105 - how every such secret begins
_SENT_AT = ',"webhook_sent_at":"%s"}'


def stamped(text: str, sent_at: datetime) -> bytes:
    """The stored body with the time of this attempt. The time is appended rather than parsing and writing the body
    again, which could change numbers and characters."""
    return (text.removesuffix("}") + _SENT_AT % sent_at.isoformat()).encode()


def signing_key(secret: bytes, tenant: str) -> bytes:
    """The tenant's own key, so that one tenant's receiver cannot forge webhooks of another tenant."""
    return hmac.digest(secret, b"assent webhooks of " + tenant.encode(), "sha256")


def shown_key(key: bytes) -> str:
    """The key in the format of receivers and the Standard Webhooks libraries."""
    return SECRET_PREFIX + base64.b64encode(key).decode()


def headers(key: bytes, delivery_id: str, sent_at: datetime, content: bytes) -> dict[str, str]:
    timestamp = str(int(sent_at.timestamp()))
    signed = b".".join((delivery_id.encode(), timestamp.encode(), content))
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {"webhook-id": delivery_id, "webhook-timestamp": timestamp, "webhook-signature": f"v1,{signature}"}
