"""What people answer the assistant with, by the names that they use, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assent.domain import canonical
from assent.domain.questions import Verb, Verdict
from assent.errors import Conflict, InvalidAnswer, InvalidDecision
from assent.services.assistant_views import kind_of, pending_action
from assent.services.item_views import View

_ANSWERED_BY = {
    "clarification": "clarification_responses",
    "confirmation": "approvals",
    "oauth_url": "elicitation",
    "form_elicitation": "elicitation",
}
_PARTS = {
    "clarification_responses": {"message": "response"},
    "approvals": {"verb": "approved", "args": "arguments", "message": "feedback"},
    "elicitation": {"verb": "action", "args": "content"},
}


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a person says: to the question or the call of this id, or to the one form or link there is."""

    call_id: str | None
    verb: Verb
    args: Any = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person answers with. `field` is the name of the list, or `elicitation`."""

    field: str
    said: Sequence[Said] = ()

    def fits(self, item: View) -> tuple[bool, bool]:
        """Whether it is the right kind of answer to this item, and whether it names anything of it."""
        kind = kind_of(item)
        asked = {action["call_id"] for action in item["actions"]}
        named = {one.call_id for one in self.said} - {None}
        return kind is not None and _ANSWERED_BY[kind] == self.field, bool(asked & named)


def verdicts_of(asked: View, answer: Answer) -> tuple[Verdict, ...]:
    """What was said, by the actions that it is about; or what is wrong with it, before anything is touched."""
    kind = kind_of(asked)
    if kind is None:
        action = pending_action(asked)
        raise Conflict(f"the assistant waits for something else: {action['message']}", pending_action=action)
    if _ANSWERED_BY[kind] != answer.field:
        told = f"the assistant waits for {_ANSWERED_BY[kind]}: a {kind} is pending"
        raise _invalid(asked, [{"path": answer.field, "message": told}])
    if answer.field == "elicitation":
        [action] = asked["actions"]
        return tuple(Verdict(action["key"], one.verb, args=one.args) for one in answer.said)
    actions = {action["call_id"]: action for action in asked["actions"]}
    problems = _misnamed(answer, list(actions))
    if problems:
        raise _invalid(asked, problems)
    return tuple(_verdict(actions[one.call_id], one) for one in answer.said)


def refused(asked: View, answer: Answer, error: InvalidDecision) -> InvalidAnswer:
    """The same problems, by the names that the caller used."""
    problems = [_renamed(one, answer) for one in error.extra.get("errors", ())]
    return _invalid(asked, problems, error.message)


def _invalid(asked: View, problems: Sequence[View], otherwise: str = "") -> InvalidAnswer:
    return InvalidAnswer(_spelled(problems) or otherwise, errors=problems, pending_action=pending_action(asked))


def _verdict(action: View, said: Said) -> Verdict:
    """Arguments that repeat the request are an approval."""
    if said.verb is Verb.APPROVE and said.args is not None and not canonical.same(said.args, action["args"]):
        return Verdict(action["key"], Verb.EDIT, args=said.args, message=said.message)
    args = said.args if said.verb is Verb.REJECT else None
    return Verdict(action["key"], said.verb, args=args, message=said.message)


def _misnamed(answer: Answer, known: Sequence[str | None]) -> list[View]:
    problems: list[View] = []
    seen: set[str | None] = set()
    for index, one in enumerate(answer.said):
        path = f"{answer.field}[{index}].call_id"
        if one.call_id not in known:
            problems.append({"path": path, "message": f"nothing is asked under {one.call_id!r}"})
        elif one.call_id in seen:
            problems.append({"path": path, "message": f"{one.call_id!r} is answered twice"})
        seen.add(one.call_id)
    missing = [call_id for call_id in known if call_id not in seen]
    return problems + [{"path": answer.field, "message": f"nothing is said to {one!r}"} for one in missing]


def _renamed(problem: Mapping[str, Any], answer: Answer) -> View:
    head, _, rest = str(problem["path"]).partition(".")
    part, dot, below = rest.partition(".")
    name = _PARTS[answer.field].get(part, part)
    index = head.removeprefix("actions[").removesuffix("]")
    whole = answer.field if answer.field == "elicitation" else f"{answer.field}[{index}]"
    found: View = {"path": f"{whole}.{name}{dot}{below}" if name else whole, "message": problem["message"]}
    if index.isdecimal() and int(index) < len(answer.said) and answer.said[int(index)].call_id is not None:
        found["call_id"] = answer.said[int(index)].call_id
    return found


def _spelled(problems: Sequence[View]) -> str:
    return "; ".join(
        f"{one['path']}{' of ' + repr(one['call_id']) if 'call_id' in one else ''}: {one['message']}"
        for one in problems
    )
