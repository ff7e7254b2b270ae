"""Terms: the strictest of what a policy says, kept with the item, and what time does under them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assent.identity.model.access import Agent, Role
from assent.review.dialects import recognise
from assent.review.model.items import Due
from assent.review.model.policies import Decider, Effect, from_json
from assent.review.model.questions import Action, Interrupt, Question, Verb
from assent.review.model.search.terms import Terms, next_due, stricter, terms_of, within
from assent.review.model.secrets import MASK

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
def test_strictest_rule_of_all_calls_applies(tools: tuple[str, ...], effect: Effect, approvals: int) -> None:
    combined_terms = terms(*tools)
    assert (combined_terms.effect, combined_terms.approvals, combined_terms.version) == (effect, approvals, 3)


TOGETHER = [
    {"name": "money", "then": "ask", "tool": "pay", "by": {"roles": ["admin"]}, "mask": ["card"], "risk": "high"},
    {"name": "mail", "then": "ask", "tool": "mail", "verbs": ["approve", "reject"], "execution_ttl": "1m"},
    {"name": "own", "then": "ask", "tool": "own", "separate_duties": True, "deadline": "1h"},
]


@pytest.mark.promise("P6")
@pytest.mark.parametrize("order", [("mail", "pay", "own"), ("own", "pay", "mail"), ("pay", "mail", "own")])
def test_rules_of_all_calls_are_kept(order: tuple[str, ...]) -> None:
    """A harmless call beside it does not make another one easier to get."""
    combined_terms = terms(*order, rules=TOGETHER)
    reviewer, admin = (Decider(name, name, Role(name)) for name in ("reviewer", "admin"))
    assert combined_terms.refusal(reviewer, started_by="agent:a", edited_by=())
    assert combined_terms.refusal(admin, started_by="agent:a", edited_by=()) is None
    assert combined_terms.refusal(admin, started_by="reviewer:admin", edited_by=())
    assert (combined_terms.risk, combined_terms.execution_ttl) == ("high", timedelta(minutes=1))
    assert combined_terms.cover(Action("0", "mail", {}, "{}")).hides(("card",))
    assert not combined_terms.allows(Verb.EDIT)
    assert combined_terms.schedule(NOW, NOW + timedelta(days=9)) == [(NOW + HOUR, Due.EXPIRE)]


@pytest.mark.promise("P6")
def test_a_rule_knows_an_agent_by_its_name_and_by_its_id() -> None:
    for pattern in ("evil-*", "0-1-2"):
        policy = from_json({"rules": [{"name": "r", "then": "never", "agent": pattern}]})
        combined_terms = terms_of(policy, 1, question("x"), graph=None, agent=Agent("evil-bot", "0-1-2"), tenant="t")
        assert combined_terms.effect is Effect.NEVER


@pytest.mark.promise("P7")
def test_question_of_the_gate_needs_approval_under_any_policy() -> None:
    for tool in ("read", "note"):
        assert terms(tool, gated=True).effect is Effect.ASK
    assert terms("drop", gated=True).effect is Effect.NEVER


@pytest.mark.promise("P7")
def test_failing_policy_needs_approval_and_reports_the_failure() -> None:
    combined_terms = terms("odd")
    assert combined_terms.effect is Effect.ASK
    assert combined_terms.problems


def about_question(document: Any, *, gated: bool = False, approves: bool = False) -> Terms:
    asked = recognise(Interrupt("i", "Which city?"))
    policy = from_json(document)
    return terms_of(policy, 1, asked, graph=None, agent=Agent(), tenant="t", gated=gated, approves=approves)


STRICT = {
    "then": "ask",
    "name": "all",
    "by": {"roles": ["admin"]},
    "approvals": 2,
    "separate_duties": True,
    "confirm": "passkey",
}


@pytest.mark.parametrize("default", ["ask", STRICT])
def test_default_ask_leaves_a_mere_question_to_callers_who_may_run(default: Any) -> None:
    combined_terms = about_question({"default": default})
    assert (combined_terms.effect, combined_terms.gated, combined_terms.approvals, combined_terms.confirm) == (
        Effect.ADVISE,
        False,
        1,
        None,
    )
    assert combined_terms.question
    assert Terms.from_json(combined_terms.to_json()) == combined_terms
    assert about_question({"default": default}, approves=True).gated, "the control"


@pytest.mark.promise("P7")
def test_a_question_of_the_gate_is_asked_even_if_it_approves_nothing() -> None:
    combined_terms = about_question({}, gated=True)
    assert (combined_terms.gated, combined_terms.question) == (True, False)


@pytest.mark.parametrize("effect", ["ask", "never", "advise"])
@pytest.mark.parametrize("approves", [True, False])
def test_a_rule_gates_or_releases_any_question(effect: str, approves: bool) -> None:
    rules = [{"name": "r", "tool": "answer", "then": effect}]
    combined_terms = about_question({"rules": rules}, approves=approves)
    assert (combined_terms.effect, combined_terms.question) == (effect, False)


def test_a_question_that_was_an_approval_before_stays_one() -> None:
    before, now = about_question({}, approves=True), about_question({})
    assert stricter(before, now).gated
    assert stricter(now, before).gated


def test_a_path_is_unmasked_where_every_rule_unmasks_it_and_none_masks_it() -> None:
    rules = [
        {"name": "a", "then": "ask", "tool": "a", "unmask": ["token", "pin"]},
        {"name": "b", "then": "ask", "tool": "b", "unmask": ["token"]},
        {"name": "c", "then": "ask", "tool": "c", "unmask": ["token"], "mask": ["token"]},
    ]
    hidden = {"token": MASK, "pin": MASK}
    for tools, shown in (
        (["a"], {"token": 1, "pin": 2}),
        (["a", "b"], {"token": 1, "pin": MASK}),
        (["a", "c"], hidden),
        (["other"], hidden),
    ):
        action = Action("0", tools[0], {}, "{}")
        assert terms(*tools, rules=rules).cover(action).masked({"token": 1, "pin": 2}) == shown


def test_terms_survive_their_storage() -> None:
    rule = {"name": "r", "then": "ask", "when": "args.n > 0", "approvals": 2, "by": {"groups": ["g"]}, "mask": ["n"]}
    combined_terms = terms("x", rules=[rule])
    again = Terms.from_json(combined_terms.to_json())
    assert (again.approvals, again.rules[0].by, again.rules[0].mask) == (2, combined_terms.rules[0].by, ("n",))
    assert again.rules[0].when is None, "it did hold; that is not asked again"
    assert Terms.from_json(again.to_json()) == again
    marked = replace(combined_terms, marks={"x": frozenset({("a", "b"), ("c",)})})
    assert Terms.from_json(marked.to_json()).marks == marked.marks


@pytest.mark.promise("P5")
def test_stricter_of_two_terms_applies_and_an_escalation_is_kept() -> None:
    first, two, never, free = terms("other"), terms("pay"), terms("drop"), terms("read")
    assert stricter(first, two).approvals == stricter(two, first).approvals == 2
    assert stricter(two, never).effect is stricter(never, free).effect is Effect.NEVER
    assert stricter(replace(first, escalated=True), two).escalated is True
    assert stricter(first, replace(two, escalated=True)).escalated is False


def test_call_that_must_never_run_can_only_be_rejected() -> None:
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
def test_rule_gives_the_schedule_of_reminder_escalation_and_expiry(
    rule: dict[str, Any], expires: timedelta | None, plan: list[tuple[timedelta, Due]]
) -> None:
    combined_terms = terms("x", rules=[{"name": "r", "then": "ask", **rule}])
    assert combined_terms.schedule(NOW, NOW + expires if expires else None) == [
        (NOW + after, due) for after, due in plan
    ]


def test_next_due_never_skips_the_expiry() -> None:
    plan = [(NOW, Due.REMIND), (NOW + HOUR, Due.ESCALATE), (NOW + 2 * HOUR, Due.EXPIRE)]
    assert next_due(plan, NOW - HOUR) == plan[0]
    assert next_due(plan, NOW) == plan[1]
    assert next_due(plan, NOW + HOUR) == plan[2]
    assert next_due(plan, NOW + 9 * HOUR) == plan[2]
    assert next_due(plan[:2], NOW + 9 * HOUR) == (None, None)
    at_once = [(NOW, Due.ESCALATE), (NOW, Due.EXPIRE)]
    assert next_due(at_once, NOW) == at_once[1]


CONFIRMED = {"name": "transfer", "then": "ask", "tool": "transfer", "confirm": "passkey"}


class TestConfirm:
    @pytest.mark.parametrize(
        ("tools", "confirm"), [(("transfer",), "passkey"), (("pay", "transfer"), "passkey"), (("pay",), None)]
    )
    def test_single_rule_with_a_passkey_demands_it_for_all_calls(
        self, tools: tuple[str, ...], confirm: str | None
    ) -> None:
        assert terms(*tools, rules=[*RULES, CONFIRMED]).confirm == confirm

    def test_passkey_demand_survives_storage(self) -> None:
        stored = terms("transfer", rules=[CONFIRMED]).to_json()
        assert stored["confirm"] == "passkey"
        assert Terms.from_json(stored).confirm == "passkey"

    def test_terms_from_before_there_were_passkeys_ask_for_none(self) -> None:
        stored = terms("pay").to_json()
        del stored["confirm"]
        for rule in stored["rules"]:
            del rule["confirm"]
        assert Terms.from_json(stored).confirm is None

    def test_edit_keeps_or_gains_the_passkey_demand(self) -> None:
        plain, strict = terms("pay"), terms("transfer", rules=[CONFIRMED])
        assert stricter(strict, plain).confirm == "passkey"
        assert stricter(plain, strict).confirm == "passkey"
