"""Turns a server's problem response into the error class with its code, with the facts of the response."""

from __future__ import annotations

from collections.abc import Iterator

import httpx

from assent import errors
from assent.errors import AssentError, BadRequest, Conflict, Forbidden, Invalid, NotFound, Unauthenticated, Unavailable

_BY_STATUS: dict[int, type[AssentError]] = {
    400: BadRequest,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: Invalid,
    422: Invalid,
    429: errors.TooManyRequests,
    503: Unavailable,
    507: Unavailable,
}
_ENVELOPE = frozenset({"type", "title", "status", "detail", "code", "hint"})


def raised(response: httpx.Response, where: str) -> AssentError:
    """`where` names the server in the message."""
    declared = response.headers.get("content-type", "").startswith("application/problem+json")
    if "/api/" in response.request.url.path and not declared:  # other routes are LangGraph's, with errors as JSON
        return not_an_assent(response, where)
    try:
        problem = response.json()
    except ValueError:
        return not_an_assent(response, where)
    if not isinstance(problem, dict) or not isinstance(problem.get("code"), str):
        return not_an_assent(response, where)
    kind = _by_code().get(problem["code"]) or _BY_STATUS.get(response.status_code, AssentError)
    return _error(kind, problem)


def not_an_assent(response: httpx.Response, where: str) -> AssentError:
    """The response comes from another server, a proxy or an old version of Assent."""
    to = response.headers.get("location", "")
    redirect = f", a redirect to {to}" if response.is_redirect and to else ""
    return AssentError(f"{where} is not an Assent server: it answered {response.status_code}{redirect}")


def _error(kind: type[AssentError], problem: dict[str, object]) -> AssentError:
    """Built without the class's own constructor, whose arguments differ from class to class."""
    error = kind.__new__(kind)
    facts = {name: value for name, value in problem.items() if name not in _ENVELOPE}
    hint = problem.get("hint")
    AssentError.__init__(error, str(problem.get("detail")), hint=str(hint) if hint else None, **facts)
    return error


def _by_code() -> dict[str, type[AssentError]]:
    return {kind.code: kind for kind in _all(AssentError)}


def _all(kind: type[AssentError]) -> Iterator[type[AssentError]]:
    yield kind
    for narrower in kind.__subclasses__():
        yield from _all(narrower)
