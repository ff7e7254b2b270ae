"""The prompts of the MCP servers, for people: a person reads the text of one, and sends it as a request, as it is or
changed. Nothing is sent here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from assent.assistant.failures import McpFailed
from assent.assistant.mcp.prompts import Prompt
from assent.assistant.mcp.servers import McpServers
from assent.errors import AssistantFailed, Invalid, NotFound, Problem
from assent.identity.model.access import Principal, Scope


@dataclass(frozen=True, slots=True)
class Listed:
    prompts: Sequence[Prompt]
    problems: Sequence[str]
    """Why some servers could not be asked for theirs."""


class Prompts:
    """`servers` gives the connections of this process; None without a configured server."""

    def __init__(self, servers: Callable[[], McpServers | None]) -> None:
        self._servers = servers

    @property
    def are_possible(self) -> bool:
        """Whether a server is configured that may have some."""
        return self._servers() is not None

    async def list(self, caller: Principal) -> Listed:
        caller.require(Scope.RUNS_WRITE)
        servers = self._servers()
        if servers is None:
            return Listed((), ())
        prompts, failures = await servers.prompts()
        return Listed(prompts, [failure.public for failure in failures])

    async def text(self, caller: Principal, name: str, arguments: Mapping[str, str]) -> str:
        """The text of a prompt with these arguments; those without a value are left out."""
        listed = await self.list(caller)
        prompt = next((prompt for prompt in listed.prompts if prompt.name == name), None)
        servers = self._servers()
        if prompt is None or servers is None:
            raise _unknown(name, listed)
        given = {name: value for name, value in arguments.items() if value}
        if problems := _problems(prompt, given):
            raise Invalid("; ".join(f"{problem.path}: {problem.message}" for problem in problems), problems=problems)
        try:
            return await servers.prompt(name, given)
        except McpFailed as error:
            raise AssistantFailed(f"the prompt cannot be read: {error.public}") from None


def _problems(prompt: Prompt, given: Mapping[str, str]) -> list[Problem]:
    known = {argument.name: argument for argument in prompt.arguments}
    missing = [name for name, argument in known.items() if argument.required and name not in given]
    return [
        *(Problem(f"arguments.{name}", "is required") for name in missing),
        *(Problem(f"arguments.{name}", "is not an argument of this prompt") for name in given if name not in known),
    ]


def _unknown(name: str, listed: Listed) -> NotFound | AssistantFailed:
    if listed.problems:
        return AssistantFailed(f"the prompt {name!r} is not there: {listed.problems[0]}")
    return NotFound(f"no server has a prompt {name!r}", hint="GET /prompts lists them")
