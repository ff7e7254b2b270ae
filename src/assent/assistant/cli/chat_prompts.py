"""The prompts of the MCP servers in `assent chat`: a list of them, and one with the arguments that a person types."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from assent.assistant.cli.chat_questions import read
from assent.errors import Invalid
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.output import say

View = dict[str, Any]

LIST, USE = "/prompts", "/prompt"


def show(listed: View) -> None:
    for prompt in listed["prompts"]:
        blanks = " ".join(map(_blank, prompt["arguments"]))
        say(f"  {escaped(prompt['name'])} {blanks}".rstrip())
        if prompt["description"]:
            say(f"    {escaped(prompt['description'])}")
    for problem in listed["problems"]:
        say(f"! {escaped(problem)}")
    if not listed["prompts"] and not listed["problems"]:
        say("No MCP server has a prompt.")


def parsed(line: str) -> tuple[str, dict[str, str]]:
    """The name and the arguments of `/prompt NAME name=value …`."""
    try:
        name, *settings = shlex.split(line)[1:]
    except ValueError:
        raise Invalid(f"write {USE} NAME name=value …; {LIST} lists the names") from None
    given = [setting.partition("=") for setting in settings]
    if unset := next((name for name, equals, _ in given if not equals), None):
        raise Invalid(f"{unset}: write arguments as name=value")
    return name, {name: value for name, _, value in given}


def completed(prompt: View, given: Mapping[str, str]) -> dict[str, str]:
    """The arguments, those that are required and missing as the person types them."""
    missing: Sequence[View] = [
        argument for argument in prompt["arguments"] if argument["required"] and argument["name"] not in given
    ]
    return {**given, **{argument["name"]: _typed(argument) for argument in missing}}


def _typed(argument: View) -> str:
    about = f" ({escaped(argument['description'])})" if argument["description"] else ""
    while not (value := read(f"  {escaped(argument['name'])}{about}: ").strip()):
        say("  a value is required")
    return value


def _blank(argument: View) -> str:
    name = escaped(argument["name"])
    return f"{name}=…" if argument["required"] else f"[{name}=…]"
