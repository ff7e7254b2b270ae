"""`python -m tests.assistant.guarded PORT`: an MCP server behind OAuth, with its authorization server, in a process of
its own."""

from __future__ import annotations

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers import in_memory
from mcp.server.auth.settings import ClientRegistrationOptions
from mcp_types import ToolAnnotations
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response


def main(port: int) -> None:
    address = f"http://127.0.0.1:{port}"
    auth = in_memory.InMemoryOAuthProvider(
        base_url=address, client_registration_options=ClientRegistrationOptions(enabled=True)
    )
    server = FastMCP("vault", auth=auth)
    done: list[str] = []

    @server.tool(annotations=ToolAnnotations(read_only_hint=True), tags={"vault"})
    def look() -> str:
        """Look into the vault."""
        done.append("look")
        return "gold"

    @server.tool(tags={"vault"})
    def store(thing: str) -> str:
        """Store a thing."""
        done.append(f"store {thing}")
        return f"{thing} is in the vault"

    @server.custom_route("/done", methods=["GET"])
    async def told(request: Request) -> Response:
        return PlainTextResponse(" | ".join(done))

    @server.custom_route("/revoke", methods=["POST"])
    async def revoke(request: Request) -> Response:
        auth.access_tokens.clear()
        auth.refresh_tokens.clear()
        return PlainTextResponse("gone")

    @server.custom_route("/counts", methods=["GET"])
    async def counts(request: Request) -> Response:
        return PlainTextResponse(f"{len(auth.clients)} clients {len(auth.access_tokens)} tokens")

    server.run("http", host="127.0.0.1", port=port, show_banner=False, log_level="warning")


if __name__ == "__main__":
    main(int(sys.argv[1]))
