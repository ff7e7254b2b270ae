"""From a problem that a server answers with to the error that the command ends with: one line, a hint, an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import httpx

from assent.cli.escapes import escaped
from assent.cli.item_views import View, decided
from assent.errors import (
    AssentError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Unauthenticated,
    Unavailable,
)

_KINDS: dict[int, type[AssentError]] = {
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    422: Invalid,
    503: Unavailable,
    507: Unavailable,
}
_MOST_CANDIDATES = 10
_KEY = "give a key with --key or ASSENT_API_KEY; assent keys create makes one"


def raised(response: httpx.Response, where: str) -> AssentError:
    if not response.headers.get("content-type", "").startswith("application/problem+json"):
        return not_an_assent(response, where)
    try:
        problem = response.json()
    except ValueError:
        return not_an_assent(response, where)
    if not isinstance(problem, dict) or not isinstance(problem.get("code"), str):
        return not_an_assent(response, where)
    kind = _KINDS.get(response.status_code, AssentError)
    message = escaped(str(problem.get("detail")))
    return kind(message, hint="; ".join(_hints(problem)) or None)


def not_an_assent(response: httpx.Response, where: str) -> AssentError:
    """Something else listens there: a proxy, another server, an Assent from before the inbox."""
    to = response.headers.get("location", "")
    led = f", which leads to {escaped(to)}" if response.is_redirect and to else ""
    return AssentError(
        f"{where} answered {response.status_code}{led}, and not as an Assent does",
        hint="check --url (or ASSENT_URL)",
    )


def candidates(items: Sequence[View]) -> str:
    more = len(items) - _MOST_CANDIDATES
    lines = [f"{item['id']}  {escaped(item['title'])}" for item in items[:_MOST_CANDIDATES]]
    return "\n  ".join([*lines, *([f"and {more} more"] if more > 0 else [])])


def _hints(problem: dict[str, Any]) -> Iterator[str]:
    """Who was first, what is current, what would be possible: what there is to know before trying again."""
    code = problem["code"]
    if decision := problem.get("decision"):
        yield decided(decision)
    if code == "stale_revision":
        yield f"it is revision {problem['revision']} now, hash {problem['hash']}"
    if code == "claimed_by_other":
        yield f"claimed by {escaped(str(problem.get('claimed_by')))} until {problem.get('until')}"
    if code == "invalid_transition":
        yield f"possible from {problem.get('from')}: {', '.join(map(str, problem.get('allowed') or ())) or 'nothing'}"
    if code == "internal_error" and problem.get("request_id"):
        yield f"request {escaped(str(problem['request_id']))}"
    if code == "unauthenticated":
        yield _KEY
    elif problem.get("hint"):
        yield escaped(str(problem["hint"]))
