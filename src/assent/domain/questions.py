"""What an agent asks and what a person says to it, whatever the way of asking.

A dialect reads a pending interrupt into a `Question` holding one `Action` per thing to decide, and turns the person's
`Verdict` per action back into the value that the agent waits for. Everything here is immutable data; the item that
carries a question through the inbox, and its status, live elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from assent.domain.canonical import Json


class Verb(StrEnum):
    """What a person can say to one action. The last three belong to forms and logins."""

    APPROVE = "approve"
    EDIT = "edit"
    REJECT = "reject"
    RESPOND = "respond"
    IGNORE = "ignore"
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


class ItemType(StrEnum):
    TOOL = "tool"
    QUESTION = "question"
    FORM = "form"
    OAUTH = "oauth"
    BREAKPOINT = "breakpoint"


class Resolution(StrEnum):
    """How an item ended, in more words than its status."""

    ACCEPTED = "accepted"
    EDITED = "edited"
    RESPONDED = "responded"
    IGNORED = "ignored"
    PARTIAL = "partial"
    REJECTED = "rejected"
    DECLINED = "declined"
    SUPERSEDED = "superseded"
    THREAD_ENDED = "thread_ended"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    ANSWERED_ELSEWHERE = "answered_elsewhere"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and the field it is wrong in (`action_request.args`; empty for the whole value)."""

    path: str
    message: str


MOST_ACTIONS = 500
TOO_MANY = Problem("", f"asks about more than {MOST_ACTIONS} things at once, and cannot be answered: ask about fewer")
"""Nobody reads that many, and reading them again and again would keep everybody else waiting."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A pending interrupt as the graph raised it. `response_schema` is what a right answer must look like, if given.

    `lost` says what a value that was turned into JSON could not keep; such a value is never read as a dialect again.
    """

    id: str
    value: Json
    response_schema: Json = None
    lost: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """One reviewable operation: a tool call, a question, a form.

    `key` names it inside its question; `call_id` is the agent's own id for it, where the dialect carries one.
    `args_text` is the canonical text of `args`, and what a page shows. `schema` is the JSON Schema of the edited
    arguments, of the form, or of the answer.
    """

    key: str
    name: str
    args: Json
    args_text: str
    description: str | None = None
    allowed: tuple[Verb, ...] = ()
    schema: Json = None
    call_id: str | None = None

    @property
    def known_by(self) -> str | None:
        """The id by which a gate can know the call again. None as well where a text column could not hold the id or the
        name, so that no approval can be bound to it."""
        return None if "\0" in f"{self.call_id}{self.name}" else self.call_id


@dataclass(frozen=True, slots=True)
class Question:
    """Everything asked by one interrupt, as JSON.

    `problems` of a raw question say why it was not understood; of any other they are remarks, and it can be answered.
    `interrupt` is what was recognised, with its value as plain JSON; a breakpoint has none.
    """

    dialect: str
    type: ItemType
    title: str
    description: str | None
    actions: tuple[Action, ...]
    problems: tuple[Problem, ...] = ()
    interrupt: Interrupt | None = None

    @property
    def value(self) -> Json:
        """What was raised, as JSON; None at a breakpoint."""
        return self.interrupt.value if self.interrupt else None

    @property
    def response_schema(self) -> Json:
        return self.interrupt.response_schema if self.interrupt else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person says to the action named `key`.

    `args` are the edited arguments, the content of a form, or an answer that is more than text; `name` is another tool
    to call instead; `message` is the text of an answer or the reason of a rejection.
    """

    key: str
    verb: Verb
    args: Json = None
    name: str | None = None
    message: str | None = None


class InvalidDecision(ValueError):
    """The decision does not fit the question; every problem names its field. Nothing was sent to the agent."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{p.path}: {p.message}" if p.path else p.message for p in self.problems))


@dataclass(frozen=True, slots=True)
class Outcome:
    status: Literal["APPROVED", "REJECTED"]
    resolution: Resolution


_RESOLUTIONS = {
    Verb.APPROVE: Resolution.ACCEPTED,
    Verb.ACCEPT: Resolution.ACCEPTED,
    Verb.EDIT: Resolution.EDITED,
    Verb.RESPOND: Resolution.RESPONDED,
    Verb.REJECT: Resolution.REJECTED,
    Verb.IGNORE: Resolution.IGNORED,
    Verb.DECLINE: Resolution.DECLINED,
    Verb.CANCEL: Resolution.DECLINED,
}
_NEGATIVE = frozenset({Resolution.REJECTED, Resolution.IGNORED, Resolution.DECLINED})


def outcome(verdicts: Iterable[Verdict]) -> Outcome:
    """Where a set of verdicts takes its item: one kind of answer names itself, a mixed one is partial."""
    found = {_RESOLUTIONS[verdict.verb] for verdict in verdicts}
    if found <= _NEGATIVE:
        return Outcome("REJECTED", found.pop() if len(found) == 1 else Resolution.REJECTED)
    if found == {Resolution.ACCEPTED, Resolution.EDITED}:  # all of them run, some with changes
        return Outcome("APPROVED", Resolution.EDITED)
    return Outcome("APPROVED", found.pop() if len(found) == 1 else Resolution.PARTIAL)


_SAYS_NOTHING = ("null", "{}")


def summary(question: Question) -> str:
    """One line about it for a list: the agent's own words, or else what it is about."""
    generated = question.type is ItemType.TOOL and "\n\nTool: " in (question.description or "")
    arguments = (action.args_text for action in question.actions if action.args_text not in _SAYS_NOTHING)
    return headline((not generated and question.description) or " ".join(arguments), "", limit=160)


def headline(source: str, fallback: str = "Question", limit: int = 120) -> str:
    """The first line of a text that says something, short enough for a list."""
    line = next((line.strip() for line in source.splitlines() if line.strip()), fallback)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
