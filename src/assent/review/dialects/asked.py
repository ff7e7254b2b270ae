"""Rebuilds the question of an item from one of its revisions."""

from __future__ import annotations

from assent.review.dialects import breakpoint, request, workspace_review
from assent.review.dialects.registry import recognise
from assent.review.model.items import Item, Revision, as_revised
from assent.review.model.questions import Interrupt, Question


def question_of(item: Item, revision: Revision) -> Question:
    """The question of a revision, including the reviewer's edits."""
    if item.dialect == breakpoint.NAME:
        return breakpoint.question(revision.asked["next"], revision.asked.get("notes", ()))
    if item.dialect == request.NAME:
        return as_revised(request.question(revision.asked), revision)
    interrupt = Interrupt(item.interrupt_id or item.id, revision.asked, revision.response_schema)
    if item.dialect == workspace_review.NAME:  # also a plain value of a system agent
        return as_revised(workspace_review.question(interrupt), revision)
    return as_revised(recognise(interrupt), revision)
