"""Titles of calls from templates, such as `Refund {amount} {currency} to order {order_id}`.

A rule of the policy gives the template, or the tool does (`x-title` in the schema of its arguments). A template that
does not fit a call is not used for it; the title is then generated."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.questions import Action, ItemType, Question, headline

X_TITLE = "x-title"
LONGEST = 140
_HOLE = re.compile(r"\{([^{}]+)\}")
_BLANK: tuple[Json, ...] = ("", None, [], {})


def check(template: str) -> str:
    """Refuses a template that could not be filled for any call."""
    if re.search(r"[{}]", _HOLE.sub("", template)):
        raise ValueError("has a { or } that belongs to no placeholder such as {order_id}")
    if any(not all(step and step == step.strip() for step in hole.split(".")) for hole in _HOLE.findall(template)):
        raise ValueError("a placeholder must be a path into the arguments, such as {amount} or {card.last4}")
    return template


def filled(template: object, args: Json) -> str | None:
    """The template with these arguments; None if one of them is missing or empty."""
    if not isinstance(template, str) or not template.strip():
        return None
    values = {hole: _value(args, hole) for hole in _HOLE.findall(template)}
    if any(value in _BLANK for value in values.values()):
        return None
    return _HOLE.sub(lambda hole: _text(values[hole[1]]), template)


def generated(question: Question) -> str:
    """The title of a question that has none of its own: the names of its calls."""
    return headline(", ".join(action.name for action in question.actions), "Request")


def title_of(question: Question, templates: Mapping[str, Iterable[str]]) -> str | None:
    """The title by the first template that fits; None if the question has a title of its own, or no template fits.
    `templates` are those of the policy, by action. The arguments must be masked already."""
    if question.type is not ItemType.TOOL or not question.actions or question.title != generated(question):
        return None
    first, more = question.actions[0], len(question.actions) - 1
    titles = (filled(template, first.args) for template in (*templates.get(first.key, ()), _own(first)))
    title = next((title for title in titles if title), None)
    if title is None:
        return None
    return headline(title, first.name, LONGEST) + (f" (+{more})" if more else "")


def _own(action: Action) -> Any:
    return action.schema.get(X_TITLE) if isinstance(action.schema, Mapping) else None


def _value(args: Json, path: str) -> Json:
    """The argument of this name, or the one at this path."""
    if isinstance(args, dict) and path in args:
        return args[path]
    value = args
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else canonical.text(value)
