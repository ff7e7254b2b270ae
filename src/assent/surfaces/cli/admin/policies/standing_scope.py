"""The scope of `assent policy allow`: limits as text, and the proposal in words."""

from __future__ import annotations

import json
import re
from typing import Any

from assent.errors import Invalid
from assent.surfaces.cli.escapes import escaped

View = dict[str, Any]
_LIMIT = re.compile(r"(?P<argument>[^<>=]+)(?:(?P<bound><=|>=|=)(?P<value>.+))?", re.DOTALL)
_BOUNDS = {None: "same", "=": "same", "<=": "at_most", ">=": "at_least"}
_MOST_SHOWN = 20


def limit(text: str) -> View:
    """`amount<=100`, `currency=EUR`, or `currency` alone for the value of the item's own call."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise Invalid(f"not a limit: {text!r}", hint="write amount<=100, amount>=1, currency, or currency=EUR")
    named = {"argument": match["argument"].strip(), "bound": _BOUNDS[match["bound"]]}
    return named if match["value"] is None else {**named, "value": _value(match["value"].strip())}


def _value(text: str) -> Any:
    """JSON, or a plain text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def spelled(proposal: View, days: int) -> list[str]:
    ran, outcomes = proposal["would_have_run"], proposal["outcomes"]
    decided = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
    matches = proposal["matches"]
    return [
        "loosens the policy:",
        *(escaped(line) for line in proposal["diff"].split("\n")),
        "",
        f"{proposal['looked_at']} calls in {days} days: {ran} would have run without a person"
        + (f" ({decided})" if decided else ""),
        *(_spelled_match(match) for match in matches[:_MOST_SHOWN]),
        *([f"  … and {len(matches) - _MOST_SHOWN} more"] if len(matches) > _MOST_SHOWN else []),
    ]


def _spelled_match(match: View) -> str:
    decided = match["resolution"] or match["status"].lower()
    stopped = f", still asked by the rule {escaped(match['stopped_by'])}" if match["stopped_by"] else ""
    return f"  {match['item_id']}  {match['created_at'][:10]}  {escaped(match['title'])}: {decided}{stopped}"
