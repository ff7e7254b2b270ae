"""How an MCP server fails, and what may be said about it: its address may hold secrets, and so may its errors."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx

log = logging.getLogger(__name__)

_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+", re.IGNORECASE)


class McpFailed(RuntimeError):
    """The MCP server cannot be reached. Not `Unavailable`: runs wait for a database that is."""


class McpLost(McpFailed):
    """The server was lost after a call was sent to it: whether it was carried out, nobody knows."""


def shown(url: str) -> str:
    """The address without what may be secret in it: scheme, host and port."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "at a wrong address"
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{parts.scheme}://{host}{port}"


def unreachable(name: str, error: BaseException, *, sent: bool = False) -> McpFailed:
    log.warning("the MCP server %s failed\n%s", name, _told(error))
    if sent and not _was_refused(error):
        return McpLost(f"the MCP server {name} was lost in the middle of a call")
    return McpFailed(f"the MCP server {name} cannot be reached: check ASSISTANT_MCP_URL, and that it runs")


def _told(error: BaseException) -> str:
    lines = "".join(traceback.format_exception(error))
    return _ADDRESS.sub(lambda found: shown(found[0]), lines).rstrip()


def _was_refused(error: BaseException) -> bool:
    """Whether it never got as far as the server."""
    return any(isinstance(one, httpx.ConnectError | httpx.ConnectTimeout) for one in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for one in error.exceptions:
                yield from _chain(one)
        error = error.__cause__ or error.__context__
