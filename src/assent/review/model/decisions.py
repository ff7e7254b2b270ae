"""A decision: one person's verdicts on one revision of an item. Decisions are append-only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from assent.review.model.questions import Verb, Verdict

DECISION = "decision"
REVISION_REQUEST = "revision_request"


@dataclass(frozen=True, slots=True)
class Decision:
    """`standing` is false once the decision was undone, retracted, or dismissed by a newer revision."""

    id: str
    item_id: str
    revision: int
    hash: str
    kind: str
    verdicts: tuple[Verdict, ...]
    notes: str | None
    actor: str
    via: str
    standing: bool
    closes: bool
    delivery_id: str | None
    at: datetime

    @property
    def bare(self) -> bool:
        """Whether it is a plain approval, without any text or change by its author."""
        plain = all(verdict.verb is Verb.APPROVE and verdict.message is None for verdict in self.verdicts)
        return bool(self.verdicts) and plain and not self.notes


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Leaves out empty fields."""
    fields = {"key": verdict.key, "verb": verdict.verb, "args": verdict.args}
    fields |= {"name": verdict.name, "message": verdict.message}
    return {name: value for name, value in fields.items() if value is not None}


def verdicts_from_json(stored: Sequence[Mapping[str, Any]]) -> tuple[Verdict, ...]:
    return tuple(Verdict(**{**entry, "verb": Verb(entry["verb"])}) for entry in stored)
