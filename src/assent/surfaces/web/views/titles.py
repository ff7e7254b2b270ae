"""The heading of an item: a sentence that a person can check.

The requester's own title comes first. For plain tool calls the sentence comes from the tool (`x-title` in the schema of
its arguments), then from the renderer, and otherwise from the name and the first arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from assent.kernel import canonical
from assent.review.model.calls.arguments import mapping
from assent.review.model.calls.payments import AMOUNT, CURRENCY
from assent.review.model.questions import headline
from assent.surfaces.web import renderers
from assent.surfaces.web.language import gettext as _

View = Mapping[str, Any]
TEMPLATE = "x-title"
_HOLE = re.compile(r"\{([^{}]+)\}")
_LONGEST, _LONGEST_PART, _MOST_PARTS = 140, 48, 3


def heading(item: View) -> str:
    """The title, or the sentence of the first call and the number of the others."""
    calls = item["actions"]
    if not calls or item["title"] != headline(", ".join(str(call["name"]) for call in calls), "Request"):
        return str(item["title"])
    first = sentence(item, calls[0])
    if len(calls) == 1:
        return first
    return _("%(first)s, and %(n)s more") % {"first": first, "n": len(calls) - 1}


def sentence(item: View, action: View) -> str:
    """One call in words."""
    told = _of_tool(action) or renderers.title(item, action) or _plainly(action)
    return headline(told, str(action["name"]), _LONGEST)


def _of_tool(action: View) -> str | None:
    """The template of the tool, with its arguments filled in; None if one of them is missing."""
    template, args = mapping(action["schema"]).get(TEMPLATE), mapping(action["args"])
    if not isinstance(template, str) or not all(name in args for name in _HOLE.findall(template)):
        return None
    return _HOLE.sub(lambda hole: _text(args[hole[1]]), template)


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
