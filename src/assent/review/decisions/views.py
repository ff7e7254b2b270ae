"""The view of a decision for every surface: with the decider's name, and without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from assent.errors import Problem
from assent.kernel.store.transaction import Tx
from assent.review.decisions.comments import name_of
from assent.review.decisions.consequences import Case, case_of
from assent.review.model.decisions import Decision, verdict_to_json
from assent.review.model.questions import Verb, Verdict
from assent.review.model.secrets import masks_in
from assent.review.rows import items


def decision_view(tx: Tx, decision: Decision | None, case: Case | None = None) -> dict[str, Any] | None:
    """`case` is the decided item, if the caller has it."""
    if decision is None:
        return None
    if case is None and (item := items.get(tx, decision.item_id)) is not None:
        case = case_of(tx, item)
    verdicts = [case.masked(verdict) for verdict in decision.verdicts] if case else []
    return {
        "id": decision.id,
        "kind": decision.kind,
        "revision": decision.revision,
        "hash": decision.hash,
        "actions": [verdict_to_json(verdict) for verdict in verdicts],
        "notes": case.words.without(decision.notes) if case and decision.notes else decision.notes,
        "actor": decision.actor,
        "actor_name": name_of(tx, decision.actor),
        "via": decision.via,
        "standing": decision.standing,
        "closes": decision.closes,
        "at": decision.at.isoformat(),
    }


def with_secrets(case: Case, verdict: Verdict) -> Verdict:
    """A mask that an edit leaves in place of a secret means that secret: the editor did not see it."""
    action = next((candidate for candidate in case.question.actions if candidate.key == verdict.key), None)
    if action is None or verdict.args is None:
        return verdict
    return replace(verdict, args=case.covers[action.key].kept(verdict.args, action.args))


def masked_parts(verdicts: Sequence[Verdict]) -> list[Problem]:
    """Problems for each mask that would reach the agent instead of the value."""
    parts_by_place = (
        (
            f"actions[{index}]",
            {"args": verdict.args, **({"message": verdict.message} if verdict.verb is Verb.RESPOND else {})},
        )
        for index, verdict in enumerate(verdicts)
    )
    paths = [path for place, parts in parts_by_place for path in masks_in(parts, place)]
    return [Problem(path, "contains the mask of a secret: send the value itself") for path in paths]
