"""Items: where they may go, what a revision's hash covers, edits, and the calls that a question is about."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.errors import InvalidTransition
from assent.review.dialects import recognise
from assent.review.model.items import (
    HERE,
    TRANSITIONS,
    Item,
    ItemStatus,
    Revision,
    aligned_calls,
    as_asked,
    as_revised,
    edits_in,
)
from assent.review.model.questions import Interrupt, Question, Verb, Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALLS = [{"name": "pay", "args": {"n": 1}, "id": "a"}, {"name": "pay", "args": {"n": 2}, "id": "b"}]


def item(status: ItemStatus) -> Item:
    facts: dict[str, Any] = dict.fromkeys(Item.__slots__)
    facts |= {"id": "i", "status": status, "revision": 1, "hash": "h", "type": "tool", "dialect": "raw", "title": "t"}
    facts |= {"gated": True, "policy": {}, "deployment": HERE, "requester": "agent:a", "approvals": 0}
    return Item(**facts | {"created_at": NOW, "updated_at": NOW})


def question(*calls: dict[str, Any]) -> Question:
    requests = [{"name": call["name"], "args": call["args"]} for call in calls]
    configs = [{"action_name": call["name"], "allowed_decisions": ["approve", "edit", "reject"]} for call in calls]
    return recognise(Interrupt("i", {"action_requests": requests, "review_configs": configs}))


@pytest.mark.promise("REVIEW-21")
@pytest.mark.promise("REVIEW-24")
@pytest.mark.parametrize("before", ItemStatus)
@pytest.mark.parametrize("after", ItemStatus)
def test_only_transitions_of_the_table_are_allowed(before: ItemStatus, after: ItemStatus) -> None:
    ends = {"APPROVED", "REJECTED", "EXPIRED", "CANCELLED"}
    allowed = {"PENDING": ends | {"REVISION_REQUESTED"}, "REVISION_REQUESTED": ends | {"PENDING"}}
    if after in allowed.get(before, set()):
        assert item(before).moved(after) is after
        return
    with pytest.raises(InvalidTransition) as refused:
        item(before).moved(after)
    assert refused.value.extra == {"from": before, "to": after, "allowed": list(TRANSITIONS[before])}


def test_open_statuses_are_those_with_a_transition() -> None:
    assert [status for status in ItemStatus if status.open] == [status for status in ItemStatus if TRANSITIONS[status]]


@pytest.mark.promise("P5")
def test_hash_covers_every_field_of_the_question_and_nothing_else() -> None:
    revision = Revision(1, {"n": 1}, {"type": "object"}, {"0": "a"}, {"0": {"args": {}}})
    same = replace(revision, number=2, author="x", notes="n", created_at=NOW)
    assert same.hash == revision.hash
    others = [
        replace(revision, asked={"n": 1.0}),
        replace(revision, asked={"n": "1"}),
        replace(revision, response_schema=None),
        replace(revision, calls={"0": "b"}),
        replace(revision, edits={}),
    ]
    assert len({revision.hash, *(other.hash for other in others)}) == len(others) + 1


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3) | st.none(), max_size=3))
def test_hash_does_not_depend_on_the_order_of_keys(value: dict[str, Any]) -> None:
    assert Revision(1, value).hash == Revision(1, dict(reversed(value.items()))).hash


def test_approving_an_edited_revision_is_sent_as_an_edit() -> None:
    revision = Revision(2, None, edits={"0": {"args": {"n": 5}, "name": "refund"}})
    approve, reject = Verdict("0", Verb.APPROVE), Verdict("0", Verb.REJECT, message="no")
    assert as_asked([approve], revision) == (Verdict("0", Verb.EDIT, args={"n": 5}, name="refund"),)
    assert as_asked([reject], revision) == (reject,)
    assert as_asked([approve], Revision(1, None)) == (approve,)


def test_successive_edits_are_combined() -> None:
    before = Revision(2, None, edits={"0": {"args": {"n": 5}}})
    said = [Verdict("1", Verb.EDIT, args={"n": 6}, name="x"), Verdict("0", Verb.APPROVE)]
    assert edits_in(said, before) == {"0": {"args": {"n": 5}}, "1": {"args": {"n": 6}, "name": "x"}}
    assert edits_in([Verdict("0", Verb.EDIT, args={"n": 7})], before) == {"0": {"args": {"n": 7}}}


def test_a_revised_question_shows_the_change_and_the_agents_id() -> None:
    asked = question(CALLS[0], CALLS[1])
    revised = as_revised(asked, Revision(2, None, calls={"0": "a", "1": "b"}, edits={"1": {"args": {"n": 9}}}))
    assert [(action.call_id, action.args, action.args_text) for action in revised.actions] == [
        ("a", {"n": 1}, '{"n":1}'),
        ("b", {"n": 9}, '{"n":9}'),
    ]


@pytest.mark.parametrize(
    ("asked", "made", "found"),
    [
        ([0, 1], CALLS, {"0": "a", "1": "b"}),
        ([1], CALLS, {"0": "b"}),
        ([1, 0], CALLS, None),
        ([0, 0], CALLS, None),
        ([0], [{"name": "pay", "args": {"n": 1.5}, "id": "a"}], None),
        ([0], [{"name": "pay", "args": {"n": 1}}], None),
        ([0], [{"name": "other", "args": {"n": 1}, "id": "a"}], None),
        ([0], [], None),
        ([0], ["no call"], None),
    ],
)
def test_calls_are_found_by_name_arguments_and_order(asked: list[int], made: list[Any], found: Any) -> None:
    messages = [{"type": "human", "content": ""}, {"type": "ai", "tool_calls": made}]
    assert aligned_calls(question(*(CALLS[index] for index in asked)), messages) == found


@pytest.mark.parametrize("messages", [None, "text", [], [None], [{"type": "ai"}], [{"type": "human"}]])
def test_without_messages_no_calls_are_found(messages: Any) -> None:
    assert aligned_calls(question(CALLS[0]), messages) is None
