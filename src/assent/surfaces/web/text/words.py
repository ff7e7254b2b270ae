"""Labels and icons of the pages: types, states, verbs and timeline events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from assent.errors import AssentError
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.language import ngettext

View = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sign:
    """An icon, a label and a tone: needs, good, bad, revision or closed."""

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
    "granted": "Approved, not started yet",
    "started": "Running",
    "done": "Succeeded",
    "failed": "Failed",
    "in_doubt": "In doubt",
    "abandoned": "Abandoned",
}
DELIVERIES = {
    "pending": Sign("clock", "Waiting for delivery", "needs"),
    "sending": Sign("clock", "Sending", "needs"),
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

REFUSE = {"reject": "Reject…", "ignore": "Ignore…", "decline": "Decline…", "cancel": "Cancel…"}
"""The verbs that turn an item down, as buttons; the first one that is allowed has the key `r`."""

REFUSALS = {
    "ignore": "The agent continues without the call and receives no reason.",
    "decline": "The agent is told that you declined.",
    "cancel": "The agent is told that you cancelled.",
}

KINDS = {
    "item.created": "created the request",
    "item.revised": "submitted a new revision",
    "item.resubmitted": "resubmitted the request",
    "item.edited": "changed the arguments",
    "item.approved": "approved",
    "item.rejected": "rejected",
    "item.agreed": "gave an approval",
    "item.revision_requested": "requested a revision",
    "item.undone": "undid the decision",
    "item.approval_retracted": "retracted an approval: its author may no longer decide this",
    "item.undeliverable": "could not deliver the decision to the agent",
    "item.decision_stopped": "stopped the resumed run before it started",
    "item.cancelled": "closed the item",
    "item.expired": "marked the item as expired",
    "item.abandoned": "abandoned the call in doubt",
    "item.left_in_doubt": "left the call in doubt",
    "item.doubt_settled": "recorded the outcome",
    "item.assigned": "assigned this to",
    "item.taken": "took this on",
    "item.unassigned": "removed the owner",
    "item.claimed": "claimed this",
    "item.unclaimed": "released the claim",
    "item.commented": "commented",
    "item.recommended": "recommended a decision",
    "item.revealed": "viewed the secrets",
    "thread.revealed": "viewed the secrets",
    "thread.imported": "imported the thread",
    "item.linked": "linked a thread",
    "item.unlinked": "unlinked a thread",
    "sample.added": "added sample data",
    "sample.removed": "removed the sample data",
    "approval.given": "gave a standing approval",
    "approval.revoked": "revoked a standing approval",
    "item.reminded": "sent a reminder",
    "item.escalated": "escalated the item",
    "item.attempt_refused": "was denied",
    "grant.granted": "gave the approval back: the call was not made",
    "grant.started": "started the call",
    "grant.done": "finished the call",
    "grant.failed": "reports that the call failed",
    "grant.in_doubt": "lost the call before it reported a result",
}

DEPLOYMENT_PROBLEMS = {
    "unreachable": (
        "Unreachable",
        "The name has no address, nothing answers in time, or outbound_allow does not name the private address.",
    ),
    "tls": ("No secure connection", "The certificate is expired, of another host, or of an unknown authority."),
    "stopped": (
        "Stopped",
        "Nothing listens at the address, or a gateway answers in its place. Items and decisions are kept.",
    ),
    "not_langgraph": ("Not a LangGraph server", "Use the base URL, without /docs or the path of a page."),
    "key_refused": (
        "Key refused",
        "Replace the key. Another server with Assent needs the key of a person who may decide.",
    ),
    "unknown_graph": (
        "Unknown graph",
        "Names are those in the langgraph.json of the deployment. An assistant is named by its id.",
    ),
    "failing": ("Failing", "The deployment answers with an error, whose reason is in its log, or with too much data."),
}
"""Why a deployment cannot be followed, and what to do."""

KEYS = (
    ("j", "next item"),
    ("k", "previous item"),
    ("Enter", "open the item"),
    ("u", "back to the list"),
    ("a", "approve"),
    ("e", "edit"),
    ("r", "reject, with a reason"),
    ("v", "request a revision"),
    ("w", "respond instead"),
    ("i", "exact arguments"),
    ("Ctrl Enter", "send what the decision bar says"),
    ("c", "comment"),
    ("h", "snooze"),
    ("m", "assign to me"),
    ("x", "select for a bulk decision"),
    ("z", "undo"),
    ("/", "search"),
    ("?", "this help"),
    ("Ctrl K", "all commands"),
)
"""The keyboard shortcuts, for the help pages."""


def state_sign(item: View, changes: int | None = None) -> Sign:
    """The item's state; `changes` is the number of edits, if counted."""
    if item["execution"] == "in_doubt":
        return Sign("alert", "In doubt", "needs")
    sign = _RESOLUTIONS.get(item["resolution"] or "") or _STATUSES[item["status"]]
    if item["resolution"] == "edited" and changes:
        label = ngettext("Approved with %(num)s change", "Approved with %(num)s changes", changes)
        return Sign(sign.icon, label % {"num": changes}, sign.tone)
    given, needed = item["approvals"]["given"], item["approvals"]["needed"]
    if item["status"] == "PENDING" and needed > 1:
        label = _("Pending, %(given)s of %(needed)s approvals") % {"given": given, "needed": needed}
        return Sign(sign.icon, label, sign.tone)
    return sign


def resolution_sign(resolution: str) -> Sign:
    """The sign of a resolution, or of a status without one, in lower case."""
    return _RESOLUTIONS.get(resolution) or _STATUSES[resolution.upper()]


def risk_sign(risk: str | None) -> Sign | None:
    return None if risk is None else Sign("alert", risk_word(risk), _RISKS.get(risk, "needs"))


def risk_word(risk: str) -> str:
    return f"{risk.capitalize()} risk"


def kind(event: str) -> str:
    return KINDS.get(event) or event.removeprefix("item.").replace("_", " ")


def details(event: View) -> str:
    """The reason, notes, outcome or thread of an event."""
    payload = _payload(event)
    detail = payload.get("reason") or payload.get("notes") or payload.get("outcome") or payload.get("thread")
    return str(detail or "").replace("run_again", "run again") if event["kind"] != "item.created" else ""


def surface(event: View) -> str:
    """The surface that caused the event, if recorded."""
    payload = _payload(event)
    return " · ".join(
        filter(None, (str(payload.get("via") or ""), _("with a passkey") if payload.get("passkey") else ""))
    )


def problem(error: AssentError) -> str:
    """The error in the reader's language; without a translation, its kind and the English message."""
    kind = type(error)().message
    if (translated := _(error.message)) != error.message or _(kind) == kind:
        return translated
    return f"{_(kind)} ({error.message})"


def _payload(event: View) -> Mapping[str, Any]:
    return event["payload"] if isinstance(event["payload"], dict) else {}
