"""The words of the pages, each idea in one word and with one icon: types, states, verbs, what the timeline tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assent.errors import AssentError
from assent.web.language import gettext as _
from assent.web.language import ngettext

View = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sign:
    """An icon, a word and a tone: needs, good, bad, revision, closed."""

    icon: str
    word: str
    tone: str = "closed"


TYPES = {
    "tool": Sign("tool", "Tool call"),
    "question": Sign("question", "Question"),
    "form": Sign("form", "Form"),
    "oauth": Sign("key", "Sign-in"),
    "breakpoint": Sign("pause", "Breakpoint"),
}

_RESOLUTIONS = {
    "accepted": Sign("check", "Approved", "good"),
    "edited": Sign("check", "Approved with changes", "good"),
    "responded": Sign("reply", "Answered", "good"),
    "partial": Sign("check", "Approved in part", "good"),
    "answered_elsewhere": Sign("reply", "Answered elsewhere", "good"),
    "rejected": Sign("cross", "Rejected", "bad"),
    "ignored": Sign("cross", "Ignored", "bad"),
    "declined": Sign("cross", "Declined", "bad"),
    "superseded": Sign("dash", "Superseded"),
    "thread_ended": Sign("dash", "Thread ended"),
    "withdrawn": Sign("dash", "Withdrawn"),
    "expired": Sign("clock", "Expired"),
}
_STATUSES = {
    "PENDING": Sign("dot", "Pending", "needs"),
    "REVISION_REQUESTED": Sign("revise", "Revision requested", "revision"),
    "APPROVED": _RESOLUTIONS["accepted"],
    "REJECTED": _RESOLUTIONS["rejected"],
    "EXPIRED": _RESOLUTIONS["expired"],
    "CANCELLED": Sign("dash", "Cancelled"),
}
_RISKS = {"low": "closed", "medium": "needs", "high": "bad", "critical": "bad"}
ASKS_TWICE = frozenset({"high", "critical"})

EXECUTIONS = {
    "granted": "Granted, not started",
    "started": "Started",
    "done": "Done",
    "failed": "Failed",
    "in_doubt": "In doubt",
    "abandoned": "Abandoned",
}
DELIVERIES = {
    "pending": Sign("clock", "Waits to be delivered", "needs"),
    "sending": Sign("clock", "On its way", "needs"),
    "delivered": Sign("check", "Delivered", "good"),
    "failed": Sign("cross", "Not delivered", "bad"),
}

VERBS = {
    "approve": "Approve",
    "edit": "Edit",
    "reject": "Reject",
    "respond": "Respond",
    "ignore": "Ignore",
    "accept": "Accept",
    "decline": "Decline",
    "cancel": "Cancel",
}

KINDS = {
    "item.created": "asked",
    "item.revised": "asked again, changed",
    "item.resubmitted": "resubmitted it",
    "item.edited": "changed the arguments",
    "item.approved": "approved",
    "item.rejected": "rejected",
    "item.agreed": "agreed",
    "item.revision_requested": "asked for a revision",
    "item.undone": "took the decision back",
    "item.cancelled": "closed it",
    "item.expired": "let it expire",
    "item.abandoned": "gave up the call in doubt",
    "item.left_in_doubt": "left it in doubt",
    "item.doubt_settled": "settled the doubt",
    "item.claimed": "is looking at it",
    "item.unclaimed": "stopped looking at it",
    "item.commented": "commented",
    "item.revealed": "looked at the secrets",
    "item.linked": "linked a thread",
    "item.unlinked": "unlinked a thread",
    "item.reminded": "reminded",
    "item.escalated": "escalated it",
    "item.attempt_refused": "was refused",
}

KEYS = (
    ("j", "next item"),
    ("k", "previous item"),
    ("Enter", "open the item"),
    ("u", "back to the list"),
    ("a", "approve"),
    ("e", "edit"),
    ("r", "reject, with a reason"),
    ("v", "ask for a revision"),
    ("c", "comment"),
    ("h", "snooze"),
    ("x", "choose it for bulk"),
    ("z", "undo"),
    ("/", "search"),
    ("?", "this help"),
    ("Ctrl K", "all commands"),
)
"""One table: the script reads its keys from the help that this makes."""


def state_sign(item: View, changes: int | None = None) -> Sign:
    """How an item stands, in the words of its resolution; `changes` where they have been counted."""
    if item["execution"] == "in_doubt":
        return Sign("alert", "In doubt", "needs")
    found = _RESOLUTIONS.get(item["resolution"] or "") or _STATUSES[item["status"]]
    if item["resolution"] == "edited" and changes:
        said = ngettext("Approved with %(num)s change", "Approved with %(num)s changes", changes)
        return Sign(found.icon, said % {"num": changes}, found.tone)
    given, needed = item["approvals"]["given"], item["approvals"]["needed"]
    if item["status"] == "PENDING" and needed > 1:
        said = _("Pending, %(given)s of %(needed)s agreed") % {"given": given, "needed": needed}
        return Sign(found.icon, said, found.tone)
    return found


def risk_sign(risk: str | None) -> Sign | None:
    return None if risk is None else Sign("alert", risk_word(risk), _RISKS.get(risk, "needs"))


def risk_word(risk: str) -> str:
    return f"{risk.capitalize()} risk"


def kind(event: str) -> str:
    return KINDS.get(event) or event.removeprefix("item.").replace("_", " ")


def details(event: View) -> str:
    """What an event has to say besides its kind, in a few words."""
    payload = _payload(event)
    said = payload.get("reason") or payload.get("notes") or payload.get("outcome") or payload.get("thread")
    return str(said or "").replace("run_again", "run again") if event["kind"] != "item.created" else ""


def surface(event: View) -> str:
    """By which way it came, where the event says so."""
    return str(_payload(event).get("via") or "")


def problem(error: AssentError) -> str:
    """In the reader's language: its own words where they are known, else what kind it is and then its details."""
    kind = type(error)().message
    if (said := _(error.message)) != error.message or _(kind) == kind:
        return said
    return f"{_(kind)} ({error.message})"


def _payload(event: View) -> Mapping[str, Any]:
    return event["payload"] if isinstance(event["payload"], dict) else {}
