"""The private parts of FastMCP and MCP that the assistant uses. `tests/unit/test_upstream.py` fails when one moves."""

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


def is_closed(client: Client[Any]) -> bool:
    """Whether the server's side of the connection is gone: a process that has ended. Nothing public tells."""
    return bool(getattr(client.session._dispatcher, "_closed", False))
