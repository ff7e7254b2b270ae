"""The outcome of an approved call: from the gate's record, or, where no gate observes the tool, from the messages of
the thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assent.surfaces.web.text import times
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views.threads.conversation import Said

View = Mapping[str, Any]

SIGNS = {
    "waiting": Sign("clock", "Approved, runs after the undo period", "needs"),
    "granted": Sign("clock", "Approved, not started yet", "needs"),
    "expired": Sign("dash", "Approved, but not called before the approval expired"),
    "started": Sign("clock", "Running", "revision"),
    "done": Sign("check", "Succeeded", "good"),
    "failed": Sign("cross", "Failed", "bad"),
    "in_doubt": Sign("alert", "In doubt: nobody knows whether it happened", "needs"),
    "revoked": Sign("dash", "Approval withdrawn, not run"),
    "reported": Sign("check", "The agent reports a result", "good"),
    "reported_failure": Sign("cross", "The agent reports a failure", "bad"),
    "unobserved": Sign("dash", "Answer delivered; no gate observes this tool"),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    sign: Sign
    at: str | None = None
    text: str = ""
    error: bool = False


def of_action(item: View, action: View, said: Sequence[Said] = ()) -> Outcome | None:
    """The outcome of one action; None if nothing was approved."""
    if item["status"] != "APPROVED" or _refused(item, action):
        return None
    grants = [grant for grant in item["grants"] if grant["call_id"] == action["call_id"]]
    if grants and (item["execution"] is not None or grants[-1]["status"] != "granted"):
        return _of_grant(item, grants[-1])
    return _of_messages(item, action, said)


def _refused(item: View, action: View) -> bool:
    closing = [decision for decision in item["decisions"] if decision["standing"] and decision["closes"]]
    verdicts = closing[-1]["actions"] if closing else ()
    said = next((verdict["verb"] for verdict in verdicts if verdict["key"] == action["key"]), "approve")
    return said not in ("approve", "edit")


def _of_grant(item: View, grant: View) -> Outcome:
    status = grant["status"]
    if status == "granted":
        waits = times.ahead(grant["not_before"])
        return Outcome(
            SIGNS["waiting" if waits else "granted" if times.ahead(grant["expires_at"]) else "expired"],
            grant["not_before"] if waits else None,
        )
    if status == "started" and item["execution"] == "in_doubt":
        return Outcome(SIGNS["in_doubt"], grant["started_at"])
    at = grant["ended_at"] or grant["started_at"]
    return Outcome(SIGNS[status], at, grant["result"] or "", error=status == "failed")


def _of_messages(item: View, action: View, said: Sequence[Said]) -> Outcome | None:
    delivery = item["delivery"]
    if delivery is None or delivery["status"] != "delivered" or item["source"]["interrupt_id"] is None:
        return None
    called = (call for message in said for call in message.calls if call.id and call.id == action["call_id"])
    result = next((call.result for call in called if call.result is not None), None)
    if result is not None:
        sign = SIGNS["reported_failure" if result.failed else "reported"]
        return Outcome(sign, None, result.text, error=result.failed)
    return Outcome(SIGNS["unobserved"], delivery["delivered_at"]) if item["type"] == "tool" else None
