"""Questions of agents and verdicts of people, independent of the dialect.

A dialect parses a pending interrupt into a `Question` with one `Action` per decision, and turns the person's `Verdict`
per action back into the value that the agent expects. Everything here is immutable data; the item with its status is
defined elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from assent.errors import Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json


class Verb(StrEnum):
    """The possible verdicts on one action. The last three belong to forms and logins."""

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
    WORKSPACE_REVIEW = "workspace_review"


class Resolution(StrEnum):
    """The detailed result of an item, beside its status."""

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


MOST_ACTIONS = 500
TOO_MANY = Problem("", f"has more than {MOST_ACTIONS} actions, and cannot be answered: ask about fewer at once")
"""The limit keeps parsing fast for other callers; no person reads that many."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A pending interrupt as the graph raised it. `response_schema` is the schema of its answer, if set.

    `lost` lists the parts that were lost in the conversion to JSON; such a value is never read as a dialect again.
    """

    id: str
    value: Json
    response_schema: Json = None
    lost: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """One reviewable operation: a tool call, a question, a form.

    `key` identifies it inside its question; `call_id` is the agent's own id for it, if the dialect has one. `args_text`
    is the canonical text of `args`, as pages show it. `schema` is the JSON Schema of the edited arguments, of the form,
    or of the answer.
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
        """The id by which a gate recognises the call. None also if a text column cannot store the id or the name, so
        that no approval can be bound to it."""
        return None if "\0" in f"{self.call_id}{self.name}" else self.call_id


@dataclass(frozen=True, slots=True)
class Question:
    """The complete question of one interrupt, as JSON.

    `problems` of a raw question explain why it could not be parsed; otherwise they are remarks, and it can be answered.
    `interrupt` is the recognised interrupt, with its value as plain JSON; a breakpoint has none.
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
        """The raised value, as JSON; None at a breakpoint."""
        return self.interrupt.value if self.interrupt else None

    @property
    def response_schema(self) -> Json:
        return self.interrupt.response_schema if self.interrupt else None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A person's verdict on the action `key`.

    `args` are the edited arguments, the content of a form, or a JSON answer; `name` is another tool to call instead;
    `message` is the text of an answer or the reason of a rejection.
    """

    key: str
    verb: Verb
    args: Json = None
    name: str | None = None
    message: str | None = None


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
    """The status and resolution that follow from the verdicts; mixed verdicts are partial."""
    resolutions = {_RESOLUTIONS[verdict.verb] for verdict in verdicts}
    if resolutions <= _NEGATIVE:
        return Outcome("REJECTED", resolutions.pop() if len(resolutions) == 1 else Resolution.REJECTED)
    if resolutions == {Resolution.ACCEPTED, Resolution.EDITED}:  # all of them run, some with changes
        return Outcome("APPROVED", Resolution.EDITED)
    return Outcome("APPROVED", resolutions.pop() if len(resolutions) == 1 else Resolution.PARTIAL)


_SAYS_NOTHING = ("null", "{}")
_AMBIGUOUS = re.compile(r"[\"·\n\r]|,[^,]*:\s")


def summary(question: Question) -> str:
    """One line for a list: the agent's own description, or else the arguments in words."""
    generated = question.type is ItemType.TOOL and "\n\nTool: " in (question.description or "")
    arguments = (_in_words(action) for action in question.actions if action.args_text not in _SAYS_NOTHING)
    return headline((not generated and question.description) or " · ".join(arguments), "", limit=160)


def _in_words(action: Action) -> str:
    """`order: 4711, amount: 249.9`. A text that looks like more of the same is quoted."""
    if not isinstance(action.args, dict):
        return action.args_text
    return ", ".join(argument_in_words(name, value) for name, value in action.args.items())


def argument_in_words(name: str, value: Json) -> str:
    if not isinstance(value, str) or not value or _AMBIGUOUS.search(value):
        return f"{name}: {canonical.text(value)}"
    return f"{name}: {value}"


def headline(source: str, fallback: str = "Question", limit: int = 120) -> str:
    """The first non-blank line of a text, truncated for a list."""
    line = next((line.strip() for line in source.splitlines() if line.strip()), fallback)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
