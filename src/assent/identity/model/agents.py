"""The agents of a tenant: whom they work for, and the person who reviews their work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from assent.identity.model.access import Kind


class Source(StrEnum):
    """A `system` agent belongs to the operators, every other one to its user."""

    USER = "user"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class RegisteredAgent:
    """`parent_id` is the agent that it works for; `human_id` the person who reviews its work. Either may be gone."""

    id: str
    name: str
    parent_id: str | None
    human_id: str | None
    source: Source
    created_at: datetime
    updated_at: datetime
    parent: str | None = None
    """The name of the parent; None if it is gone."""
    human: str | None = None
    """The name of the person; None if they are gone."""

    @property
    def actor(self) -> str:
        return f"{Kind.AGENT}:{self.id}"


@dataclass(frozen=True, slots=True)
class AgentFilter:
    """The agents of a list: those that match all given fields."""

    text: str | None = None
    """A part of the name."""
    parent: str | None = None
    """The name of the parent."""
    human: str | None = None
    """The name of the person."""
    source: Source | None = None


def is_below(agent_id: str, parent_id: str, parent_of: Callable[[str], str | None]) -> bool:
    """Whether the parent is the agent itself or below it: the chain would be a cycle. Ends in an existing cycle too."""
    seen, current = set[str](), parent_id
    while current not in seen:
        if current == agent_id:
            return True
        seen.add(current)
        above = parent_of(current)
        if above is None:
            return False
        current = above
    return False
