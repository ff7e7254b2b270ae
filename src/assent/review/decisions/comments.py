"""The comments that reach an agent with a decision: those on its current question, written before the decision
by people or by the agent itself. The model trusts them as its reviewers' words, so other programs do not reach it.

A dialect delivers them where its answer has a text that a model reads. Every run that delivers a decision has them in
its metadata, and the gate adds them to the result of an approved call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from assent.identity.model.access import Kind
from assent.identity.rows import users
from assent.kernel.store.transaction import Tx
from assent.review.model.items import Item
from assent.review.model.secrets import Text
from assent.review.rows import items


@dataclass(frozen=True, slots=True)
class Said:
    actor: str
    name: str
    text: str
    at: datetime

    def to_json(self) -> dict[str, str]:
        return {"actor": self.actor, "name": self.name, "text": self.text, "at": self.at.isoformat()}


def said_on(tx: Tx, item: Item, words: Callable[[], Text]) -> list[Said]:
    """The comments since the agent asked its current question. `words` are the secrets to remove. An edit by a reviewer
    is a revision too, but not another question."""
    if not items.size_of_comments(tx, item.id)[0]:
        return []
    known = words()
    asked = [revision for revision in items.revisions(tx, item.id) if not revision.edits]
    since = asked[-1].created_at if asked else None
    return [
        Said(row.actor, name_of(tx, row.actor) or row.actor, known.without(row.text), row.at)
        for row in items.comments_of(tx, item.id)
        if reaches_agent(item, row.actor)
        and (since is None or row.at >= since)
        and (item.decided_at is None or row.at <= item.decided_at)
    ]


def reaches_agent(item: Item, actor: str) -> bool:
    return actor == item.requester or actor.partition(":")[0] == Kind.REVIEWER


def spelled(said: Sequence[Said]) -> str:
    return "\n".join(["Comments:", *(_indented(f"{comment.name}: {comment.text}") for comment in said)])


def _indented(text: str) -> str:
    """Further lines are indented: none looks like the comment of another author."""
    return "\n    ".join(text.splitlines())


def name_of(tx: Tx, actor: str) -> str | None:
    """The name of `reviewer:<id>`, if that user exists."""
    kind, _, user_id = actor.partition(":")
    user = users.by_id(tx, user_id) if kind == Kind.REVIEWER else None
    return user.name if user else None
