"""LangChain's decision objects: a list of them in `hitl_request`, a single one in `tool_approval`."""

from __future__ import annotations

from assent.kernel.canonical import Json
from assent.review.dialects.fields import Fields
from assent.review.dialects.verdicts import message_of
from assent.review.model.questions import Action, Verb, Verdict

VERBS = {"approve": Verb.APPROVE, "edit": Verb.EDIT, "reject": Verb.REJECT, "respond": Verb.RESPOND}
EDITED = "edited_action"


def parts(edited: str = EDITED) -> dict[str, str]:
    """The paths of a verdict's parts in a decision object."""
    return {"key": "", "verb": "type", "args": f"{edited}.args", "name": f"{edited}.name"}


def write(action: Action, verdict: Verdict, edited: str = EDITED) -> Json:
    """`edited` is the name of the field with the edited call."""
    match verdict.verb:
        case Verb.EDIT:
            name = action.name if verdict.name is None else verdict.name
            return {"type": "edit", edited: {"name": name, "args": verdict.args}}
        case Verb.RESPOND:
            return {"type": "respond", "message": verdict.message}
        case Verb.REJECT:
            reason = message_of(verdict)
            return {"type": "reject"} if reason is None else {"type": "reject", "message": reason}
        case _:
            return {"type": "approve"}


def read(key: str, decision: Fields, action: Action | None, edited: str = EDITED) -> Verdict | None:
    """The verdict in one decision object. A message beside an approval is kept, for the rules to refuse."""
    verb = decision.choice("type", VERBS)
    message = decision.optional_text("message")
    if verb == Verb.EDIT:
        call = decision.inside(edited)
        asked = action.name if action else None
        name = call.text("name")
        args = call.mapping("args")
        return Verdict(key, verb, args=args, name=None if name == asked else name, message=message or None)
    if decision.get(edited) is not None:
        decision.fault(edited, "is allowed only with edit")
    return None if verb is None else Verdict(key, verb, message=message or None)
