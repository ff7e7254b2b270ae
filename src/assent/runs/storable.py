"""Refuses integers that a checkpoint cannot store, before they get into a thread: each run with them would fail."""

from __future__ import annotations

from typing import Any

from assent.errors import Invalid
from assent.kernel import fair_threads
from assent.kernel.limits import is_small
from assent.review.dialects.verdicts import unstorable


async def require_storable(**values: Any) -> None:
    for name, value in values.items():
        if is_small(value):
            _require(value, name)
        else:
            await fair_threads.beside(_require, value, name)


def _require(value: Any, name: str) -> None:
    for problem in unstorable(value, name):
        raise Invalid(f"{problem.path} {problem.message}", hint="send it as a text or as a decimal number")
