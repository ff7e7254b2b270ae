"""Turns a server's problem response into the command's error, with a hint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import httpx

from assent.errors import AssentError, BadRequest, Conflict, Forbidden, Invalid, NotFound, Unauthenticated, Unavailable
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.item_views import View, decided

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
    """The response comes from another server, a proxy or an old version of Assent."""
    to = response.headers.get("location", "")
    redirect = f", a redirect to {escaped(to)}" if response.is_redirect and to else ""
    return AssentError(
        f"{where} is not an Assent server: it answered {response.status_code}{redirect}",
        hint="check --url (or ASSENT_URL)",
    )


def candidates(items: Sequence[View]) -> str:
    return "\n  ".join(f"{item['id']}  {escaped(item['title'])}" for item in items)


def _hints(problem: dict[str, Any]) -> Iterator[str]:
    """Facts for the next attempt: the earlier decision, the current revision, the possible actions."""
    code = problem["code"]
    if decision := problem.get("decision"):
        yield decided(decision)
    if code == "stale_revision":
        yield f"the current revision is {problem['revision']}, hash {problem['hash']}"
    if code == "claimed_by_other":
        yield f"claimed by {escaped(str(problem.get('claimed_by')))} until {problem.get('until')}"
    if code == "invalid_transition":
        yield f"possible from {problem.get('from')}: {', '.join(map(str, problem.get('allowed') or ())) or 'nothing'}"
    if code == "internal_error" and problem.get("request_id"):
        yield f"request {escaped(str(problem['request_id']))}"
    if code == "confirmation_required" and problem.get("url"):
        yield f"its page: {escaped(str(problem['url']))}"
    if code == "unauthenticated":
        yield _KEY
    elif problem.get("hint"):
        yield escaped(str(problem["hint"]))
