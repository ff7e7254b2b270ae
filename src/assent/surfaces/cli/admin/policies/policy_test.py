"""Tests a policy against a hypothetical call: `assent policy test --tool refund --args '{"amount": 5}'`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from assent.kernel import durations
from assent.kernel.canonical import Json
from assent.review.model import policies
from assent.review.model.policies import Call, Deciders, Effect, Judgement, Rule
from assent.review.policy.policies import read
from assent.surfaces.cli.escapes import escaped

View = dict[str, Any]

_MEANS = {
    Effect.ALLOW: "runs without approval",
    Effect.ASK: "a person decides",
    Effect.NEVER: "never runs, even if approved",
    Effect.ADVISE: "listed; any caller who may run the thread may answer",
}


def judge(document: Json, call: Call) -> Judgement:
    """Standing approvals are left out: they are no part of a policy."""
    return policies.judge(read(document), call)


def view(judgement: Judgement) -> View:
    [rule] = policies.to_json(policies.Policy((judgement.rule,)))["rules"]
    problems = [{"path": problem.path, "message": problem.message} for problem in judgement.problems]
    return {"effect": str(judgement.effect), "rule": rule, "problems": problems}


def spelled(judgement: Judgement) -> list[str]:
    rule = judgement.rule
    lines = [f"{judgement.effect}: {_MEANS[judgement.effect]}", f"  rule      {escaped(rule.name)}"]
    if judgement.effect in (Effect.ASK, Effect.NEVER):
        lines += [f"  {name:<9} {value}" for name, value in _conditions(rule)]
    return lines + [f"  problem   {escaped(fault.path)}: {escaped(fault.message)}" for fault in judgement.problems]


def _conditions(rule: Rule) -> Iterator[tuple[str, str]]:
    if rule.by:
        yield "by", escaped(_deciders(rule.by))
    if rule.approvals > 1:
        yield "approvals", str(rule.approvals)
    if rule.separate_duties:
        yield "duties", "separate"
    if rule.confirm:
        yield "confirm", rule.confirm
    if rule.risk:
        yield "risk", rule.risk
    if rule.verbs:
        yield "verbs", ", ".join(rule.verbs)
    if rule.schedule.expire:
        yield "expires", f"after {durations.text(rule.schedule.expire)}"


def _deciders(by: Deciders) -> str:
    roles, groups = (f"role {role}" for role in by.roles), (f"group {group}" for group in by.groups)
    return " or ".join((*roles, *groups, *by.people))
