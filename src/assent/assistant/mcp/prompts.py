"""The prompts of an MCP server: texts with blanks that a person fills in and sends as a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assent.assistant.mcp.connection import may_have
from assent.assistant.mcp.faults import METHOD_NOT_FOUND, is_loss
from assent.assistant.mcp.results import text_of
from assent.errors import Invalid

if TYPE_CHECKING:
    from fastmcp import Client


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    name: str
    description: str
    arguments: tuple[Argument, ...] = ()


async def listed(client: Client[Any]) -> list[Prompt]:
    from mcp.shared.exceptions import MCPError

    if not may_have(client, "prompts"):
        return []
    try:
        return [_prompt(prompt) for prompt in await client.list_prompts()]
    except MCPError as error:
        if error.error.code == METHOD_NOT_FOUND:
            return []
        raise


async def text(client: Client[Any], name: str, arguments: dict[str, str]) -> str:
    """The prompt with these arguments. Its messages become one text; those of the assistant are marked."""
    from mcp.shared.exceptions import MCPError

    try:
        result = await client.get_prompt_mcp(name, arguments)
    except MCPError as error:
        if is_loss(error):
            raise
        raise Invalid(f"the server refused the prompt: {error.error.message}") from None
    said = [(message.role, text_of(message.content)) for message in result.messages]
    return "\n\n".join(spoken if role == "user" else f"{role}: {spoken}" for role, spoken in said)


def _prompt(listed: Any) -> Prompt:
    arguments = [
        Argument(argument.name, argument.description or "", bool(argument.required))
        for argument in listed.arguments or ()
    ]
    return Prompt(listed.name, listed.description or listed.title or "", tuple(arguments))
