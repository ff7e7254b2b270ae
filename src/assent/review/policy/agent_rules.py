"""The approval settings of one agent: the rules of the policy that apply to it, and changes of those that name it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from assent.errors import NotFound
from assent.identity.agents import require_agent
from assent.identity.model.access import Principal, Scope
from assent.identity.model.agents import RegisteredAgent
from assent.identity.rows import agents
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.model.policies import Effect, Rule
from assent.review.policy.policies import Policies
from assent.review.rows import policies as rows
from assent.review.rows.policies import Version

_GLOB = frozenset("*?[")
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class AgentRule:
    """`number` is the position in the policy, from 1; 0 is the default. `own`: the rule names this agent alone."""

    number: int
    rule: Rule
    own: bool


@dataclass(frozen=True, slots=True)
class AgentRules:
    version: int
    rules: tuple[AgentRule, ...]


class AgentPolicies:
    def __init__(self, store: Store, policies: Policies) -> None:
        self._store = store
        self._policies = policies

    async def of(self, caller: Principal, agent: str) -> AgentRules:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, _rules, agent)

    async def set(self, caller: Principal, agent: str, tool: str, effect: Effect, *, after: int) -> Version:
        """Puts a policy in force in which this rule comes first. It replaces the agent's rule about the same tool."""
        document = await self._store.read(caller.tenant, _with_rule, agent, tool.strip() or "*", effect)
        return await self._policies.put(caller, document, after=after)

    async def unset(self, caller: Principal, agent: str, number: int, *, after: int) -> Version:
        """Puts a policy in force without this rule, which has to name the agent."""
        document = await self._store.read(caller.tenant, _without_rule, agent, number)
        return await self._policies.put(caller, document, after=after)


def _rules(tx: Tx, named: str) -> AgentRules:
    agent, version = require_agent(tx, named), rows.in_force(tx)
    policy = version.parsed()
    numbered = [*enumerate(policy.rules, 1), (0, policy.default)]
    applying = (AgentRule(number, rule, _names(rule, agent)) for number, rule in numbered if _applies(tx, rule, agent))
    return AgentRules(version.number, tuple(applying))


def _applies(tx: Tx, rule: Rule, agent: RegisteredAgent) -> bool:
    named = fnmatchcase(agent.name, rule.agent) or fnmatchcase(agent.id, rule.agent)
    return named and fnmatchcase(tx.tenant, rule.tenant)


def _names(rule: Rule, agent: RegisteredAgent) -> bool:
    return rule.agent in (agent.name, agent.id)


def _with_rule(tx: Tx, named: str, tool: str, effect: Effect) -> dict[str, Any]:
    agent, document = require_agent(tx, named), _document(tx)
    unique = len(agents.named(tx, agent.name)) == 1 and not _GLOB & set(agent.name)
    rule = {
        "name": f"{agent.name}: {tool}"[:_LONGEST_NAME],
        "agent": agent.name if unique else agent.id,
        "tool": tool,
        "then": effect,
    }
    others = [other for other in document["rules"] if not _is_about(other, agent, tool)]
    return {**document, "rules": [rule, *others]}


def _is_about(rule: dict[str, Any], agent: RegisteredAgent, tool: str) -> bool:
    """Whether this is the agent's plain rule about the tool. One with a condition or deciders stays."""
    extra = rule.keys() - {"name", "agent", "tool", "then"}
    return not extra and rule.get("agent") in (agent.name, agent.id) and rule.get("tool", "*") == tool


def _without_rule(tx: Tx, named: str, number: int) -> dict[str, Any]:
    agent, document = require_agent(tx, named), _document(tx)
    rules = rows.in_force(tx).parsed().rules
    if not 1 <= number <= len(rules) or not _names(rules[number - 1], agent):
        raise NotFound(f"rule {number} of the policy does not name the agent {agent.name!r}")
    return {**document, "rules": [rule for index, rule in enumerate(document["rules"], 1) if index != number]}


def _document(tx: Tx) -> dict[str, Any]:
    policy = rows.in_force(tx).policy
    assert isinstance(policy, dict)
    return {**policy, "rules": policy.get("rules", [])}
