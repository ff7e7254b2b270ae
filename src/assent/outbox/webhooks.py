"""Sends a webhook: one signed POST, whose response determines the result of the delivery.

Callers can read why a delivery failed. Until a receiver has answered, the text and the retries are the same for every
reason (an unknown name, an internal name, a closed port), so that callers cannot probe the network. The log has the
reason.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

import httpx

from assent.errors import TargetRefused
from assent.outbox import webhook_signatures
from assent.outbox.client import TIMEOUT, Answer, Outbound
from assent.outbox.model import Delivery, Failure

log = logging.getLogger(__name__)

NOT_REACHED = "the receiver could not be reached, or did not answer in time"
_GONE = 410
_LONGEST_REASON = 300


class WebhookCarrier:
    def __init__(self, outbound: Outbound, secret: Callable[[], bytes], *, timeout: float = TIMEOUT) -> None:
        self._outbound = outbound
        self._timeout = timeout
        self._secret = secret

    async def __call__(self, delivery: Delivery) -> Failure | None:
        """None on success. The receiver's response body is neither stored nor shown."""
        try:
            return _judged(await self._post(delivery))
        except TargetRefused as refused:
            return _not_reached(delivery, refused) if refused.by_name else Failure(refused.message, final=True)
        except (TimeoutError, httpx.TimeoutException, httpx.ConnectError) as error:
            return _not_reached(delivery, error)
        except httpx.HTTPError as error:
            return Failure(_explained(error))

    async def _post(self, delivery: Delivery) -> Answer:
        sent_at = delivery.attempted_at
        assert sent_at is not None, "a claimed delivery has been attempted"
        content = webhook_signatures.stamped(delivery.body, sent_at)
        key = webhook_signatures.signing_key(self._secret(), delivery.tenant)
        headers = webhook_signatures.headers(key, delivery.id, sent_at, content)
        headers["content-type"] = "application/json"
        return await self._outbound.send(
            "POST",
            delivery.target,
            headers=headers,
            credentials=self._outbound.targets.rules.headers,
            content=content,
            timeout=self._timeout,
        )


def _judged(answer: Answer) -> Failure | None:
    if 200 <= answer.status < 300:
        return None
    reason = f"the receiver answered {answer.status}"
    return Failure(reason, final=answer.status == _GONE, wait=_asked_to_wait(answer.headers))


def _asked_to_wait(headers: httpx.Headers) -> timedelta:
    asked = headers.get("retry-after", "")
    return timedelta(seconds=int(asked)) if asked.isdecimal() and len(asked) < 10 else timedelta()


def _not_reached(delivery: Delivery, error: Exception) -> Failure:
    text = "".join(character for character in str(error) if character.isprintable())
    reason = f"{type(error).__name__}: {text}"[:_LONGEST_REASON]
    log.info("deliver webhook failed: receiver not reached", extra={"delivery": delivery.id, "reason": reason})
    return Failure(NOT_REACHED)


def _explained(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.TooManyRedirects):
        return "the receiver redirects too often"
    return "the connection to the receiver failed, or its answer was not HTTP"
