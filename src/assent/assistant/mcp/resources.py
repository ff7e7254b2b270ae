"""The resources of an MCP server, as two tools for the model: one lists them, the other reads one.

Both only read, as far as the server is trusted, and pass the gate as every tool does. A tool of the server's own with
the same name takes precedence.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from assent.assistant.mcp.connection import may_have
from assent.assistant.tools import Tool
from assent.kernel.canonical import Json

if TYPE_CHECKING:
    from fastmcp import Client
    from mcp_types import CallToolResult

log = logging.getLogger(__name__)

LIST, READ = "list_resources", "read_resource"
_TYPE = "resources"
_NO_ARGUMENTS: Json = {"type": "object", "properties": {}}
_URI: Json = {
    "type": "object",
    "properties": {"uri": {"type": "string", "minLength": 1, "description": f"As {LIST} gives it."}},
    "required": ["uri"],
}


async def tools_for(client: Client[Any], server: str, *, trusted: bool) -> list[Tool]:
    """None for a server without resources, or that cannot list them: it keeps its other tools."""
    from mcp.shared.exceptions import MCPError

    try:
        if not any(await _listed(client)):
            return []
    except MCPError as error:
        log.warning("list resources of MCP server %s failed: code %s", server, error.error.code)
        return []
    listing = f"List the resources of {server}: documents, files and records that can be read, by their URIs."
    reading = f"Read a resource of {server} by its URI."
    return [
        Tool(LIST, listing, _NO_ARGUMENTS, (_TYPE,), reads_only=trusted),
        Tool(READ, reading, _URI, (_TYPE,), reads_only=trusted),
    ]


async def call(client: Client[Any], name: str, args: dict[str, Json]) -> CallToolResult:
    """In the form of a tool's result."""
    from mcp_types import CallToolResult, EmbeddedResource

    if name == LIST:
        return CallToolResult(content=await _links(client))
    read = await client.read_resource_mcp(str(args["uri"]))
    return CallToolResult(content=[EmbeddedResource(type="resource", resource=part) for part in read.contents])


async def _links(client: Client[Any]) -> list[Any]:
    from mcp_types import ResourceLink, TextContent

    resources, templates = await _listed(client)
    links = [ResourceLink.model_validate({**_plain(resource), "type": "resource_link"}) for resource in resources]
    patterns = [f"{part.uri_template}: {part.description or part.name}" for part in templates]
    return [*links, *(TextContent(type="text", text=pattern) for pattern in patterns)]


async def _listed(client: Client[Any]) -> tuple[list[Any], list[Any]]:
    """The resources, and the patterns of the URIs of others."""
    if not may_have(client, "resources"):
        return [], []
    resources, templates = await asyncio.gather(client.list_resources(), _templates(client))
    return resources, templates


async def _templates(client: Client[Any]) -> list[Any]:
    """A server may have resources without patterns, and not know the request."""
    from mcp.shared.exceptions import MCPError

    try:
        return list(await client.list_resource_templates())
    except MCPError:
        return []


def _plain(resource: Any) -> dict[str, Any]:
    described: dict[str, Any] = resource.model_dump(mode="json", by_alias=True, exclude_none=True)
    return described
