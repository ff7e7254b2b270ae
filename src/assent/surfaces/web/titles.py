"""The heading of an item: a sentence that a person can check.

The title of the item comes first: the requester's own, or the one that a template of the policy or of the tool gave.
Otherwise the sentence of a tool call comes from its renderer, or else from the name and the first arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from assent.kernel import canonical
from assent.review.model.calls.arguments import mapping
from assent.review.model.calls.payments import AMOUNT, CURRENCY
from assent.review.model.questions import headline
from assent.review.model.titles import LONGEST, X_TITLE, filled
from assent.surfaces.web import renderers
from assent.surfaces.web.language import gettext as _

View = Mapping[str, Any]
_LONGEST_PART, _MOST_PARTS = 48, 3


def heading(item: View) -> str:
    """The title, or the sentence of the first call and the number of the others."""
    calls = item["actions"]
    if not calls or item["title"] != headline(", ".join(str(call["name"]) for call in calls), "Request"):
        return str(item["title"])
    first = sentence(item, calls[0])
    count = item.get("calls", len(calls))
    return first if count == 1 else _("%(first)s, and %(n)s more") % {"first": first, "n": count - 1}


def row_heading(item: View) -> str:
    """The heading of a row in a list, which has the first calls only, with short arguments: where those of the first
    one are too long to be read, it is the title."""
    calls = item.get("actions") or ()
    first = _read(calls[0]) if calls else None
    return heading({**item, "actions": [first, *calls[1:]]}) if first else str(item["title"])


def _read(call: View) -> View | None:
    if "args" in call:
        return call
    try:
        return {**call, "args": canonical.parse(call["args_text"]), "schema": None}
    except canonical.JsonError:
        return None


def sentence(item: View, action: View) -> str:
    """One call in words."""
    own = filled(mapping(action["schema"]).get(X_TITLE), action["args"])
    told = own or renderers.title(item, action) or _plainly(action)
    return headline(told, str(action["name"]), LONGEST)


def _plainly(action: View) -> str:
    parts = list(_parts(mapping(action["args"])))[:_MOST_PARTS]
    return f"{action['name']}: {', '.join(parts)}" if parts else str(action["name"])


def _parts(args: Mapping[str, Any]) -> Iterator[str]:
    """The first short arguments. An amount is joined with its currency."""
    currency = next((name for name in CURRENCY if isinstance(args.get(name), str)), None)
    for name, value in args.items():
        if isinstance(value, dict | list) or value is None or value == "" or name == currency:
            continue
        text = _text(value)
        if name == AMOUNT:
            yield f"{text} {args[currency]}" if currency else text
        elif len(text) <= _LONGEST_PART:
            yield f"{name.removesuffix('_id').replace('_', ' ')} {text}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical.text(value)
