"""The questions of a deployment's thread that items can hold."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from assent.kernel import fair_threads
from assent.kernel.limits import Limits
from assent.review import thread_items

log = logging.getLogger(__name__)

Questions = list[Mapping[str, Any]]


async def acceptable(limits: Limits, asked: Sequence[Mapping[str, Any]], **thread: str) -> Questions:
    """Leaves out questions that no item can hold, such as one of many megabytes, and all of a thread that asks too many
    at once. The slow work for the others is done here, before any transaction. `thread` names it in the log."""
    kept, flaws = await fair_threads.beside(_judged, limits, asked)
    for flaw in flaws:
        log.warning("question of a deployment refused", extra={**thread, "reason": flaw})
    return kept


def _judged(limits: Limits, asked: Sequence[Mapping[str, Any]]) -> tuple[Questions, list[str]]:
    judged = [(question, thread_items.flaw(limits, [question])) for question in asked]
    kept, flaws = [question for question, flaw in judged if flaw is None], [flaw for _, flaw in judged if flaw]
    if together := thread_items.flaw(limits, kept):
        return [], [*flaws, together]
    return kept, flaws
