"""A decision as every surface shows it: with the name of who decided, and without the secrets of what was decided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from assent.domain.access import Kind
from assent.domain.questions import Verdict
from assent.domain.secrets import Path, kept, masked, secret_paths
from assent.services.carrying import Case, case_of
from assent.store import decisions, items, users
from assent.store.decisions import Decision
from assent.store.transaction import Tx


def decision_view(tx: Tx, decision: Decision | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    item = items.get(tx, decision.item_id)
    secrets = _secrets(case_of(tx, item)) if item else {}
    return {
        "id": decision.id,
        "kind": decision.kind,
        "revision": decision.revision,
        "hash": decision.hash,
        "actions": [decisions.verdict_to_json(_masked(verdict, secrets)) for verdict in decision.verdicts],
        "notes": decision.notes,
        "actor": decision.actor,
        "actor_name": name_of(tx, decision.actor),
        "via": decision.via,
        "standing": decision.standing,
        "closes": decision.closes,
        "at": decision.at.isoformat(),
    }


def name_of(tx: Tx, actor: str) -> str | None:
    """The name behind `reviewer:<id>`, as long as the person has one here."""
    kind, _, user_id = actor.partition(":")
    user = users.by_id(tx, user_id) if kind == Kind.REVIEWER else None
    return user.name if user else None


def with_secrets(case: Case, verdict: Verdict) -> Verdict:
    """Who edits what was shown to them with its secrets masked leaves these as they are."""
    action = next((one for one in case.question.actions if one.key == verdict.key), None)
    if action is None or verdict.args is None:
        return verdict
    return replace(verdict, args=kept(verdict.args, action.args, _secrets(case)[action.key]))


def _secrets(case: Case) -> dict[str, list[Path]]:
    return {action.key: secret_paths(action.schema, case.terms.mask) for action in case.question.actions}


def _masked(verdict: Verdict, secrets: dict[str, list[Path]]) -> Verdict:
    paths = secrets.get(verdict.key, [])
    return replace(verdict, args=masked(verdict.args, paths)) if paths and verdict.args is not None else verdict
