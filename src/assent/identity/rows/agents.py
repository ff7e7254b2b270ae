"""The registry of agents. Every agent with a key has a row, from its first key on."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, bindparam, delete, func, select, update

from assent.identity.model.access import Agent, Kind
from assent.identity.model.agents import AgentFilter, RegisteredAgent, Source
from assent.identity.rows import keys
from assent.kernel.store.paging import Keyset, Page
from assent.kernel.store.tables import TENANT, agents, users
from assent.kernel.store.transaction import Tx

_PARENTS = agents.alias("parents")
_ALL = (
    select(agents, _PARENTS.c.name.label("parent"), users.c.name.label("human"))
    .outerjoin(_PARENTS, (_PARENTS.c.tenant_id == agents.c.tenant_id) & (_PARENTS.c.agent_id == agents.c.parent_id))
    .outerjoin(users, (users.c.tenant_id == agents.c.tenant_id) & (users.c.user_id == agents.c.human_id))
    .where(agents.c.tenant_id == TENANT)
)
_BY_ID = _ALL.where(agents.c.agent_id == bindparam("id"))
_NAMED = _ALL.where((agents.c.agent_id == bindparam("named")) | (agents.c.name == bindparam("named"))).order_by(
    agents.c.agent_id
)
_PARENT = select(agents.c.parent_id).where(agents.c.tenant_id == TENANT, agents.c.agent_id == bindparam("id"))
_COUNT = select(func.count()).select_from(agents).where(agents.c.tenant_id == TENANT)
_THIS = (agents.c.tenant_id == TENANT, agents.c.agent_id == bindparam("this"))
_SET = (
    update(agents)
    .where(*_THIS)
    .values(
        name=bindparam("new_name"),
        parent_id=bindparam("new_parent"),
        human_id=bindparam("new_human"),
        source=bindparam("new_source"),
        updated_at=bindparam("now"),
    )
)
_REMOVE = delete(agents).where(*_THIS)
_ORDER = Keyset((agents.c.name, agents.c.agent_id))


def insert_new(
    tx: Tx,
    agent_id: str,
    name: str,
    *,
    parent_id: str | None = None,
    human_id: str | None = None,
    source: Source = Source.USER,
) -> bool:
    """False if the agent is registered already."""
    now = tx.now()
    columns = {"name": name, "parent_id": parent_id, "human_id": human_id, "source": source}
    return tx.insert_new(agents, agent_id=agent_id, **columns, created_at=now, updated_at=now)


def save(tx: Tx, agent: RegisteredAgent) -> None:
    tx.change(
        _SET,
        this=agent.id,
        new_name=agent.name,
        new_parent=agent.parent_id,
        new_human=agent.human_id,
        new_source=agent.source,
        now=tx.now(),
    )


def remove(tx: Tx, agent_id: str) -> None:
    tx.change(_REMOVE, this=agent_id)


def by_id(tx: Tx, agent_id: str) -> RegisteredAgent | None:
    row = tx.first(_BY_ID, id=agent_id)
    return None if row is None else _from_row(row)


def named(tx: Tx, name_or_id: str) -> list[RegisteredAgent]:
    """The agents with this id or name. An id is unique."""
    matching = [_from_row(row) for row in tx.all(_NAMED, named=name_or_id)]
    return [agent for agent in matching if agent.id == name_or_id] or matching


def parent_of(tx: Tx, agent_id: str) -> str | None:
    row = tx.first(_PARENT, id=agent_id)
    return None if row is None else row.parent_id


def page(tx: Tx, wanted: AgentFilter, *, limit: int, cursor: str | None) -> Page[RegisteredAgent]:
    statement = _ALL
    if wanted.text:
        statement = statement.where(agents.c.name.icontains(wanted.text, autoescape=True))
    if wanted.parent is not None:
        statement = statement.where(_PARENTS.c.name == wanted.parent)
    if wanted.human is not None:
        statement = statement.where(users.c.name == wanted.human)
    if wanted.source is not None:
        statement = statement.where(agents.c.source == wanted.source)
    return _ORDER.page(tx, statement, _from_row, limit=limit, cursor=cursor)


def count(tx: Tx) -> int:
    row = tx.first(_COUNT)
    return int(row[0]) if row else 0


def agent_of(tx: Tx, actor: str) -> Agent:
    """The agent of an actor of the timeline, as policies name it. A person is not an agent."""
    kind, _, agent_id = actor.partition(":")
    if kind != Kind.AGENT:
        return Agent()
    named_by = by_id(tx, agent_id) or keys.by_id(tx, agent_id)  # the keys of a removed agent still have its name
    return Agent(named_by.name if named_by else agent_id, agent_id)


def _from_row(row: Row[Any]) -> RegisteredAgent:
    return RegisteredAgent(
        row.agent_id,
        row.name,
        row.parent_id,
        row.human_id,
        Source(row.source),
        row.created_at,
        row.updated_at,
        row.parent,
        row.human,
    )
