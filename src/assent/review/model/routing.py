"""The route of a workspace review: up the parents of the agent that asks, to the first paired person.

Without a person the review goes to the operators: as their own, if the chain ends at a system agent, and otherwise with
a warning that says which part of the registry to check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from assent.kernel.canonical import Json

DEEPEST = 8
"""The number of agents of a chain, with the agent that asks."""


class Route(StrEnum):
    PAIRED = "paired"
    SYSTEM = "system"
    UNROUTED = "unrouted"


class Reason(StrEnum):
    """The defect of a chain that leads to nobody."""

    UNKNOWN = "unknown"
    ORPHAN = "orphan"
    CYCLE = "cycle"
    DEPTH = "depth"
    TENANT = "tenant"
    PAIR = "pair"


ADVICE = {
    Reason.UNKNOWN: "The agent of this run is not in the registry. Register it, or start its runs with its own key.",
    Reason.ORPHAN: "The parent chain ends without a person. Pair the last agent with one, or look for a removed one.",
    Reason.CYCLE: "The parent chain is a cycle. Look for an agent that is its own ancestor.",
    Reason.DEPTH: "The parent chain is too long. Look for agents that keep creating agents.",
    Reason.TENANT: "The parent chain leads to an agent of another tenant. Look for a parent with a wrong id.",
    Reason.PAIR: "The paired person cannot decide. Look for a disabled person or a changed role, or pair another one.",
}
"""The part of the registry to check."""


def advised(routing: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The stored route, with the part of the registry to check if it leads to nobody."""
    if routing is None or routing.get("reason") is None:
        return routing
    return {**routing, "advice": ADVICE[Reason(str(routing["reason"]))]}


@dataclass(frozen=True, slots=True)
class Link:
    """One agent of a chain. `decides`: whether its paired person can decide now."""

    id: str
    name: str
    tenant: str
    parent_id: str | None = None
    human_id: str | None = None
    system: bool = False
    decides: bool = True


@dataclass(frozen=True, slots=True)
class Routing:
    route: Route
    chain: tuple[str, ...] = ()
    """The names of the agents, from the one that asks."""
    human_id: str | None = None
    reason: Reason | None = None

    def to_json(self) -> dict[str, Json]:
        reason = {"reason": self.reason} if self.reason else {}
        return {"kind": self.route, "chain": list(self.chain), **reason}


def route(agent_id: str | None, tenant: str, lookup: Callable[[str], Link | None]) -> Routing:
    """Walks up from an agent of the tenant. None is an agent that is not known."""
    chain, seen, current = list[str](), set[str](), agent_id
    while current is not None:
        if current in seen:
            return _unrouted(Reason.CYCLE, chain)
        if len(chain) == DEEPEST:
            return _unrouted(Reason.DEPTH, chain)
        link = lookup(current)
        if link is None:
            return _unrouted(Reason.ORPHAN if chain else Reason.UNKNOWN, chain)
        if link.tenant != tenant:
            return _unrouted(Reason.TENANT, chain)
        seen.add(current)
        chain.append(link.name)
        if link.human_id is not None:
            return _paired(link, chain)
        if link.parent_id is None and link.system:
            return Routing(Route.SYSTEM, tuple(chain))
        current = link.parent_id
    return _unrouted(Reason.ORPHAN if chain else Reason.UNKNOWN, chain)


def _paired(link: Link, chain: list[str]) -> Routing:
    if not link.decides:
        return _unrouted(Reason.PAIR, chain)
    return Routing(Route.PAIRED, tuple(chain), human_id=link.human_id)


def _unrouted(reason: Reason, chain: list[str]) -> Routing:
    return Routing(Route.UNROUTED, tuple(chain), reason=reason)


_TITLE, _UNROUTED = "Workspace review:", "Workspace review (unrouted):"


def titled(routing: Routing, subject: str) -> str:
    return f"{_UNROUTED if routing.route is Route.UNROUTED else _TITLE} {subject}"


def marked(title: str) -> str:
    """The title of a review that has lost its person."""
    return title.replace(_TITLE, _UNROUTED, 1)
