"""The activity of an item in one feed: events, comments, notes and the differences between revisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assent.surfaces.web.text import diffs, words
from assent.surfaces.web.text.diffs import Change

View = Mapping[str, Any]
_LEFT_OUT = frozenset({"item.commented", "item.recommended", "item.claimed", "item.unclaimed"})
"""Comments are entries of their own; claims come and go with every edit, and the audit has them."""

_ICONS = {
    "item.created": "request",
    "item.revised": "revise",
    "item.resubmitted": "revise",
    "item.edited": "pencil",
    "item.approved": "check",
    "item.agreed": "check",
    "item.rejected": "cross",
    "item.revision_requested": "revise",
    "item.undone": "revise",
    "item.revealed": "eye",
    "grant.started": "tool",
    "grant.done": "check",
    "grant.failed": "cross",
    "grant.in_doubt": "alert",
    "item.assigned": "person",
    "item.taken": "person",
    "item.unassigned": "person",
    "comment": "question",
}
TOOK = "item.taken"
"""The kind of an entry about a person who became the owner without help."""

_REVISED = frozenset({"item.revised", "item.resubmitted", "item.edited"})


@dataclass(frozen=True, slots=True)
class Entry:
    at: str
    actor: str
    kind: str
    icon: str
    text: str = ""
    via: str = ""
    person: str | None = None
    """The person whom the event is about."""

    mentions: Sequence[str] = ()
    revision: View | None = None
    changes: Sequence[Change] = field(default_factory=list)

    @property
    def comment(self) -> bool:
        return self.kind == "comment"


def feed(revisions: Sequence[View], comments: Sequence[View], timeline: Sequence[View]) -> list[Entry]:
    """Oldest first."""
    numbered = {view["revision"]: (before, view) for before, view in zip([None, *revisions], revisions, strict=False)}
    told = [_event(event, numbered) for event in timeline if event["kind"] not in _LEFT_OUT]
    said = [
        Entry(view["at"], view["actor"], "comment", _ICONS["comment"], view["text"], mentions=view["mentions"])
        for view in comments
    ]
    return sorted([*told, *said], key=lambda entry: entry.at)


def _event(event: View, revisions: Mapping[Any, tuple[View | None, View]]) -> Entry:
    kind, payload = event["kind"], event["payload"] if isinstance(event["payload"], dict) else {}
    if kind == "item.assigned" and payload.get("owner") == event["actor"]:
        kind = TOOK
    before, revision = revisions.get(payload.get("revision"), (None, None)) if kind in _REVISED else (None, None)
    notes = (revision or {}).get("notes")
    return Entry(
        event["at"],
        event["actor"],
        kind,
        _ICONS.get(kind, "dot"),
        str(notes or words.details(event)),
        words.surface(event),
        None if kind == TOOK else payload.get("owner"),
        (),
        revision,
        diffs.between(before, revision) if before and revision else (),
    )
