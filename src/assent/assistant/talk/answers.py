"""Answers to the assistant in the API's own field names, and their validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assent.assistant.talk.views import kind_of, pending_action
from assent.errors import Conflict, InvalidAnswer, InvalidDecision, Problem
from assent.kernel import canonical
from assent.review.item_views import View
from assent.review.model.questions import Verb, Verdict

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
    """An answer to one question or call, or to the only form or link."""

    call_id: str | None
    verb: Verb
    args: Any = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer. `field` is the name of the list, or `elicitation`."""

    field: str
    said: Sequence[Said] = ()
    seen: tuple[int, str] | None = None
    """The reviewed revision and hash, if the answer has them."""

    def fits(self, item: View) -> tuple[bool, bool]:
        """Whether it is the right kind of answer to this item, and whether it names one of its calls."""
        kind = kind_of(item)
        asked = {action["call_id"] for action in item["actions"]}
        named = {part.call_id for part in self.said} - {None}
        return kind is not None and _ANSWERED_BY[kind] == self.field, bool(asked & named)


def verdicts_of(asked: View, answer: Answer) -> tuple[Verdict, ...]:
    """The verdicts on the item's actions; raises if the answer is invalid."""
    kind = kind_of(asked)
    if kind is None:
        action = pending_action(asked)
        raise Conflict(f"the assistant waits for something else: {action['message']}", pending_action=action)
    if _ANSWERED_BY[kind] != answer.field:
        message = f"the assistant waits for {_ANSWERED_BY[kind]}: a {kind} is pending"
        raise _invalid(asked, [{"path": answer.field, "message": message}])
    if answer.field == "elicitation":
        [action] = asked["actions"]
        return tuple(Verdict(action["key"], part.verb, args=part.args) for part in answer.said)
    actions = {action["call_id"]: action for action in asked["actions"]}
    problems = _misnamed(answer, list(actions))
    if problems:
        raise _invalid(asked, problems)
    return tuple(_verdict(actions[part.call_id], part) for part in answer.said)


def notes_of(answer: Answer) -> str | None:
    """The comments on approved calls, which need no reason. They are the notes of the decision."""
    given = [part.message for part in answer.said if part.verb is Verb.APPROVE and part.message]
    return "\n".join(given) or None


def refused(asked: View, answer: Answer, error: InvalidDecision) -> InvalidAnswer:
    """The same problems, by the names that the caller used."""
    problems = [_renamed(problem, answer) for problem in error.problems]
    return _invalid(asked, problems, error.message)


def _invalid(asked: View, problems: Sequence[View], otherwise: str = "") -> InvalidAnswer:
    return InvalidAnswer(_spelled(problems) or otherwise, errors=problems, pending_action=pending_action(asked))


def _verdict(action: View, said: Said) -> Verdict:
    """Unchanged arguments are an approval."""
    if said.verb is Verb.APPROVE and said.args is not None and not canonical.same(said.args, action["args"]):
        return Verdict(action["key"], Verb.EDIT, args=said.args)
    if said.verb is Verb.APPROVE:
        return Verdict(action["key"], Verb.APPROVE)
    args = said.args if said.verb is Verb.REJECT else None
    return Verdict(action["key"], said.verb, args=args, message=said.message)


def _misnamed(answer: Answer, known: Sequence[str | None]) -> list[View]:
    problems: list[View] = []
    seen: set[str | None] = set()
    for index, part in enumerate(answer.said):
        path = f"{answer.field}[{index}].call_id"
        if part.call_id not in known:
            problems.append({"path": path, "message": f"{part.call_id!r} is not pending"})
        elif part.call_id in seen:
            problems.append({"path": path, "message": f"{part.call_id!r} is answered twice"})
        seen.add(part.call_id)
    missing = [call_id for call_id in known if call_id not in seen]
    return problems + [{"path": answer.field, "message": f"{call_id!r} has no answer"} for call_id in missing]


def _renamed(problem: Problem, answer: Answer) -> View:
    head, _, rest = problem.path.partition(".")
    part, dot, below = rest.partition(".")
    name = _PARTS[answer.field].get(part, part)
    index = head.removeprefix("actions[").removesuffix("]")
    whole = answer.field if answer.field == "elicitation" else f"{answer.field}[{index}]"
    renamed: View = {"path": f"{whole}.{name}{dot}{below}" if name else whole, "message": problem.message}
    if index.isdecimal() and int(index) < len(answer.said) and answer.said[int(index)].call_id is not None:
        renamed["call_id"] = answer.said[int(index)].call_id
    return renamed


def _spelled(problems: Sequence[View]) -> str:
    return "; ".join(
        f"{problem['path']}{' of ' + repr(problem['call_id']) if 'call_id' in problem else ''}: {problem['message']}"
        for problem in problems
    )
