"""Terms: the strictest of what a policy says, kept with the item, and what time does under them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assent.dialects import recognise
from assent.domain.access import Role
from assent.domain.items import Due
from assent.domain.policies import Agent, Decider, Effect, from_json
from assent.domain.questions import Interrupt, Question, Verb
from assent.domain.terms import Terms, next_due, stricter, terms_of, within

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
RULES = [
    {"name": "free", "then": "allow", "tool": "read"},
    {"name": "advice", "then": "advise", "tool": "note"},
    {"name": "two", "then": "ask", "tool": "pay", "approvals": 2},
    {"name": "never", "then": "never", "tool": "drop"},
    {"name": "odd", "then": "allow", "tool": "odd", "when": "args.missing > 1"},
]


def question(*tools: str) -> Question:
    calls = [{"call_id": tool, "tool_name": tool, "arguments": {"n": 1}} for tool in tools]
    return recognise(Interrupt("i", {"kind": "confirmation", "tool_calls": calls}))


def terms(*tools: str, gated: bool = False, rules: Any = None, **more: Any) -> Terms:
    policy = from_json({"rules": RULES if rules is None else rules, **more})
    return terms_of(policy, 3, question(*tools), graph="g", agent=Agent("a", "1"), tenant="t", gated=gated)


@pytest.mark.parametrize(
    ("tools", "effect", "approvals"),
    [
        (("read",), Effect.ALLOW, 1),
        (("read", "note"), Effect.ADVISE, 1),
        (("note", "other"), Effect.ASK, 1),
        (("other", "pay"), Effect.ASK, 2),
        (("pay", "drop", "read"), Effect.NEVER, 2),
    ],
)
def test_the_strictest_counts(tools: tuple[str, ...], effect: Effect, approvals: int) -> None:
    found = terms(*tools)
    assert (found.effect, found.approvals, found.version) == (effect, approvals, 3)


TOGETHER = [
    {"name": "money", "then": "ask", "tool": "pay", "by": {"roles": ["admin"]}, "mask": ["card"], "risk": "high"},
    {"name": "mail", "then": "ask", "tool": "mail", "verbs": ["approve", "reject"], "execution_ttl": "1m"},
    {"name": "own", "then": "ask", "tool": "own", "separate_duties": True, "deadline": "1h"},
]


@pytest.mark.promise("P6")
@pytest.mark.parametrize("order", [("mail", "pay", "own"), ("own", "pay", "mail"), ("pay", "mail", "own")])
def test_of_several_calls_every_rule_is_kept(order: tuple[str, ...]) -> None:
    """A harmless call beside it does not make another one easier to get."""
    found = terms(*order, rules=TOGETHER)
    reviewer, admin = (Decider(name, name, Role(name)) for name in ("reviewer", "admin"))
    assert found.refusal(reviewer, started_by="agent:a", edited_by=None)
    assert found.refusal(admin, started_by="agent:a", edited_by=None) is None
    assert found.refusal(admin, started_by="reviewer:admin", edited_by=None)
    assert (found.mask, found.risk, found.execution_ttl) == (("card",), "high", timedelta(minutes=1))
    assert not found.allows(Verb.EDIT)
    assert found.schedule(NOW, NOW + timedelta(days=9)) == [(NOW + HOUR, Due.EXPIRE)]


@pytest.mark.promise("P6")
def test_a_rule_knows_an_agent_by_its_name_and_by_its_id() -> None:
    for pattern in ("evil-*", "0-1-2"):
        policy = from_json({"rules": [{"name": "r", "then": "never", "agent": pattern}]})
        found = terms_of(policy, 1, question("x"), graph=None, agent=Agent("evil-bot", "0-1-2"), tenant="t")
        assert found.effect is Effect.NEVER


@pytest.mark.promise("P7")
def test_what_the_gate_asks_is_asked_whatever_the_policy_says() -> None:
    for tool in ("read", "note"):
        assert terms(tool, gated=True).effect is Effect.ASK
    assert terms("drop", gated=True).effect is Effect.NEVER


@pytest.mark.promise("P7")
def test_a_policy_that_fails_asks_and_says_so() -> None:
    found = terms("odd")
    assert found.effect is Effect.ASK
    assert found.problems


def test_answering_what_an_agent_does_not_know_is_free() -> None:
    asked = {"kind": "clarification", "clarifications": [{"call_id": "c", "question": "?", "context": ""}]}
    policy = from_json({"rules": RULES})
    found = terms_of(policy, 1, recognise(Interrupt("i", asked)), graph=None, agent=Agent(), tenant="t", gated=True)
    assert (found.effect, found.gated) == (Effect.ADVISE, False)


def test_terms_survive_their_storage() -> None:
    rule = {"name": "r", "then": "ask", "when": "args.n > 0", "approvals": 2, "by": {"groups": ["g"]}, "mask": ["n"]}
    found = terms("x", rules=[rule])
    again = Terms.from_json(found.to_json())
    assert (again.approvals, again.rules[0].by, again.mask) == (2, found.rules[0].by, ("n",))
    assert again.rules[0].when is None, "it did hold; that is not asked again"
    assert Terms.from_json(again.to_json()) == again


@pytest.mark.promise("P5")
def test_of_two_the_stricter_holds_and_an_escalation_stays() -> None:
    one, two, never, free = terms("other"), terms("pay"), terms("drop"), terms("read")
    assert stricter(one, two).approvals == stricter(two, one).approvals == 2
    assert stricter(two, never).effect is stricter(never, free).effect is Effect.NEVER
    assert stricter(replace(one, escalated=True), two).escalated is True
    assert stricter(one, replace(two, escalated=True)).escalated is False


def test_what_must_never_run_can_only_be_turned_down() -> None:
    asked = question("drop")
    assert [action.allowed for action in within(asked, terms("drop")).actions] == [(Verb.REJECT,)]
    narrow = terms("x", rules=[{"name": "r", "then": "ask", "verbs": ["approve", "reject"]}])
    assert [action.allowed for action in within(asked, narrow).actions] == [(Verb.APPROVE, Verb.REJECT)]


@pytest.mark.promise("P8")
@pytest.mark.parametrize(
    ("rule", "expires", "plan"),
    [
        ({}, None, [(timedelta(days=7), Due.EXPIRE)]),
        ({"then": "never"}, None, [(timedelta(days=7), Due.EXPIRE)]),
        ({"then": "advise"}, None, []),
        ({"then": "advise"}, HOUR, [(HOUR, Due.EXPIRE)]),
        ({"pending_ttl": "1h"}, None, [(HOUR, Due.EXPIRE)]),
        ({"deadline": "2h", "remind_after": "1h"}, None, [(HOUR, Due.REMIND), (2 * HOUR, Due.EXPIRE)]),
        ({"deadline": "2h", "remind_after": "1h"}, HOUR / 2, [(HOUR / 2, Due.EXPIRE)]),
        (
            {"deadline": "1h", "after_deadline": "escalate", "escalate_to": {"roles": ["admin"]}},
            None,
            [(HOUR, Due.ESCALATE), (2 * HOUR, Due.EXPIRE)],
        ),
    ],
)
def test_what_time_does(rule: dict[str, Any], expires: timedelta | None, plan: list[tuple[timedelta, Due]]) -> None:
    found = terms("x", rules=[{"name": "r", "then": "ask", **rule}])
    assert found.schedule(NOW, NOW + expires if expires else None) == [(NOW + after, due) for after, due in plan]


def test_the_end_is_never_missed() -> None:
    plan = [(NOW, Due.REMIND), (NOW + HOUR, Due.ESCALATE), (NOW + 2 * HOUR, Due.EXPIRE)]
    assert next_due(plan, NOW - HOUR) == plan[0]
    assert next_due(plan, NOW) == plan[1]
    assert next_due(plan, NOW + HOUR) == plan[2]
    assert next_due(plan, NOW + 9 * HOUR) == plan[2]
    assert next_due(plan[:2], NOW + 9 * HOUR) == (None, None)
    at_once = [(NOW, Due.ESCALATE), (NOW, Due.EXPIRE)]
    assert next_due(at_once, NOW) == at_once[1]
