"""Lets calls of the calendar's tools through only while somebody has connected it, and otherwise asks them to.

A guard around the tools rather than code in them: an error −32042 that a tool raises would reach the client as the text
of a tool error, because FastMCP takes it for the tool's failure. What the guard raises goes onto the wire as it is.
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
    """`url` is where people reach this server; without it, where the call that is to be let through came to."""

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
        said = asking.answer(ctx, QUESTION)
        if said is not None and said.action != "accept":
            raise refused(f"the calendar is not connected: the person said {said.action}")
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
