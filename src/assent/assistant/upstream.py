"""The private part of FastMCP that the assistant uses. `tests/unit/test_upstream.py` fails when it moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastmcp import Client
    from mcp_types import CallToolResult, InputRequiredResult

    from assent.kernel.canonical import Json


async def call_tool(
    client: Client[Any], name: str, args: dict[str, Json], *, answers: Mapping[str, Any], state: str | None
) -> CallToolResult | InputRequiredResult:
    """One round of a call. FastMCP's own `call_tool` does not return what the server requires before it goes on; the
    session does, and FastMCP's monitor ends the wait when the session dies."""
    calling = client.session.call_tool(
        name, args, input_responses=dict(answers) or None, request_state=state, allow_input_required=True
    )
    return await client._await_with_session_monitoring(calling)
