"""The agent of an actor of the timeline, as policies name it."""

from __future__ import annotations

from assent.identity.model.access import Agent, Kind
from assent.identity.rows import keys
from assent.kernel.store.transaction import Tx


def agent_of(tx: Tx, actor: str) -> Agent:
    """By the name of its keys, where it has any; its id is that of the first. A person is not an agent."""
    kind, _, agent_id = actor.partition(":")
    if kind != Kind.AGENT:
        return Agent()
    key = keys.by_id(tx, agent_id)
    return Agent(key.name if key else agent_id, agent_id)
