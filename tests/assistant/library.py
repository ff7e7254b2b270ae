"""An MCP server with resources and prompts."""

from __future__ import annotations

from fastmcp import FastMCP
from fastmcp.prompts import Message

ATLAS, COVER, BOOK = "books://atlas", "books://atlas/cover", "books://{title}/summary"


def library() -> FastMCP:
    server = FastMCP("library")
    server.resource(ATLAS, name="atlas", description="Maps of the world")(lambda: "Here be dragons.")
    server.resource(COVER, name="cover", mime_type="image/png")(lambda: b"12345")

    @server.resource(BOOK, description="What a book is about")
    def summary(title: str) -> str:
        return f"{title}: it ends well."

    @server.prompt
    def recommend(topic: str, mood: str = "any") -> str:
        """Ask for a book."""
        return f"Recommend a book about {topic}; mood: {mood}."

    @server.prompt
    def greet() -> list[Message]:
        return [Message("Good morning."), Message("Good morning to you.", role="assistant")]

    server.tool(lambda: "lent", name="lend", tags={"resources"})
    return server
