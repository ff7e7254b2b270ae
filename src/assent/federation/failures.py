"""Why a deployment cannot be used: the problem, and the section of the documentation about it."""

from __future__ import annotations

import errno
import re
import ssl
from collections.abc import Iterator

from assent.errors import DeploymentFailed
from assent.threads.model.deployments import Trouble

_STOPPED = (502, 503, 504)
_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
_BROKE_OFF = re.compile("disconnect|peer closed|incomplete", re.IGNORECASE)  # an answer, but not all of it


def failed(problem: Trouble, message: str, *, unsure: bool = False, answered: int | None = None) -> DeploymentFailed:
    return DeploymentFailed(problem, message, hint=f"see {problem.page}", unsure=unsure, answered=answered)


def refusal(url: str, status: int, request: str) -> DeploymentFailed:
    if status in (401, 403):
        reason = f"{url} refused the key of this deployment"
        return failed(Trouble.KEY_REFUSED, f"{reason}: {status} to {request}", answered=status)
    if status in _STOPPED:
        return failed(Trouble.STOPPED, f"{url} is stopped, or starting: it answers {status}", answered=status)
    return failed(Trouble.FAILING, f"{url} answered {status} to {request}", answered=status)


def not_reached(url: str, error: Exception, timeout: float, reason: str) -> DeploymentFailed:
    import httpx

    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLError) and cause.reason in _PLAIN for cause in causes):
        return failed(Trouble.TLS, f"{url} does not speak TLS: use http://, or the port of https://")
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return failed(Trouble.TLS, f"no secure connection to {url}: {reason}")
    if any(isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED for cause in causes):
        return failed(Trouble.STOPPED, f"no server listens at {url}: it is stopped, or the port is wrong")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return failed(Trouble.UNREACHABLE, f"{url} cannot be reached: {reason}")
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        message = f"{url} did not answer within {timeout:g} seconds"
        return failed(Trouble.UNREACHABLE, message, unsure=True)
    if isinstance(error, httpx.RemoteProtocolError) and not _BROKE_OFF.search(str(error)):
        return failed(Trouble.NOT_LANGGRAPH, f"{url} does not answer with HTTP", unsure=True)
    return failed(Trouble.UNREACHABLE, f"the connection to {url} broke: {type(error).__name__}", unsure=True)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                yield from _causes(inner)
        error = error.__cause__ or error.__context__
