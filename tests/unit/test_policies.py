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

from assent.errors import InvalidPolicy
from assent.identity.model.access import Role
from assent.kernel import canonical, durations
from assent.review.model import conditions, policies
from assent.review.model.policies import (
    ADVISE_ALL,
    ASK_ALL,
    AfterDeadline,
    Call,
    Decider,
    Deciders,
    Effect,
    Policy,
    Refusal,
    Risk,
    Rule,
    Schedule,
    StandingApproval,
    judge,
    may_decide,
)
from assent.review.model.questions import Verb
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


def call(tool: str = "refund_card", args: Any = None, **others: Any) -> Call:
    known: dict[str, Any] = {"graph": "billing", "agent": "clerk", "tenant": "acme"}
    return Call(tool, {} if args is None else args, **known | others)


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
        judgement = judge(policies.parse(REFUNDS), wanted)
        assert (judgement.rule.name, judgement.effect, judgement.problems) == (name, effect, ())

    @pytest.mark.promise("P7")
    def test_tool_without_a_rule_needs_approval(self) -> None:
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
        named: dict[str, Any] = {field: name}
        assert (judge(policy, replace(call(), **named)).effect is Effect.NEVER) is matches

    @given(st.lists(st.builds(rule, st.sampled_from(Effect), tool=st.sampled_from(["*", "a*", "b", "ab"]))), values)
    def test_later_rule_does_not_override_the_first_match(self, rules: list[Rule], args: Any) -> None:
        wanted = call("ab", args)
        first = next((rule_listed for rule_listed in rules if rule_listed.fits(wanted)), ASK_ALL.default)
        assert judge(Policy(tuple(rules)), wanted).rule == first

    @given(
        values,
        st.sampled_from(["args.a > 1", "args[0] == args", "args.all(x, x > 1)", "args.a.matches('a')", "args.b"]),
    )
    def test_any_arguments_are_judged_without_an_error(self, args: Any, when: str) -> None:
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
    def test_failing_condition_is_shown_and_never_allows_the_call(
        self, when: str, effect: Effect, default: Effect, expected: Effect
    ) -> None:
        policy = Policy((rule(effect, when=when),), Rule("default", default))
        judgement = judge(policy, call(args={"text": "secret", "number": 1}))
        assert judgement.effect is expected
        assert [problem.path for problem in judgement.problems] == ["rules[0].when"]
        assert "secret" not in judgement.problems[0].message

    @given(values)
    def test_arguments_that_make_a_condition_fail_are_not_allowed(self, args: Any) -> None:
        """A call runs where the condition is false, and does not run where it has no answer."""
        policy = Policy((rule(Effect.NEVER, when="!(args.amount <= 10)"),), Rule("default", Effect.ALLOW))
        amount = args.get("amount") if isinstance(args, dict) else None
        small = isinstance(amount, (int, float)) and not isinstance(amount, bool) and amount <= 10
        assert small or judge(policy, call(args=args)).effect is Effect.NEVER

    def test_text_with_a_nul_does_not_pass_a_condition(self) -> None:
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
    def test_only_named_deciders_may_decide(self, by: Deciders, allowed: bool) -> None:
        refusal = may_decide(rule(by=by), ANN, started_by="agent:9")
        assert refusal is None if allowed else refusal is not None and refusal.code == "not_allowed"

    @pytest.mark.promise("P6")
    @pytest.mark.parametrize(
        "part", [{"started_by": "reviewer:1"}, {"edited_by": {"reviewer:1"}}, {"contributors": {"reviewer:1"}}]
    )
    def test_with_separate_duties_nobody_approves_their_own_request(self, part: dict[str, Any]) -> None:
        involved: Any = {"started_by": "agent:9"} | part
        assert may_decide(rule(), ANN, **involved) is None
        refusal = may_decide(rule(separate_duties=True), ANN, **involved)
        assert isinstance(refusal, Refusal)
        assert refusal.code == "self_approval"
        assert may_decide(rule(separate_duties=True), replace(ANN, id="2"), **involved) is None

    def test_escalated_item_may_be_decided_by_the_escalation_group(self) -> None:
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

    def test_escalated_item_expires_after_another_period(self) -> None:
        escalating = rule(deadline=HOUR, after_deadline=AfterDeadline.ESCALATE, escalate_to=Deciders(people=("cfo",)))
        assert escalating.schedule == Schedule(None, HOUR, 2 * HOUR)
        assert replace(escalating, escalation_period=3 * HOUR).schedule == Schedule(None, HOUR, 4 * HOUR)

    @pytest.mark.parametrize("effect", Effect)
    def test_schedule_is_validated_for_every_effect(self, effect: Effect) -> None:
        """The gate turns a rule that lets calls through into one that asks."""
        with pytest.raises(ValueError, match="before the end"):
            rule(effect, remind_after=timedelta(days=8))
        assert replace(rule(effect, remind_after=timedelta(days=6)), then=Effect.ASK).then is Effect.ASK

    def test_deadline_never_approves(self) -> None:
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
    def test_standing_approval_covers_only_its_own_call(self, changes: dict[str, Any], covered: bool) -> None:
        assert policies.covers(replace(STANDING, **changes), call(args={"amount": 50}), NOW) is covered

    def test_arguments_without_a_hash_are_not_covered(self) -> None:
        given_for = replace(STANDING, args_hash=canonical.digest({}))
        assert not policies.covers(given_for, call(args={"amount": float("nan")}), NOW)


