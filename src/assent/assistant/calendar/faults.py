"""Translates callers' mistakes into tool errors that name the field.

A tool error is a result that the model reads and can act on; a protocol error would end the agent's run.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastmcp.exceptions import ToolError, ValidationError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams
from pydantic import ValidationError as PydanticError

from assent.errors import AssentError


def translating_errors(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a tool: our errors become tool errors. Wraps the function itself, because FastMCP would log a traceback."""

    @functools.wraps(tool)
    def plain(*args: Any, **kwargs: Any) -> Any:
        with _as_tool_error():
            return tool(*args, **kwargs)

    @functools.wraps(tool)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        with _as_tool_error():
            return await tool(*args, **kwargs)

    return awaited if inspect.iscoroutinefunction(tool) else plain


class Arguments(Middleware):
    """Reports invalid arguments by field, without links to pydantic's manual."""

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        try:
            return await call_next(context)
        except ValidationError as error:
            if isinstance(error.__cause__, PydanticError):
                raise refused(by_field(error.__cause__)) from None
            raise


def by_field(error: PydanticError) -> str:
    return "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors())


def refused(message: str) -> ToolError:
    return ToolError(message, log_level=logging.DEBUG)  # the caller's mistake, reported to the caller


@contextmanager
def _as_tool_error() -> Iterator[None]:
    try:
        yield
    except AssentError as error:
        raise refused(f"{error.message} ({error.hint})" if error.hint else error.message) from None
