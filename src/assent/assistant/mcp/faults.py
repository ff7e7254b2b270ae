"""Errors of MCP servers, as failures: reported without secrets: their addresses and messages may contain some."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from assent.assistant.failures import McpFailed, McpLost, McpRefused

log = logging.getLogger(__name__)

METHOD_NOT_FOUND = -32601
_LOST = (-32000, -32001)
"""The client's own codes for a closed connection and for a missing response."""
_NO_ANSWER = (-32603, "Server returned an error response")
"""The client's error if a web server answered instead of the MCP server behind it."""
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+", re.IGNORECASE)


def shown(url: str) -> str:
    """The address without possible secrets: scheme, host and port."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "at an invalid address"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{parts.scheme}://{host}{port}"


def is_loss(error: Any) -> bool:
    """Whether an error of the protocol means that the connection is gone, not that the server refused the request."""
    return error.error.code in _LOST or (error.error.code, error.error.message) == _NO_ANSWER


def refused(name: str, status: int) -> McpRefused:
    """`status` is the status with which the server refused the credentials."""
    return McpRefused(f"the MCP server {name} refused the credentials ({status}): check ASSISTANT_MCP_HEADERS")


def unreachable(name: str, error: BaseException, *, sent: bool = False, status: int | None = None) -> McpFailed:
    """`status` as in `refused`; None if the server did not refuse them."""
    log.warning("call MCP server %s failed\n%s", name, _without_addresses(error))
    if status is not None:
        return refused(name, status)
    if sent and not _was_refused(error):
        return McpLost(f"the MCP server {name} was lost in the middle of a call")
    return McpFailed(f"the MCP server {name} cannot be reached: check ASSISTANT_MCP_URL, and that it runs")


def _without_addresses(error: BaseException) -> str:
    lines = "".join(traceback.format_exception(error))
    return _ADDRESS.sub(lambda match: shown(match[0]), lines).rstrip()


def _was_refused(error: BaseException) -> bool:
    """Whether the request never reached the server."""
    return any(type(cause).__name__ in ("ConnectError", "ConnectTimeout") for cause in _chain(error))


def _chain(error: BaseException) -> Iterator[Any]:
    """The error and its causes, each once. They are compared by name: the MCP client brings its own copy of httpx."""
    waiting, seen = [error], set[int]()
    while waiting:
        error = waiting.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
        waiting += [cause for cause in (*inner, error.__cause__, error.__context__) if cause is not None]
