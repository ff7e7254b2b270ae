"""The registry of agents: name, parent agent, paired person and source. Administrators write it; it is read by everyone
who may read items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Literal

from assent.errors import AlreadyExists, AssentError, ConfigError, Conflict, Invalid, NotFound
from assent.identity import names
from assent.identity.model.access import Kind, Principal, Scope, operator
from assent.identity.model.agents import AgentFilter, RegisteredAgent, Source, is_below
from assent.identity.rows import agents, keys, users
from assent.kernel import events
from assent.kernel.ids import new_id
from assent.kernel.store import idempotency
from assent.kernel.store.paging import Page
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx

MOST = 10_000


class Keep(Enum):
    """Leaves a field as it is; None removes its value."""

    IT = "it"


KEEP: Literal[Keep.IT] = Keep.IT


@dataclass(frozen=True, slots=True)
class AgentChange:
    """The wanted fields of an agent. `parent` is another agent by name or id, `human` a person by name."""

    name: str | None = None
    parent: str | Keep | None = KEEP
    human: str | Keep | None = KEEP
    source: Source | None = None


class Agents:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(
        self, caller: Principal, wanted: AgentFilter | None = None, *, limit: int = 50, cursor: str | None = None
    ) -> Page[RegisteredAgent]:
        """By name."""
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, agents.page, wanted or AgentFilter(), limit=limit, cursor=cursor)

    async def get(self, caller: Principal, name_or_id: str) -> RegisteredAgent:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, require_agent, name_or_id)

    async def create(self, caller: Principal, name: str, wanted: AgentChange) -> RegisteredAgent:
        """An agent without a key; `keys.create` with its name gives it one."""
        caller.require(Scope.ADMIN)
        return await self._store.write(caller.tenant, _create, caller, names.checked(name), wanted)

    async def change(self, caller: Principal, name_or_id: str, wanted: AgentChange) -> RegisteredAgent:
        caller.require(Scope.ADMIN)
        if wanted.name is not None:
            wanted = replace(wanted, name=names.checked(wanted.name))
        return await self._store.write(caller.tenant, _change, caller, name_or_id, wanted)

    async def remove(self, caller: Principal, name_or_id: str) -> RegisteredAgent:
        """Agents below it become orphans: their reviews go to the operators, with a warning."""
        caller.require(Scope.ADMIN)
        return await self._store.write(caller.tenant, _remove, caller, name_or_id)

    async def provide(self, tenant: str, wanted: Sequence[tuple[str, AgentChange]]) -> None:
        """At start: the agents of the settings file, created or changed where they differ. Others stay."""
        if not wanted:
            return
        try:
            await self._store.write(tenant, _provide, operator(tenant), wanted)
        except AssentError as error:
            raise ConfigError(f"agents (from the settings): {error.message}", hint=error.hint) from error


def require_agent(tx: Tx, name_or_id: str) -> RegisteredAgent:
    """The one agent with this id or name."""
    matching = agents.named(tx, name_or_id)
    if not matching:
        raise NotFound(f"there is no agent {name_or_id!r}", hint="assent agents list shows them")
    if len(matching) > 1:
        raise Conflict(f"{len(matching)} agents are named {name_or_id!r}", hint="give the id of the one you mean")
    return matching[0]


def _create(tx: Tx, caller: Principal, name: str, wanted: AgentChange) -> RegisteredAgent:
    _hold(tx)
    if agents.named(tx, name):
        raise AlreadyExists(f"there is an agent {name!r} already", hint="change it instead")
    if agents.count(tx) >= MOST:
        raise Conflict(f"the registry has {MOST} agents, the maximum", hint="remove agents that are gone")
    agent_id = new_id()
    fields = _resolved(tx, RegisteredAgent(agent_id, name, None, None, Source.USER, tx.now(), tx.now()), wanted)
    agents.insert_new(tx, agent_id, name, parent_id=fields.parent_id, human_id=fields.human_id, source=fields.source)
    events.append(tx, caller, "agent.registered", fields.actor, _facts(fields))
    return require_agent(tx, agent_id)


def _change(tx: Tx, caller: Principal, name_or_id: str, wanted: AgentChange) -> RegisteredAgent:
    _hold(tx)
    before = require_agent(tx, name_or_id)
    if wanted.name not in (None, before.name):
        _require_renamable(tx, before, str(wanted.name))
    after = _resolved(tx, before, wanted)
    if _facts(after) != _facts(before):
        agents.save(tx, after)
        events.append(tx, caller, "agent.changed", before.actor, {"from": _facts(before), "to": _facts(after)})
    return require_agent(tx, before.id)


def _remove(tx: Tx, caller: Principal, name_or_id: str) -> RegisteredAgent:
    _hold(tx)
    agent = require_agent(tx, name_or_id)
    if any(key.usable(tx.now()) for key in keys.of_principal(tx, Kind.AGENT, agent.id)):
        raise Conflict(f"the agent {agent.name!r} has keys that work", hint="revoke its keys first")
    agents.remove(tx, agent.id)
    events.append(tx, caller, "agent.removed", agent.actor, _facts(agent))
    return agent


def _provide(tx: Tx, caller: Principal, wanted: Sequence[tuple[str, AgentChange]]) -> None:
    """In two passes, because an agent may name a parent that comes after it."""
    for name, _ in wanted:
        if not agents.named(tx, names.checked(name)):
            _create(tx, caller, names.checked(name), AgentChange())
    for name, change in wanted:
        _change(tx, caller, names.checked(name), change)


def _hold(tx: Tx) -> None:
    """Changes of the registry run one after the other: two that are valid alone could make a cycle together."""
    idempotency.hold(tx, "agents", "registry")


def _require_renamable(tx: Tx, agent: RegisteredAgent, name: str) -> None:
    if keys.of_principal(tx, Kind.AGENT, agent.id):
        raise Conflict(f"the keys of the agent have its name {agent.name!r}", hint="register another agent")
    if agents.named(tx, name):
        raise AlreadyExists(f"there is an agent {name!r} already")


def _resolved(tx: Tx, agent: RegisteredAgent, wanted: AgentChange) -> RegisteredAgent:
    """The agent with the wanted fields; raises `Invalid` for names that do not exist and for a cycle."""
    parent_id, human_id = agent.parent_id, agent.human_id
    if not isinstance(wanted.parent, Keep):
        parent_id = _parent(tx, agent, wanted.parent) if wanted.parent is not None else None
    if not isinstance(wanted.human, Keep):
        human_id = _human(tx, wanted.human) if wanted.human is not None else None
    name, source = wanted.name or agent.name, wanted.source or agent.source
    return replace(agent, name=name, parent_id=parent_id, human_id=human_id, source=source)


def _parent(tx: Tx, agent: RegisteredAgent, named: str) -> str:
    try:
        parent = require_agent(tx, named)
    except (NotFound, Conflict) as error:
        raise Invalid(f"parent: {error.message}", hint=error.hint) from None
    if is_below(agent.id, parent.id, partial(agents.parent_of, tx)):
        raise Invalid(
            f"parent: {parent.name!r} works for {agent.name!r}", hint="the chain of parents cannot be a cycle"
        )
    return parent.id


def _human(tx: Tx, name: str) -> str:
    user = users.by_name(tx, name)
    if user is None or user.disabled_at is not None:
        raise Invalid(f"human: there is no user {name!r} who can sign in", hint="assent users list shows them")
    if not user.may(Scope.DECIDE):
        raise Invalid(f"human: {name!r} may not decide", hint="give them the role reviewer or admin")
    return user.id


def _facts(agent: RegisteredAgent) -> dict[str, str | None]:
    return {"name": agent.name, "parent": agent.parent_id, "human": agent.human_id, "source": agent.source}
