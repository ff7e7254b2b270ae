"""Allows calls of the calendar's tools only while the calendar is connected, and otherwise asks for a login.

This is middleware rather than code in the tools: FastMCP turns an error −32042 raised by a tool into the text of a tool
error, while an error raised by middleware is sent unchanged.
"""

from __future__ import annotations

from collections.abc import Collection

from anyio import to_thread
from fastmcp import Context
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import InputRequiredToolResult, ToolResult
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import CallToolRequestParams, ElicitRequest, ElicitRequestURLParams, InputRequiredResult

from assent.assistant.calendar import asking
from assent.assistant.calendar.faults import refused
from assent.assistant.calendar.login import Login

QUESTION = "login"

_MESSAGE = "Connect the calendar, so that the assistant can read and change its events."


class LoginGuard(Middleware):
    """`url` is this server's address for people; by default the address that the call was sent to."""

    def __init__(self, login: Login, tools: Collection[str], url: str | None) -> None:
        self._login = login
        self._tools = frozenset(tools)
        self._url = url

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        ctx = context.fastmcp_context
        if context.message.name not in self._tools or await to_thread.run_sync(self._login.connected):
            return await call_next(context)
        if ctx is None or ctx.request_context is None:
            raise refused("the calendar is not connected, and there is no client to ask")
        return await self._ask(ctx)

    async def _ask(self, ctx: Context) -> ToolResult:
        reply = asking.answer(ctx, QUESTION)
        if reply is not None and reply.action != "accept":
            raise refused(f"the calendar is not connected: the person said {reply.action}")
        login_id = await to_thread.run_sync(self._login.wanted)
        url = f"{self._address(ctx)}/auth/connect/{login_id}"
        if not asking.is_modern(ctx):
            question = ElicitRequestURLParams(message=_MESSAGE, url=url, elicitation_id=login_id)
            raise UrlElicitationRequiredError([question], _MESSAGE)
        if asking.shows(ctx).url is None:
            raise refused(f"the calendar is not connected: open {url} and call again")
        question = ElicitRequestURLParams(message=_MESSAGE, url=url)
        return InputRequiredToolResult(InputRequiredResult(input_requests={QUESTION: ElicitRequest(params=question)}))

    def _address(self, ctx: Context) -> str:
        if self._url:
            return self._url.rstrip("/")
        request = ctx.request_context.request if ctx.request_context else None
        if request is None:
            raise refused("the calendar is not connected, and its login page has no address: serve it over HTTP")
        return f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '')}"
