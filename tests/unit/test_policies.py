"""Policies: the first rule that matches decides, and whatever goes wrong, the call does not run."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.domain import canonical, conditions, durations, policies
from assent.domain.access import Role
from assent.domain.policies import (
    ADVISE_ALL,
    ASK_ALL,
    AfterDeadline,
    Call,
    Decider,
    Deciders,
    Effect,
    InvalidPolicy,
    Policy,
    Refusal,
    Risk,
    Rule,
    Schedule,
    StandingApproval,
    judge,
    may_decide,
)
from assent.domain.questions import Verb
from tests.unit.test_canonical import values

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

REFUNDS = """
default = "ask"

[[rules]]
name = "small refunds"
tool = "refund_*"
graph = "billing"
when = "args.amount <= 5000"
then = "allow"

[[rules]]
name = "other refunds"
tool = "refund_*"
then = "ask"
by = { roles = ["admin"], groups = ["finance"] }
approvals = 2
separate_duties = true
risk = "high"
deadline = "4h"
remind_after = "1h"
after_deadline = "escalate"
escalate_to = { people = ["cfo"] }
verbs = ["approve", "reject"]
execution_ttl = "5m"
mask = ["card.number"]

[[rules]]
name = "no shell"
tool = "shell"
then = "never"
"""


def call(tool: str = "refund_card", args: Any = None, **others: str) -> Call:
    return Call(tool, {} if args is None else args, **{"graph": "billing", "agent": "clerk", "tenant": "acme"} | others)


def rule(then: Effect = Effect.ASK, **fields: Any) -> Rule:
    return Rule("a rule", then, **fields)


class TestJudging:
    @pytest.mark.parametrize(
        ("wanted", "name", "effect"),
        [
            (call(args={"amount": 5000}), "small refunds", Effect.ALLOW),
            (call(args={"amount": 5001}), "other refunds", Effect.ASK),
            (call(args={"amount": 1}, graph="sales"), "other refunds", Effect.ASK),
            (call("shell"), "no shell", Effect.NEVER),
            (call("Shell"), "default", Effect.ASK),
            (call("shell_2"), "default", Effect.ASK),
        ],
    )
    def test_the_first_rule_that_matches_decides(self, wanted: Call, name: str, effect: Effect) -> None:
        found = judge(policies.parse(REFUNDS), wanted)
        assert (found.rule.name, found.effect, found.problems) == (name, effect, ())

    @pytest.mark.promise("P7")
    def test_a_tool_that_no_rule_names_is_asked_for(self) -> None:
        assert judge(ASK_ALL, call("unheard_of")).effect is Effect.ASK
        assert judge(policies.parse(""), call("unheard_of")).effect is Effect.ASK
        assert judge(ADVISE_ALL, call("unheard_of")).effect is Effect.ADVISE

    @pytest.mark.parametrize("field", ["tool", "graph", "agent", "tenant"])
    @pytest.mark.parametrize(
        ("pattern", "name", "matches"),
        [("*", "", True), ("a*", "abc", True), ("a*", "ba", False), ("a?[xy]", "abx", True), ("a", "A", False)],
    )
    def test_names_are_matched_by_pattern(self, field: str, pattern: str, name: str, matches: bool) -> None:
        policy = Policy((rule(Effect.NEVER, **{field: pattern}),))
        assert (judge(policy, replace(call(), **{field: name})).effect is Effect.NEVER) is matches

    @given(st.lists(st.builds(rule, st.sampled_from(Effect), tool=st.sampled_from(["*", "a*", "b", "ab"]))), values)
    def test_no_later_rule_takes_over(self, rules: list[Rule], args: Any) -> None:
        wanted = call("ab", args)
        first = next((one for one in rules if one.fits(wanted)), ASK_ALL.default)
        assert judge(Policy(tuple(rules)), wanted).rule == first

    @given(
        values,
        st.sampled_from(["args.a > 1", "args[0] == args", "args.all(x, x > 1)", "args.a.matches('a')", "args.b"]),
    )
    def test_no_arguments_make_it_raise(self, args: Any, when: str) -> None:
        for effect in Effect:
            assert judge(Policy((rule(effect, when=when),)), call(args=args)).effect in (effect, Effect.ASK)


FAILING = ["args.missing > 1", "args.text > 1", "args.number / 0 == 1", "args.text", "not CEL at all"]


@pytest.mark.promise("P7")
class TestFailingConditions:
    @pytest.mark.parametrize("when", FAILING)
    @pytest.mark.parametrize(
        ("effect", "default", "expected"),
        [
            (Effect.ALLOW, Effect.ASK, Effect.ASK),
            (Effect.ADVISE, Effect.ASK, Effect.ASK),
            (Effect.ALLOW, Effect.NEVER, Effect.NEVER),
            (Effect.ASK, Effect.ALLOW, Effect.ASK),
            (Effect.NEVER, Effect.ALLOW, Effect.NEVER),
        ],
    )
    def test_a_failure_is_shown_and_never_lets_a_call_run(
        self, when: str, effect: Effect, default: Effect, expected: Effect
    ) -> None:
        policy = Policy((rule(effect, when=when),), Rule("default", default))
        found = judge(policy, call(args={"text": "secret", "number": 1}))
        assert found.effect is expected
        assert [problem.path for problem in found.problems] == ["rules[0].when"]
        assert "secret" not in found.problems[0].message

    @given(values)
    def test_no_arguments_get_past_a_rule_that_fails_on_them(self, args: Any) -> None:
        """What a condition does not hold for runs; what it cannot be said for does not."""
        policy = Policy((rule(Effect.NEVER, when="!(args.amount <= 10)"),), Rule("default", Effect.ALLOW))
        amount = args.get("amount") if isinstance(args, dict) else None
        small = isinstance(amount, (int, float)) and not isinstance(amount, bool) and amount <= 10
        assert small or judge(policy, call(args=args)).effect is Effect.NEVER

    def test_a_text_cut_short_by_nul_does_not_pass(self) -> None:
        policy = Policy((rule(Effect.ALLOW, when="args.path == '/tmp'"),))
        assert judge(policy, call(args={"path": "/tmp"})).effect is Effect.ALLOW
        assert judge(policy, call(args={"path": "/tmp\0/../etc"})).effect is Effect.ASK


ANN = Decider("1", "ann", Role.REVIEWER, frozenset({"finance"}))


class TestDeciding:
    @pytest.mark.parametrize(
        ("by", "allowed"),
        [
            (Deciders(), True),
            (Deciders(roles=(Role.REVIEWER,)), True),
            (Deciders(roles=(Role.ADMIN,)), False),
            (Deciders(people=("ann",)), True),
            (Deciders(people=("1",)), True),
            (Deciders(people=("bob",)), False),
            (Deciders(groups=("finance", "legal")), True),
            (Deciders(groups=("legal",)), False),
            (Deciders(roles=(Role.ADMIN,), people=("bob",), groups=("finance",)), True),
        ],
    )
    def test_whoever_is_named_may_decide(self, by: Deciders, allowed: bool) -> None:
        found = may_decide(rule(by=by), ANN, started_by="agent:9")
        assert found is None if allowed else found is not None and found.code == "not_allowed"

    @pytest.mark.promise("P6")
    @pytest.mark.parametrize("part", ["started_by", "edited_by"])
    def test_where_duties_are_separate_nobody_approves_their_own(self, part: str) -> None:
        involved: Any = {"started_by": "agent:9"} | {part: "reviewer:1"}
        assert may_decide(rule(), ANN, **involved) is None
        found = may_decide(rule(separate_duties=True), ANN, **involved)
        assert isinstance(found, Refusal)
        assert found.code == "self_approval"
        assert may_decide(rule(separate_duties=True), replace(ANN, id="2"), **involved) is None

    def test_an_escalated_item_may_be_decided_by_those_it_went_to(self) -> None:
        escalating = rule(
            by=Deciders(people=("bob",)),
            deadline=HOUR,
            after_deadline=AfterDeadline.ESCALATE,
            escalate_to=Deciders(groups=("finance",)),
        )
        assert may_decide(escalating, ANN, started_by="agent:9")
        assert may_decide(escalating, ANN, started_by="agent:9", escalated=True) is None


@pytest.mark.promise("P8")
class TestSchedule:
    @pytest.mark.parametrize(
        ("one", "expected"),
        [
            (rule(), Schedule(None, None, timedelta(days=7))),
            (rule(Effect.ADVISE), Schedule(None, None, None)),
            (rule(pending_ttl=HOUR), Schedule(None, None, HOUR)),
            (rule(deadline=2 * HOUR, remind_after=HOUR), Schedule(HOUR, None, 2 * HOUR)),
        ],
    )
    def test_an_item_that_nobody_decides_expires(self, one: Rule, expected: Schedule) -> None:
        assert one.schedule == expected

    def test_an_escalated_one_has_another_period_and_then_expires(self) -> None:
        escalating = rule(deadline=HOUR, after_deadline=AfterDeadline.ESCALATE, escalate_to=Deciders(people=("cfo",)))
        assert escalating.schedule == Schedule(None, HOUR, 2 * HOUR)
        assert replace(escalating, escalation_period=3 * HOUR).schedule == Schedule(None, HOUR, 4 * HOUR)

    @pytest.mark.parametrize("effect", Effect)
    def test_it_makes_as_much_sense_with_another_effect(self, effect: Effect) -> None:
        """The gate turns a rule that lets calls through into one that asks."""
        with pytest.raises(ValueError, match="before the end"):
            rule(effect, remind_after=timedelta(days=8))
        assert replace(rule(effect, remind_after=timedelta(days=6)), then=Effect.ASK).then is Effect.ASK

    def test_nothing_that_follows_a_deadline_approves(self) -> None:
        assert {*AfterDeadline} == {"expire", "escalate"}


STANDING = StandingApproval("s1", "refund_card", expires_at=NOW + HOUR)


class TestStandingApprovals:
    @pytest.mark.parametrize(
        ("changes", "covered"),
        [
            ({}, True),
            ({"graph": "billing"}, True),
            ({"graph": "sales"}, False),
            ({"tool": "refund_*"}, False),
            ({"expires_at": NOW}, False),
            ({"revoked_at": NOW - HOUR}, False),
            ({"uses_left": 1}, True),
            ({"uses_left": 0}, False),
            ({"condition": "args.amount < 100"}, True),
            ({"condition": "args.amount < 10"}, False),
            ({"condition": "args.missing < 10"}, False),
            ({"condition": "not CEL"}, False),
            ({"args_hash": canonical.digest({"amount": 50})}, True),
            ({"args_hash": canonical.digest({"amount": 50.0})}, False),
            ({"args_hash": ""}, False),
        ],
    )
    def test_it_covers_what_it_was_given_for(self, changes: dict[str, Any], covered: bool) -> None:
        assert policies.covers(replace(STANDING, **changes), call(args={"amount": 50}), NOW) is covered

    def test_what_has_no_hash_is_not_covered(self) -> None:
        given_for = replace(STANDING, args_hash=canonical.digest({}))
        assert not policies.covers(given_for, call(args={"amount": float("nan")}), NOW)


def test_replaying_shows_what_would_change() -> None:
    small, big = call(args={"amount": 1}), call(args={"amount": 9000})
    past = [(small, Effect.ASK), (big, Effect.ASK), (call("shell"), Effect.NEVER)]
    (found,) = policies.replay(policies.parse(REFUNDS), past)
    assert (found.call, found.before, found.after.effect) == (small, Effect.ASK, Effect.ALLOW)
    assert found.after.rule.name == "small refunds"


names = st.text("abc é", min_size=1, max_size=5)
lengths = st.integers(1, 10**6).map(lambda seconds: timedelta(seconds=seconds))
deciders = st.builds(
    Deciders, *(st.lists(each, max_size=2).map(tuple) for each in (st.sampled_from(Role), names, names))
)
plain_rules = st.builds(
    Rule,
    names,
    st.sampled_from(Effect),
    tool=st.sampled_from(["*", "a*", "[ab]?"]),
    when=st.none() | st.sampled_from(["args.a > 1", "tool == 'é'"]),
    by=deciders,
    approvals=st.integers(1, 10),
    separate_duties=st.booleans(),
    risk=st.none() | st.sampled_from(Risk),
    deadline=st.none() | lengths,
    verbs=st.none() | st.lists(st.sampled_from(Verb), min_size=1, max_size=3).map(tuple),
    mask=st.lists(st.sampled_from(["password", "card.number"]), max_size=2).map(tuple),
)
escalations = st.builds(
    lambda one, deadline, to: replace(
        one, deadline=deadline, after_deadline=AfterDeadline.ESCALATE, escalate_to=to, remind_after=deadline
    ),
    plain_rules,
    lengths,
    deciders.filter(bool),
)
any_policy = st.builds(
    Policy, st.lists(plain_rules | escalations, max_size=3).map(tuple), st.builds(Rule, names, st.sampled_from(Effect))
)


class TestReading:
    def test_everything_in_a_file_is_read(self) -> None:
        found = policies.parse(REFUNDS).rules[1]
        assert found == Rule(
            "other refunds",
            Effect.ASK,
            tool="refund_*",
            by=Deciders(roles=(Role.ADMIN,), groups=("finance",)),
            approvals=2,
            separate_duties=True,
            risk=Risk.HIGH,
            deadline=4 * HOUR,
            remind_after=HOUR,
            after_deadline=AfterDeadline.ESCALATE,
            escalate_to=Deciders(people=("cfo",)),
            verbs=(Verb.APPROVE, Verb.REJECT),
            execution_ttl=timedelta(minutes=5),
            mask=("card.number",),
        )

    @given(any_policy)
    def test_what_is_written_is_read_back(self, policy: Policy) -> None:
        written = canonical.text(policies.to_json(policy))
        assert policies.from_json(canonical.parse(written)) == policy
        assert policies.digest(policy) == canonical.digest_text(written)

    def test_however_it_is_written_it_has_one_hash(self) -> None:
        short = policies.parse('rules = [{name = "a", then = "ask", deadline = "90m"}]')
        long = policies.from_json({"rules": [{"then": "ask", "name": "a", "tool": "*", "deadline": "1h30m"}]})
        assert policies.digest(short) == policies.digest(long)
        assert policies.digest(short) != policies.digest(ASK_ALL)

    def test_all_problems_are_told_at_once_each_with_its_place(self) -> None:
        with pytest.raises(InvalidPolicy) as refused:
            policies.parse("""
                defalt = "ask"
                rules = [
                    {name = "", then = "maybe", tool = "[x", when = "args.x >", by = "ann", approvals = 11, wehn = ""},
                    {then = "ask", separate_duties = 1, deadline = 5, verbs = [], mask = ["."], execution_ttl = "2d"},
                    {name = "a", then = "ask", deadline = "soon", by = {roles = ["boss"]}, risk = "huge"},
                    {name = "a", then = "ask", after_deadline = "approve"},
                ]
            """)
        told = {problem.path: problem.message for problem in refused.value.problems}
        assert told.keys() == {
            "defalt",
            *(f"rules[0].{field}" for field in ("name", "then", "tool", "when", "by", "approvals", "wehn")),
            *(
                f"rules[1].{field}"
                for field in ("name", "separate_duties", "deadline", "verbs", "mask[0]", "execution_ttl")
            ),
            *(f"rules[2].{field}" for field in ("deadline", "by.roles[0]", "risk")),
            "rules[3].after_deadline",
        }
        assert told["rules[0].when"] == "line 1, column 9: Syntax error: mismatched input '<EOF>'"
        assert told["rules[3].after_deadline"] == "must be 'expire' or 'escalate'"

    @pytest.mark.parametrize(
        ("source", "path", "says"),
        [
            ("rules = 1", "rules", "list"),
            ("rules", "", "not TOML"),
            ("default = 2026-01-01", "default", "not JSON"),
            ('default = "perhaps"', "default.then", "'allow'"),
            ('default = {name = "d", then = "ask", tool = "x"}', "default", "no rule names"),
            ('rules = [{name = "a", then = "ask", after_deadline = "escalate"}]', "rules[0]", "escalate_to"),
            ('rules = [{name = "a", then = "ask", escalation_period = "1h"}]', "rules[0]", "need after_deadline"),
            ('rules = [{name = "a", then = "ask", deadline = "1h", pending_ttl = "1h"}]', "rules[0]", "exclude"),
            (
                'rules = [{name = "a", then = "ask", deadline = "1h", remind_after = "1h"}]',
                "rules[0]",
                "before the end",
            ),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, source: str, path: str, says: str) -> None:
        with pytest.raises(InvalidPolicy, match=says) as refused:
            policies.parse(source)
        assert [problem.path for problem in refused.value.problems] == [path]

    @given(values)
    def test_no_document_raises_anything_else(self, document: Any) -> None:
        for source in (document, {"rules": document}, {"rules": [document]}, {"default": document}):
            try:
                assert isinstance(policies.from_json(source), Policy)
            except InvalidPolicy as refused:
                assert refused.problems  # noqa: PT017 - either outcome is fine


class TestDocumentation:
    TEXT = (Path(__file__).parents[2] / "docs" / "policies.md").read_text("utf-8")

    def test_its_example_is_a_policy(self) -> None:
        [example] = re.findall(r"```toml\n(.*?)```", self.TEXT, re.DOTALL)
        assert len(policies.parse(example).rules) == 5

    def test_every_field_is_described_and_no_other(self) -> None:
        table = self.TEXT.partition("## Fields of a rule")[2].partition("\n##")[0]
        described = {name for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for name in row.split(", ")}
        assert {name.strip("`") for name in described} == {field.name for field in fields(Rule)}

    def test_its_conditions_are_conditions(self) -> None:
        table = self.TEXT.partition("| example |")[2].partition("\n\n")[0]
        found = re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)
        assert len(found) == 6
        for text in found:
            conditions.compile(text.replace(r"\|", "|"))


class TestDurations:
    @pytest.mark.parametrize(
        ("written", "seconds", "canonical_text"),
        [
            ("90s", 90, "1m30s"),
            ("15m", 900, "15m"),
            ("2h", 7200, "2h"),
            ("7d", 604_800, "7d"),
            ("1h30m", 5400, "1h30m"),
        ],
    )
    def test_they_are_read_and_written(self, written: str, seconds: int, canonical_text: str) -> None:
        assert durations.parse(written) == timedelta(seconds=seconds)
        assert durations.text(timedelta(seconds=seconds)) == canonical_text

    @pytest.mark.parametrize("written", ["", "0s", "5", "-1h", "1.5h", "30m1h", "1w", "1h ", "99999d", "١h"])
    def test_others_are_refused(self, written: str) -> None:
        with pytest.raises(ValueError, match="length of time"):
            durations.parse(written)

    @given(lengths)
    def test_there_and_back(self, duration: timedelta) -> None:
        assert durations.parse(durations.text(duration)) == duration
