"""Questions of a tool to a person, in both generations of the protocol.

Since 2026-07-28 a call ends with the question, and the client calls again with the answer. The server stores nothing in
between, and sends no request state: that is sealed for ten minutes with a key of the process, and people answer later
than that, also after restarts. Before, the server asks over the open connection while the call waits. In both cases the
answer is an `ElicitResult`.
"""

from __future__ import annotations

from typing import Any

from fastmcp import Context
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitationCapability, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from assent.errors import Unavailable


def is_modern(ctx: Context) -> bool:
    request = ctx.request_context
    return request is not None and request.protocol_version in MODERN_PROTOCOL_VERSIONS


def shows(ctx: Context) -> ElicitationCapability:
    """The client's declared capabilities; none by default."""
    declared = ctx.session.client_capabilities
    capability = declared.elicitation if declared else None
    if capability is None:
        return ElicitationCapability()
    # Until 2025-06-18 there were only forms, and an empty declaration still means them.
    return capability if capability.form or capability.url else ElicitationCapability.model_validate({"form": {}})


def answer(ctx: Context, key: str) -> ElicitResult | None:
    """The person's answer to the question with this key, if the call has it."""
    response = (ctx.input_responses or {}).get(key)
    return response if isinstance(response, ElicitResult) else None


async def form(ctx: Context, key: str, message: str, schema: dict[str, Any]) -> ElicitResult | InputRequiredResult:
    """The person's answer, or the question as the result of this call."""
    if not is_modern(ctx):
        return await _form_now(ctx, message, schema)
    question = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
    return answer(ctx, key) or InputRequiredResult(input_requests={key: question})


async def _form_now(ctx: Context, message: str, schema: dict[str, Any]) -> ElicitResult:
    try:
        return await ctx.session.elicit_form(message, schema, ctx.request_id)
    except MCPError as error:
        raise Unavailable(f"the form could not be shown: {error}") from None
