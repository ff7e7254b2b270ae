"""The filters of the inbox as text: `is:pending type:tool risk:high older:2h refund` finds what it says.

A word with a colon names a field, any other word is looked for in the title; what is quoted is one word. A value with
commas means any of them. A field that does not exist is refused, never searched for as text by mistake.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import timedelta

from assent.domain import durations
from assent.domain.items import ItemStatus
from assent.errors import Invalid

_STATUSES: dict[str, tuple[ItemStatus, ...]] = {
    "pending": (ItemStatus.PENDING, ItemStatus.REVISION_REQUESTED),
    "resolved": (ItemStatus.APPROVED, ItemStatus.REJECTED, ItemStatus.EXPIRED, ItemStatus.CANCELLED),
    "revision": (ItemStatus.REVISION_REQUESTED,),
    **{status.lower(): (status,) for status in ItemStatus if status not in ("PENDING", "REVISION_REQUESTED")},
}
_FLAGS = {"gated": ("gated", True), "advisory": ("gated", False), "in-doubt": ("execution", "in_doubt")}
_COLUMNS = {
    "type": "type",
    "risk": "risk",
    "dialect": "dialect",
    "graph": "graph_id",
    "assistant": "assistant_id",
    "thread": "thread_id",
    "run": "run_id",
    "from": "requester",
    "agent": "requester",
    "for": "recipient",
    "by": "decided_by",
    "entity": "entity_id",
    "resolution": "resolution",
}
FIELDS = ("is", "older", "newer", *_COLUMNS)
WORDS = (*_STATUSES, *_FLAGS, "snoozed", "claimed")
_LONGEST = 500


@dataclass(frozen=True, slots=True)
class Filter:
    """What is looked for. Of one column any of its values fits; of several columns, all have to."""

    statuses: frozenset[ItemStatus] = frozenset()
    columns: tuple[tuple[str, tuple[object, ...]], ...] = ()
    words: tuple[str, ...] = ()
    older: timedelta | None = None
    newer: timedelta | None = None
    snoozed: bool = False
    claimed: bool = False


NOTHING = Filter(columns=(("type", ()),))


def parse(source: str) -> Filter:
    """The filter in a text, or `Invalid` that says what is not understood."""
    if len(source) > _LONGEST:
        raise Invalid(f"the filter is longer than {_LONGEST} characters")
    statuses, columns, words = set[ItemStatus](), dict[str, tuple[object, ...]](), list[str]()
    ages, marks = dict[str, timedelta](), set[str]()
    for term in _terms(source):
        field, colon, value = term.partition(":")
        if not colon:
            words.append(term)
        elif field == "is":
            _is(value, statuses, columns, marks)
        elif field in ("older", "newer"):
            ages[field] = _age(field, value)
        elif field in _COLUMNS:
            columns[_COLUMNS[field]] = tuple(part for part in value.split(",") if part)
        else:
            raise Invalid(f"filter: there is no field {field!r}", hint=f"one of: {', '.join(FIELDS)}; quote plain text")
    return Filter(
        frozenset(statuses),
        tuple(columns.items()),
        tuple(words),
        ages.get("older"),
        ages.get("newer"),
        "snoozed" in marks,
        "claimed" in marks,
    )


def term(field: str, value: str) -> str:
    """The text that finds just this value, whatever stands in it; `Invalid` where no text can."""
    quotes = ("", '"', "'")
    for text in (f"{field}:{quote}{value}{quote}" for quote in quotes):
        try:
            if parse(text).columns == ((_COLUMNS[field], (value,)),):
                return text
        except Invalid:
            continue
    raise Invalid(f"filter: {value!r} cannot be looked for")


def _terms(source: str) -> list[str]:
    lexer = shlex.shlex(source, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        return list(lexer)
    except ValueError:
        raise Invalid("filter: a quote is not closed") from None


def _is(value: str, statuses: set[ItemStatus], columns: dict[str, tuple[object, ...]], marks: set[str]) -> None:
    if value in _STATUSES:
        statuses.update(_STATUSES[value])
    elif value in _FLAGS:
        column, wanted = _FLAGS[value]
        columns[column] = (wanted,)
    elif value in WORDS:
        marks.add(value)
    else:
        raise Invalid(f"filter: nothing is {value!r}", hint=f"one of: {', '.join(WORDS)}")


def _age(field: str, value: str) -> timedelta:
    try:
        return durations.parse(value)
    except ValueError as error:
        raise Invalid(f"filter: {field} {error}") from None
