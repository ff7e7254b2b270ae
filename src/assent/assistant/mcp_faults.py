"""Errors of MCP servers, reported without secrets: their addresses and messages may contain some."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

log = logging.getLogger(__name__)

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+", re.IGNORECASE)


class McpFailed(RuntimeError):
    """The MCP server cannot be reached. Not `Unavailable`, on which runs wait for the database."""


class McpRefused(McpFailed):
    """The MCP server does not accept the credentials."""


class McpLost(McpFailed):
    """The connection was lost after a call was sent: whether the call took effect is unknown."""


def shown(url: str) -> str:
    """The address without possible secrets: scheme, host and port."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "at an invalid address"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{parts.scheme}://{host}{port}"


def unreachable(name: str, error: BaseException, *, sent: bool = False, status: int | None = None) -> McpFailed:
    """`status` is the status with which the server refused the credentials."""
    log.warning("call MCP server %s failed\n%s", name, _without_addresses(error))
    if status is not None:
        return McpRefused(f"the MCP server {name} refused the credentials ({status}): check ASSISTANT_MCP_HEADERS")
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
