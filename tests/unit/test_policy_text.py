"""A policy written as TOML is read as the same policy, with any content."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assent.identity.model.access import Role
from assent.kernel.hidden import is_hidden
from assent.review.model import policies
from assent.review.model.policies import AfterDeadline, Deciders, Effect, Policy, Risk, Rule
from assent.review.model.policy_text import to_toml
from assent.review.model.questions import Verb

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
GLOBS = st.sampled_from(["*", "refund_*", "a?c", "pay", '"quoted"', "\\", "\u202e*"])
LENGTHS = st.timedeltas(timedelta(hours=2), timedelta(days=6)).map(lambda one: timedelta(seconds=one.seconds + 7200))
DECIDERS = st.builds(
    Deciders,
    roles=st.lists(st.sampled_from(Role), max_size=2).map(tuple),
    people=st.lists(NAMES, max_size=2).map(tuple),
    groups=st.lists(NAMES, max_size=2).map(tuple),
)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    deadline = draw(st.none() | LENGTHS)
    named = draw(st.builds(Deciders, groups=st.lists(NAMES, min_size=1, max_size=2).map(tuple)))
    escalated: dict[str, Any] = {"after_deadline": AfterDeadline.ESCALATE, "escalate_to": named}
    ends = draw(st.sampled_from([{}, escalated])) if deadline else {}
    return Rule(
        name=draw(NAMES),
        then=draw(st.sampled_from(Effect)),
        tool=draw(GLOBS),
        graph=draw(GLOBS),
        agent=draw(GLOBS),
        when=draw(st.sampled_from([None, "args.amount <= 5000", "args.to == 'a\"b'"])),
        by=draw(DECIDERS),
        approvals=draw(st.integers(1, 10)),
        separate_duties=draw(st.booleans()),
        risk=draw(st.none() | st.sampled_from(Risk)),
        deadline=deadline,
        remind_after=draw(st.none() | st.just(timedelta(minutes=30))),
        verbs=draw(st.none() | st.lists(st.sampled_from(Verb), min_size=1, max_size=3).map(tuple)),
        pending_ttl=None if deadline else draw(st.none() | LENGTHS),
        execution_ttl=timedelta(minutes=draw(st.integers(1, 1440))),
        mask=draw(st.sampled_from([(), ("password",), ("card.number", "pin")])),
        **ends,
    )


POLICIES = st.builds(
    Policy,
    rules=st.lists(rules(), max_size=4).map(tuple),
    default=rules().map(lambda rule: Rule(rule.name, rule.then, approvals=rule.approvals, risk=rule.risk)),
)


@given(POLICIES)
def test_policy_written_as_toml_is_read_as_the_same_policy(policy: Policy) -> None:
    text = to_toml(policies.to_json(policy))
    assert policies.parse(text) == policy
    assert not [character for character in text if is_hidden(character) and character != "\n"]


def test_a_passkey_that_is_asked_for_is_written_and_read_again() -> None:
    source = '[[rules]]\nname = "transfers"\ntool = "transfer"\nthen = "ask"\nconfirm = "passkey"'
    written = to_toml(policies.to_json(policies.parse(source)))
    assert 'confirm = "passkey"' in written
    assert policies.parse(written) == policies.parse(source)
