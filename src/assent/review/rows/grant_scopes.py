"""The scope of a grant beyond its hash: the question that the person answered, and the run that asked it."""

from __future__ import annotations

from assent.kernel.canonical import Json
from assent.kernel.store.transaction import Tx
from assent.review.model.grants import Call, Grant, call_asked, mark, marks_of
from assent.review.rows import items
from assent.review.rows.attempts import Maker
from assent.threads.rows import runs
from assent.threads.rows.state.checkpoints import Attempt


def is_about(asked: Json, schema: Json, call: Call) -> bool:
    """Whether this question of the gate is about exactly this call of the agent."""
    return mark(*call_asked(asked, schema)) == call.mark


def is_of_gate(asked: Json, schema: Json) -> bool:
    return marks_of(asked, schema) is not None


def answers(tx: Tx, grant: Grant, call: Call) -> bool:
    """Whether the grant answers the question about this call. Two calls under one id differ in their arguments, until a
    person edits one of them to equal the other. Questions of another form name their calls by unique ids."""
    revision = items.revision(tx, grant.item_id, grant.revision)
    marks = marks_of(revision.asked, revision.response_schema)
    asks_one = marks is not None and "tool_call_id" in marks
    return not asks_one or is_about(revision.asked, revision.response_schema, call)


def holds_in(tx: Tx, grant: Grant, attempt: Maker) -> bool:
    """Whether the grant is valid in this run: the same call has another effect in another graph, for another actor, or
    with another config or context. If the run that asked was deleted, they are unknown. Without a server, and in a
    process elsewhere, no run is recorded."""
    if not isinstance(attempt, Attempt):
        return True
    item, run = items.get(tx, grant.item_id), runs.get(tx, attempt.run_id)
    asker = runs.get(tx, item.run_id) if item is not None and item.run_id else None
    return run is not None and asker is not None and asker.setting == run.setting
