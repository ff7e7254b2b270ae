"""How a tool asks a person, in both eras of the protocol.

Since 2026-07-28 a call ends with the question, and the client calls again with the answer. Nothing is kept here in
between: state that the server would have the client carry is sealed for ten minutes with a key of the process, and
people answer later than that, also across restarts. Before, the server asks over the open connection while the call
waits. Either way the answer is an `ElicitResult`.
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
    """What the client can show to a person; nothing where it did not say."""
    declared = ctx.session.client_capabilities
    found = declared.elicitation if declared else None
    if found is None:
        return ElicitationCapability()
    # Until 2025-06-18 there were only forms, and an empty declaration still means them.
    return found if found.form or found.url else ElicitationCapability.model_validate({"form": {}})


def answer(ctx: Context, key: str) -> ElicitResult | None:
    """What the person said to the question of that name, where this call carries it."""
    found = (ctx.input_responses or {}).get(key)
    return found if isinstance(found, ElicitResult) else None


async def form(ctx: Context, key: str, message: str, schema: dict[str, Any]) -> ElicitResult | InputRequiredResult:
    """The person's answer, or the question that this call has to end with."""
    if not is_modern(ctx):
        return await _form_now(ctx, message, schema)
    question = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))
    return answer(ctx, key) or InputRequiredResult(input_requests={key: question})


async def _form_now(ctx: Context, message: str, schema: dict[str, Any]) -> ElicitResult:
    try:
        return await ctx.session.elicit_form(message, schema, ctx.request_id)
    except MCPError as error:
        raise Unavailable(f"the form could not be shown: {error}") from None
