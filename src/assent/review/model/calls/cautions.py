"""A caution: what a person should know before approving a call, and how risky that makes it."""

from __future__ import annotations

from dataclasses import dataclass

from assent.review.model.policies import Risk


@dataclass(frozen=True, slots=True)
class Caution:
    """`detail` quotes the arguments, so it may contain secrets. Without a risk, it only informs."""

    text: str
    detail: str = ""
    risk: Risk | None = None
