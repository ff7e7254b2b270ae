"""Rebuilds the question of an item from one of its revisions.

A decision looks at the same question several times, and so do the run and the gate that follow it. Those parsed lately
are kept by their exact content.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache

from assent.review.dialects import breakpoint, request, workspace_review
from assent.review.dialects.registry import recognise
from assent.review.model.items import Item, Revision, as_revised
from assent.review.model.questions import Interrupt, Question

_LARGEST_KEPT = 32 * 1024


def question_of(item: Item, revision: Revision) -> Question:
    """The question of a revision, including the reviewer's edits."""
    if item.dialect == breakpoint.NAME:
        return breakpoint.question(revision.asked["next"], revision.asked.get("notes", ()))
    if item.dialect == request.NAME:
        return as_revised(request.question(revision.asked), revision)
    interrupt = Interrupt(item.interrupt_id or item.id, revision.asked, revision.response_schema)
    if item.dialect == workspace_review.NAME:  # also a plain value of a system agent
        return as_revised(workspace_review.question(interrupt), revision)
    return as_revised(_recognised(interrupt), revision)


@dataclass(frozen=True, slots=True)
class _Stored:
    id: str
    text: str
    interrupt: Interrupt = field(compare=False)


def _recognised(interrupt: Interrupt) -> Question:
    text = json.dumps([interrupt.value, interrupt.response_schema])
    if len(text) > _LARGEST_KEPT:
        return recognise(interrupt)
    return _recognised_lately(_Stored(interrupt.id, text, interrupt))


@lru_cache(maxsize=32)
def _recognised_lately(stored: _Stored) -> Question:
    return recognise(stored.interrupt)
