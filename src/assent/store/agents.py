"""Which agent an actor of the timeline is, as policies name it."""

from __future__ import annotations

from assent.domain.access import Kind
from assent.domain.policies import Agent
from assent.store import keys
from assent.store.transaction import Tx


def agent_of(tx: Tx, actor: str) -> Agent:
    """By the name of its key, where it has one here. A person is no agent."""
    kind, _, agent_id = actor.partition(":")
    if kind != Kind.AGENT:
        return Agent()
    key = keys.by_id(tx, agent_id)
    return Agent(key.name if key else agent_id, agent_id)
