"""Carries a webhook: one signed POST, and what its answer means for the delivery."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import httpx

from assent.domain import webhooks
from assent.domain.deliveries import Delivery, Failure
from assent.errors import TargetRefused
from assent.notify.outbound import TIMEOUT, Answer, Outbound

_GONE = 410
_LONGEST_REASON = 300


class WebhookCarrier:
    def __init__(self, outbound: Outbound, secret: Callable[[], bytes], *, timeout: float = TIMEOUT) -> None:
        self._outbound = outbound
        self._timeout = timeout
        self._secret = secret

    async def __call__(self, delivery: Delivery) -> Failure | None:
        """None where the receiver has it. What the receiver wrote in its answer is neither kept nor shown."""
        try:
            return _judged(await self._post(delivery))
        except TargetRefused as refused:
            return Failure(refused.message, final=True)
        except (TimeoutError, httpx.TimeoutException):
            return Failure("the receiver did not answer in time")
        except httpx.HTTPError as error:
            return Failure(_explained(error))

    async def _post(self, delivery: Delivery) -> Answer:
        sent_at = delivery.attempted_at
        assert sent_at is not None, "a claimed delivery has been attempted"
        content = webhooks.stamped(delivery.body, sent_at)
        key = webhooks.signing_key(self._secret(), delivery.tenant)
        headers = webhooks.headers(key, delivery.id, sent_at, content)
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


def _explained(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.ConnectError):
        told = "".join(character for character in str(error) if character.isprintable())
        return f"the receiver cannot be reached: {told}"[:_LONGEST_REASON]
    if isinstance(error, httpx.TooManyRedirects):
        return "the receiver redirects too often"
    return "the connection to the receiver broke off, or its answer was not HTTP"
