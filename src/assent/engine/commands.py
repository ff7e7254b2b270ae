"""LangGraph's commands, made from the JSON in which the LangGraph API carries them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langgraph.types import Command


def command_of(command: Mapping[str, Any]) -> Command[Any]:
    """`goto` is the name of a node, `{"node", "input"}`, or a list of these."""
    from langgraph.types import Command, Send

    goto = command.get("goto") or ()
    targets = [goto] if isinstance(goto, str | Mapping) else goto
    sends = [one if isinstance(one, str) else Send(one["node"], one.get("input")) for one in targets]
    return Command(resume=command.get("resume"), update=command.get("update"), goto=sends)
