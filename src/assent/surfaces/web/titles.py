"""The heading of an item: a sentence that a person can check, and the line under it in a list.

The title of the item comes first: the requester's own, or the one that a template of the policy or of the tool gave.
Otherwise the sentence of a tool call comes from its renderer, or else from the words of its name and the first
arguments. The line under a heading does not repeat what the heading says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from assent.kernel import canonical
from assent.review.model.calls.arguments import mapping
from assent.review.model.calls.payments import AMOUNT, CURRENCY
from assent.review.model.questions import argument_in_words, headline
from assent.review.model.secrets import MASK
from assent.review.model.titles import LONGEST, X_TITLE, filled
from assent.surfaces.web import renderers
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers.values import amounts, moments

View = Mapping[str, Any]
_LONGEST_PART, _MOST_PARTS = 48, 3
_NAME = re.compile(r"[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TEXT = r'"(?:[^"\\]|\\u[0-9a-f]{4}|\\[^u])*'
_CUT_TEXT = re.compile(rf'(?P<name>{_TEXT}"):(?P<text>{_TEXT})')
_OBVIOUS = frozenset({"title", "name", "subject", "text", "message", "query", "input", "value"})
"""Names of arguments that say nothing beside their value."""


def heading(item: View) -> str:
    """The title, or the sentence of the first call and the number of the others."""
    if not _is_generated(item):
        return str(item["title"])
    first, count = sentence(item, item["actions"][0]), _count(item)
    return first if count == 1 else _("%(first)s, and %(n)s more") % {"first": first, "n": count - 1}


def row_heading(item: View) -> str:
    """The heading of a row in a list, which has the first calls only, and the start of their arguments."""
    return heading(_readable(item))


def row_summary(item: View) -> str:
    """The agent's description, or else what the heading leaves out: the other calls, or the other arguments."""
    row = _readable(item)
    calls, told = row["actions"], str(item["summary"])
    several, generated = len(calls) != 1, _is_generated(row)
    if (several and not generated) or not _tells_arguments(told, mapping(calls[0]["args"])):
        return "" if told == item["title"] else told
    if several:
        return " · ".join(sentence(row, call) for call in calls[1:_MOST_PARTS])
    said, args = heading(row), mapping(calls[0]["args"])
    return ", ".join(f"{name}: {_text(value)}" for name, value in args.items() if not _says(said, name, value, args))


def sentence(item: View, action: View) -> str:
    """One call in words."""
    own = filled(mapping(action["schema"]).get(X_TITLE), action["args"])
    told = own or renderers.title(item, action) or _plainly(action)
    return headline(told, str(action["name"]), LONGEST)


def _is_generated(item: View) -> bool:
    """Whether the title is only the names of the calls."""
    calls = item["actions"]
    return bool(calls) and item["title"] == headline(", ".join(str(call["name"]) for call in calls), "Request")


def _count(item: View) -> int:
    return int(item.get("calls", len(item["actions"])))


def _readable(item: View) -> View:
    """The item with the arguments of its calls, as far as a row has them."""
    return {**item, "actions": [_read(call) for call in item.get("actions") or ()]}


def _read(call: View) -> View:
    return call if "args" in call else {**call, "args": _start(call["args_text"]), "schema": None}


def _start(text: str) -> Any:
    """Arguments that may be cut off, as far as they can be read."""
    try:
        return canonical.parse(text)
    except canonical.JsonError:
        return dict(_members(text)) if text.startswith("{") else text


def _members(text: str) -> Iterator[tuple[str, Any]]:
    """The members of an object that is cut off, and the start of a text that is."""
    decoder, end = json.JSONDecoder(), 0
    while end < len(text) - 1:
        try:
            name, colon = decoder.raw_decode(text, end + 1)
            value, end = decoder.raw_decode(text, colon + 1)
        except ValueError:
            begun = _CUT_TEXT.match(text, end + 1)
            if begun:
                yield json.loads(begun["name"]), f"{json.loads(begun['text'] + chr(34))}…"
            return
        if text[end : end + 1] == ",":  # otherwise a number may be cut off
            yield str(name), value


def _plainly(action: View) -> str:
    """Such as: Close case 7; Create ticket: Printer is broken, priority high."""
    told, parts = _in_words(str(action["name"])), list(_parts(mapping(action["args"])))[:_MOST_PARTS]
    for label, text in parts[:1]:
        if label and told.lower().endswith(f" {label.lower()}"):
            told, parts = f"{told} {text}", parts[1:]
    said = ", ".join(f"{label} {text}".strip() for label, text in parts)
    return f"{told}: {said}" if said else told


def _in_words(name: str) -> str:
    """`close_case` and `closeCase` are "Close case". Other names than those of tools stay as they are."""
    if not _NAME.fullmatch(name):
        return name
    words = " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in _WORD.findall(name))
    return words[:1].upper() + words[1:]


def _parts(args: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The first short arguments: their labels, if they say something, and values. An amount has its currency."""
    currency, obvious = _currency(args), False
    for name, value in args.items():
        if isinstance(value, dict | list) or value in (None, "", MASK) or name == currency:
            continue
        text = _text(value)
        if name == AMOUNT:
            yield "", amounts.priced(text, args[currency]) if currency else text
        elif len(text) <= _LONGEST_PART:
            unlabelled, obvious = name in _OBVIOUS and not obvious, obvious or name in _OBVIOUS
            yield "" if unlabelled else name.removesuffix("_id").replace("_", " "), text


def _currency(args: Mapping[str, Any]) -> str | None:
    return next((name for name in CURRENCY if isinstance(args.get(name), str)), None)


def _text(value: Any) -> str:
    """On one line. A text that could be taken for several arguments is quoted."""
    if not isinstance(value, str):
        return canonical.text(value)
    line = " ".join(value.split())
    return f"“{line}”" if "," in line else line


def _tells_arguments(summary: str, args: Mapping[str, Any]) -> bool:
    """Whether the summary lists the arguments, because the agent gave no description."""
    first = next(iter(args.items()), None)
    return first is not None and summary.startswith(argument_in_words(*first)[:_LONGEST_PART])


def _says(sentence: str, name: str, value: Any, args: Mapping[str, Any]) -> bool:
    """Whether the sentence has this argument."""
    currency = _currency(args)
    if currency and name in (AMOUNT, currency) and AMOUNT in args:
        return amounts.priced(_text(args[AMOUNT]), args[currency]) in sentence
    text, moment = _text(value), moments.read(value)
    if moment is not None and str(moment) in sentence:
        return True
    return bool(text) and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", sentence) is not None