def test_replaying_shows_what_would_change() -> None:
    small, big = call(args={"amount": 1}), call(args={"amount": 9000})
    past = [(small, Effect.ASK), (big, Effect.ASK), (call("shell"), Effect.NEVER)]
    (change,) = policies.replay(policies.parse(REFUNDS), past)
    assert (change.call, change.before, change.after.effect) == (small, Effect.ASK, Effect.ALLOW)
    assert change.after.rule.name == "small refunds"


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
        second_rule = policies.parse(REFUNDS).rules[1]
        assert second_rule == Rule(
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
    def test_written_policy_is_read_back(self, policy: Policy) -> None:
        written = canonical.text(policies.to_json(policy))
        assert policies.from_json(canonical.parse(written)) == policy
        assert policies.digest(policy) == canonical.digest_text(written)

    def test_equal_policies_in_different_notation_have_the_same_hash(self) -> None:
        short = policies.parse('rules = [{name = "a", then = "ask", deadline = "90m"}]')
        long = policies.from_json({"rules": [{"then": "ask", "name": "a", "tool": "*", "deadline": "1h30m"}]})
        assert policies.digest(short) == policies.digest(long)
        assert policies.digest(short) != policies.digest(ASK_ALL)

    def test_all_problems_are_reported_at_once_with_their_paths(self) -> None:
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
            ('default = {name = "d", then = "ask", tool = "x"}', "default", "all remaining calls"),
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
    def test_contradictory_rule_is_refused(self, source: str, path: str, says: str) -> None:
        with pytest.raises(InvalidPolicy, match=says) as refused:
            policies.parse(source)
        assert [problem.path for problem in refused.value.problems] == [path]

    @given(values)
    def test_any_document_is_read_or_refused_as_invalid(self, document: Any) -> None:
        for source in (document, {"rules": document}, {"rules": [document]}, {"default": document}):
            try:
                assert isinstance(policies.from_json(source), Policy)
            except InvalidPolicy as refused:
                assert refused.problems  # noqa: PT017 - either outcome is fine


class TestDocumentation:
    TEXT = (Path(__file__).parents[2] / "docs" / "policies.md").read_text("utf-8")

    def test_documented_examples_are_valid_policies(self) -> None:
        example, *more = re.findall(r"```toml\n(.*?)```", self.TEXT, re.DOTALL)
        assert all(policies.parse(one) for one in more)
        assert len(policies.parse(example).rules) == 5

    def test_documentation_describes_exactly_the_existing_fields(self) -> None:
        table = self.TEXT.partition("## Fields of a rule")[2].partition("\n##")[0]
        described = {name for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for name in row.split(", ")}
        assert {name.strip("`") for name in described} == {field.name for field in fields(Rule)}

    def test_documented_conditions_compile(self) -> None:
        table = self.TEXT.partition("| example |")[2].partition("\n\n")[0]
        examples = re.findall(r"^\| `(.*?)` \|", table, re.MULTILINE)
        assert len(examples) == 6
        for text in examples:
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
    def test_durations_are_parsed_and_written(self, written: str, seconds: int, canonical_text: str) -> None:
        assert durations.parse(written) == timedelta(seconds=seconds)
        assert durations.text(timedelta(seconds=seconds)) == canonical_text

    @pytest.mark.parametrize("written", ["", "0s", "5", "-1h", "1.5h", "30m1h", "1w", "1h ", "99999d", "١h"])
    def test_invalid_durations_are_refused(self, written: str) -> None:
        with pytest.raises(ValueError, match="length of time"):
            durations.parse(written)

    @given(lengths)
    def test_written_duration_is_parsed_back(self, duration: timedelta) -> None:
        assert durations.parse(durations.text(duration)) == duration


class TestConfirm:
    def test_a_rule_may_ask_for_a_passkey(self) -> None:
        assert (
            policies.from_json({"rules": [{"name": "r", "then": "ask", "confirm": "passkey"}]}).rules[0].confirm
            == "passkey"
        )

    @pytest.mark.parametrize("effect", ["allow", "advise", "never"])
    def test_passkey_on_a_rule_without_approval_is_refused(self, effect: str) -> None:
        with pytest.raises(InvalidPolicy, match="confirm needs then = ask"):
            policies.from_json({"rules": [{"name": "r", "then": effect, "confirm": "passkey"}]})

    def test_another_proof_than_a_passkey_is_refused(self) -> None:
        with pytest.raises(InvalidPolicy, match=r"rules\[0\]\.confirm"):
            policies.from_json({"rules": [{"name": "r", "then": "ask", "confirm": "fingerprint"}]})
