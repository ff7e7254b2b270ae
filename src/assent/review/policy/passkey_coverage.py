"""Compares the rules in force that require a passkey with the people who have registered one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assent.identity.model.access import ROLE_SCOPES, Role, Scope
from assent.identity.rows import passkeys
from assent.kernel.store.transaction import Tx
from assent.review.model.policies import Decider, Rule
from assent.review.rows import policies


@dataclass(frozen=True, slots=True)
class Missing:
    """A rule that requires a passkey and that too few people can satisfy."""

    rule: str
    have: int
    needed: int

    def __str__(self) -> str:
        few = (
            f"only {self.have} of the {self.needed} people it needs have" if self.have else "nobody who may decide has"
        )
        return f"the rule {self.rule!r} requires a passkey, and {few} registered one: its items cannot be approved"


def missing(tx: Tx) -> list[Missing]:
    """Each rule that requires more passkeys than the deciders have registered."""
    policy = policies.in_force(tx).parsed()
    asking = [rule for rule in (*policy.rules, policy.default) if rule.confirm]
    if not asking:
        return []
    able = [_decider(row) for row in passkeys.holders(tx) if Scope.DECIDE in ROLE_SCOPES[Role(row.role)]]
    counted = [Missing(rule.name, sum(_is_asked(rule, person) for person in able), rule.approvals) for rule in asking]
    return [entry for entry in counted if entry.have < entry.needed]


def _is_asked(rule: Rule, person: Decider) -> bool:
    return not rule.by or rule.by.include(person) or rule.escalate_to.include(person)


def _decider(row: Any) -> Decider:
    return Decider(row.user_id, row.name, Role(row.role), frozenset(row.groups))
