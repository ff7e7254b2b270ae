"""Limits of arguments become conditions; every way to loosen a policy is named."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assent.errors import Invalid
from assent.review.model import policies
from assent.review.model.policies import Call, StandingApproval
from assent.review.model.rules.limits import Bound, Limit, condition_of
from assent.review.model.rules.loosening import loosenings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALL = Call("refund", {"amount": 50, "currency": "EUR", "in": True, "note": 'a "b" 😀'}, "g", "billing", "acme", "7")
STANDING = StandingApproval("s", "refund", NOW + timedelta(days=1))


@pytest.mark.parametrize(
    ("limits", "others"),
    [
        ([Limit("amount", Bound.AT_MOST, 50)], {"amount": 50.01}),
        ([Limit("amount", Bound.AT_LEAST, 49.5)], {"amount": 49}),
        ([Limit("amount", Bound.AT_MOST, 50)], {"amount": "1"}),
        ([Limit("currency", Bound.SAME, "EUR")], {"currency": "USD"}),
        ([Limit("in", Bound.SAME, True), Limit("note", Bound.SAME, 'a "b" 😀')], {"note": "a"}),
    ],
)
def test_limits_cover_the_call_and_not_its_neighbour(limits: list[Limit], others: dict[str, Any]) -> None:
    standing = replace(STANDING, condition=condition_of(limits))
    assert policies.covers(standing, CALL, NOW)
    assert isinstance(CALL.args, dict)
    assert not policies.covers(standing, replace(CALL, args=CALL.args | others), NOW)


def test_limit_and_condition_both_apply() -> None:
    both = condition_of([Limit("amount", Bound.AT_MOST, 100)], "false || args.currency == 'EUR'")
    assert both == "args.amount <= 100 && (false || args.currency == 'EUR')"
    assert (condition_of([]), condition_of([], "true")) == (None, "true")


@pytest.mark.parametrize("value", ["5", True, None, [1]])
def test_range_without_a_number_is_refused(value: Any) -> None:
    with pytest.raises(Invalid, match="needs a number"):
        Limit("amount", Bound.AT_MOST, value)


def test_standing_approval_of_one_agent_covers_no_other() -> None:
    assert policies.covers(replace(STANDING, agent="7"), CALL, NOW)
    assert not policies.covers(replace(STANDING, agent="8"), CALL, NOW)
    assert not policies.covers(replace(STANDING, agent="billing"), CALL, NOW), "a name can be given to another agent"


ASK: dict[str, Any] = {"name": "money", "tool": "pay", "then": "ask"}
NEVER: dict[str, Any] = {"name": "shell", "tool": "sh", "then": "never"}
FREE: dict[str, Any] = {"name": "read", "tool": "get", "then": "allow"}


def changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [str(each) for each in loosenings(policies.from_json(before), policies.from_json(after))]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"default": "ask"}, {"default": "advise"}, "default: now: advise; before: ask"),
        ({"rules": []}, {"rules": [FREE]}, "read: is new and comes before stricter rules"),
        ({"rules": [NEVER]}, {"rules": []}, "shell: is removed"),
        ({"rules": [NEVER, FREE]}, {"rules": [FREE, NEVER]}, "read: has moved before stricter rules"),
        ({"rules": [ASK]}, {"rules": [ASK | {"then": "allow"}]}, "money: now: allow; before: ask"),
        ({"rules": [ASK | {"approvals": 2}]}, {"rules": [ASK]}, "money: needs 1 approvals instead of 2"),
        ({"rules": [ASK | {"by": {"roles": ["admin"]}}]}, {"rules": [ASK]}, "money: lets other people decide"),
        ({"rules": [ASK | {"separate_duties": True}]}, {"rules": [ASK]}, "money: no longer separates duties"),
        ({"rules": [ASK | {"confirm": "passkey"}]}, {"rules": [ASK]}, "money: no longer asks for a passkey"),
        ({"rules": [ASK | {"verbs": ["reject"]}]}, {"rules": [ASK]}, "money: offers more answers"),
        ({"rules": [FREE]}, {"rules": [FREE | {"tool": "*"}]}, "read: matches other calls"),
        ({"rules": [ASK]}, {"rules": [ASK | {"mcp": "high"}]}, "money: lets programs decide at a higher risk"),
        ({"rules": [ASK | {"mask": ["iban"]}]}, {"rules": [ASK]}, "money: masks less"),
        (
            {"rules": [ASK | {"approvals": 2}]},
            {"rules": [ASK | {"name": "one"}, ASK | {"approvals": 2}]},
            "one: is new and comes before stricter rules",
        ),
    ],
)
def test_loosening_is_named_and_its_reverse_is_none(before: dict[str, Any], after: dict[str, Any], said: str) -> None:
    assert changed(before, after) == [said]
    if "matches other" not in said:
        assert said not in changed(after, before)
    assert changed(after, after) == []
