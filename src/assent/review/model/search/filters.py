"""The filters of the inbox as text, such as `is:pending type:tool risk:high older:2h refund`.

A word with a colon selects a field; any other word is searched in the full text; a quoted text is one phrase. A value
with commas matches any of them. An unknown field is refused, never searched for as text by mistake.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from datetime import timedelta

from assent.errors import Invalid
from assent.kernel import durations
from assent.review.model.items import ItemStatus

STATUSES: dict[str, tuple[ItemStatus, ...]] = {
    "pending": (ItemStatus.PENDING, ItemStatus.REVISION_REQUESTED),
    "resolved": (ItemStatus.APPROVED, ItemStatus.REJECTED, ItemStatus.EXPIRED, ItemStatus.CANCELLED),
    "revision": (ItemStatus.REVISION_REQUESTED,),
    **{status.lower(): (status,) for status in ItemStatus if status not in ("PENDING", "REVISION_REQUESTED")},
}
_FLAGS = {"gated": ("gated", True), "advisory": ("gated", False), "in-doubt": ("execution", "in_doubt")}
_COLUMNS = {
    "type": "type",
    "kind": "kind",
    "risk": "risk",
    "dialect": "dialect",
    "graph": "graph_id",
    "assistant": "assistant_id",
    "deployment": "deployment",
    "thread": "thread_id",
    "run": "run_id",
    "from": "requester",
    "agent": "requester",
    "for": "recipient",
    "by": "decided_by",
    "owner": "owner",
    "mentions": "mentions",
    "entity": "entity_id",
    "resolution": "resolution",
}
SORTS = {"newest": "-created_at", "oldest": "created_at", "deadline": "deadline", "risk": "risk"}
GROUPS = ("agent", "thread", "type")
_ORDERS = {"sort": tuple(SORTS), "group": GROUPS}
FIELDS = ("is", "id", "older", "newer", *_COLUMNS, *_ORDERS)
WORDS = (*STATUSES, *_FLAGS, "snoozed", "claimed")
_LONGEST = 500
_FIRST_ID = "00000000-0000-0000-0000-000000000000"
_LAST_ID = _FIRST_ID.replace("0", "f")
_RAW_TERM = re.compile(r"""(?:"[^"]*"|'[^']*'|\S)+""")
_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Filter:
    """A parsed filter. Any value of a column matches; all columns have to match."""

    statuses: frozenset[ItemStatus] = frozenset()
    columns: tuple[tuple[str, tuple[object, ...]], ...] = ()
    words: tuple[str, ...] = ()
    older: timedelta | None = None
    newer: timedelta | None = None
    snoozed: bool = False
    claimed: bool = False
    ids: tuple[str, ...] | None = None
    """How the id begins."""
    sort: str | None = None
    group: str | None = None


NOTHING = Filter(columns=(("type", ()),))


def parse(source: str) -> Filter:
    """Parses a filter; raises `Invalid` for an unknown term."""
    if len(source) > _LONGEST:
        raise Invalid(f"the filter is longer than {_LONGEST} characters")
    statuses, columns, words = set[ItemStatus](), dict[str, tuple[object, ...]](), list[str]()
    ages, marks, ids, order = dict[str, timedelta](), set[str](), None, dict[str, str]()
    for term in _terms(source):
        field, colon, value = term.partition(":")
        if not colon:
            words.append(term)
        elif field == "is":
            _is(value, statuses, columns, marks)
        elif field in ("older", "newer"):
            ages[field] = _age(field, value)
        elif field in _ORDERS:
            order[field] = _ordered(field, value)
        elif field == "id":
            ids = _parts(value.lower())
        elif field in _COLUMNS:
            columns[_COLUMNS[field]] = _parts(value)
        else:
            raise Invalid(f"filter: unknown field {field!r}", hint=f"one of: {', '.join(FIELDS)}; quote plain text")
    return Filter(
        frozenset(statuses),
        tuple(columns.items()),
        tuple(words),
        ages.get("older"),
        ages.get("newer"),
        "snoozed" in marks,
        "claimed" in marks,
        ids,
        order.get("sort"),
        order.get("group"),
    )


def id_range(prefix: str) -> tuple[str, str] | None:
    """The first and the last id that begin so; None where no id does. Both are whole ids, so that every collation of a
    database compares them with ids in the same order."""
    first, last = (prefix + bound[len(prefix) :] for bound in (_FIRST_ID, _LAST_ID))
    return (first, last) if prefix and _ID.fullmatch(first) else None


def toggled(source: str, field: str, value: str) -> str:
    """The filter with this value added to the field, or removed from it. A field with one value only is replaced."""
    terms = _RAW_TERM.findall(source)
    chosen = dict.fromkeys(chosen_values(source, field))
    others = [term for term in terms if not term.startswith(f"{field}:")]
    if field == "is":
        return " ".join(term for term in terms if term != f"is:{value}") if value in chosen else f"{source} is:{value}"
    if value in chosen:
        del chosen[value]
    else:
        chosen = {**(chosen if field in _COLUMNS else {}), value: None}
    values = ",".join(chosen)
    quote = '"' if re.search(r"\s", values) else ""
    return " ".join([*others, *([f"{field}:{quote}{values}{quote}"] if values else [])])


def chosen_values(source: str, field: str) -> list[str]:
    """The values of the field in the filter; none if the filter is invalid."""
    try:
        terms = _terms(source)
    except Invalid:
        return []
    values = (term.partition(":")[2] for term in terms if term.startswith(f"{field}:"))
    return [part for value in values for part in _parts(value)]


def term(field: str, value: str) -> str:
    """The filter text that matches exactly this value; `Invalid` if there is none."""
    quotes = ("", '"', "'")
    for text in (f"{field}:{quote}{value}{quote}" for quote in quotes):
        try:
            if parse(text).columns == ((_COLUMNS[field], (value,)),):
                return text
        except Invalid:
            continue
    raise Invalid(f"filter: {value!r} cannot be used in a filter")


def _ordered(field: str, value: str) -> str:
    if value not in _ORDERS[field]:
        raise Invalid(f"filter: unknown value {field}:{value}", hint=f"one of: {', '.join(_ORDERS[field])}")
    return value


def _parts(value: str) -> tuple[str, ...]:
    return tuple(part for part in value.split(",") if part)


def _terms(source: str) -> list[str]:
    lexer = shlex.shlex(source, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape = True, "", ""
    try:
        return list(lexer)
    except ValueError:
        raise Invalid("filter: a quote is not closed") from None


def _is(value: str, statuses: set[ItemStatus], columns: dict[str, tuple[object, ...]], marks: set[str]) -> None:
    if value in STATUSES:
        statuses.update(STATUSES[value])
    elif value in _FLAGS:
        column, wanted = _FLAGS[value]
        columns[column] = (wanted,)
    elif value in WORDS:
        marks.add(value)
    else:
        raise Invalid(f"filter: unknown value is:{value}", hint=f"one of: {', '.join(WORDS)}")


def _age(field: str, value: str) -> timedelta:
    try:
        return durations.parse(value)
    except ValueError as error:
        raise Invalid(f"filter: {field} {error}") from None
