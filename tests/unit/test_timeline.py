"""The chain of events and its check, without a database."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assent.kernel import canonical
from assent.kernel.timeline import (
    ERASED,
    GENESIS,
    Break,
    ChainCheck,
    Event,
    Head,
    as_export,
    follow,
    from_export,
    ranges,
)

Entry = tuple[Event, str | None]

AT = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
stories = st.lists(st.tuples(words, words, st.dictionaries(words, words, max_size=2)), min_size=1, max_size=8)


def chain(story: list[tuple[str, str, dict[str, Any]]]) -> list[Entry]:
    """Events in order; a subject and actor each, and what they did."""
    head, entries = Head(), list[Entry]()
    for number, (subject, actor, payload) in enumerate(story):
        kind = payload.get("kind", "test.told")
        text = canonical.text(payload)
        at = AT + timedelta(microseconds=number)
        event = follow(head, tenant="acme", at=at, kind=kind, actor=actor, subject=subject, payload=text)
        head = Head(event.seq, event.hash)
        entries.append((event, text))
    return entries


def simple(length: int) -> list[Entry]:
    return chain([(f"item:{number}", "reviewer:1", {"n": number}) for number in range(length)])


def erasure(first: int, last: int) -> dict[str, Any]:
    return {"kind": ERASED, "seqs": [[first, last]], "reason": "asked for"}


def head_of(entries: list[Entry]) -> Head:
    return Head(entries[-1][0].seq, entries[-1][0].hash)


def check(entries: list[Entry], *, stored: Head | None, anchor: Head | None = None) -> list[Break]:
    walk = ChainCheck(anchor)
    for event, payload in entries:
        walk.feed(event, payload)
    return walk.finish(stored)


def reasons(entries: list[Entry], *, stored: Head | None, anchor: Head | None = None) -> list[tuple[int, str]]:
    return [(chain_break.seq, chain_break.reason) for chain_break in check(entries, stored=stored, anchor=anchor)]


def test_the_first_event_follows_the_genesis() -> None:
    (event, _), *_ = simple(1)
    assert (event.seq, event.previous, event.hash) == (1, GENESIS, event.seal())


@given(story=stories)
def test_unchanged_chain_verifies(story: list[Any]) -> None:
    entries = chain(story)
    assert check(entries, stored=head_of(entries), anchor=head_of(entries)) == []
    assert check(entries, stored=head_of(entries), anchor=head_of(entries[:1])) == []


@given(story=stories, data=st.data())
def test_any_changed_field_is_found(story: list[Any], data: st.DataObject) -> None:
    entries = chain(story)
    place = data.draw(st.integers(0, len(entries) - 1))
    event, payload = entries[place]
    name = data.draw(st.sampled_from(Event.__slots__))
    values: dict[str, st.SearchStrategy[Any]] = {"seq": st.integers(), "at": st.datetimes(timezones=st.just(UTC))}
    value = data.draw(values.get(name, words))
    assume(value != getattr(event, name))
    stored = head_of(entries)
    entries[place] = (replace(event, **{name: value}), payload)
    assert check(entries, stored=stored)


@given(story=stories, data=st.data())
def test_any_changed_payload_is_found(story: list[Any], data: st.DataObject) -> None:
    entries = chain(story)
    place = data.draw(st.integers(0, len(entries) - 1))
    event, payload = entries[place]
    changed = data.draw(words)
    assume(changed != payload)
    entries[place] = (event, changed)
    assert (event.seq, "its payload was changed after it was written") in reasons(entries, stored=head_of(entries))


@given(story=stories, data=st.data())
def test_any_removed_stretch_is_found(story: list[Any], data: st.DataObject) -> None:
    entries = chain(story)
    first = data.draw(st.integers(0, len(entries) - 1))
    last = data.draw(st.integers(first, len(entries) - 1))
    assert check(entries[:first] + entries[last + 1 :], stored=head_of(entries))


@given(story=stories, data=st.data())
def test_any_other_order_is_found(story: list[Any], data: st.DataObject) -> None:
    entries = chain(story)
    shuffled = data.draw(st.permutations(entries))
    assume(shuffled != entries)
    assert check(shuffled, stored=head_of(entries))


def test_each_kind_of_break_is_named() -> None:
    entries = simple(4)
    stored = head_of(entries)
    event, payload = entries[1]
    edited = [entries[0], (replace(event, actor="reviewer:2"), payload), *entries[2:]]
    assert reasons(edited, stored=stored) == [(2, "was changed after it was written")]
    assert reasons([entries[0], *entries[2:]], stored=stored) == [
        (3, "follows 1, so rows between are missing or out of order"),
        (3, "does not name the event before it"),
    ]
    assert reasons(entries, stored=None) == [(4, "the stored head is missing")]
    assert reasons(entries[:3], stored=stored) == [(4, "the stored head differs from the last event")]


def test_a_chain_forged_from_the_beginning_is_found_by_an_exported_head() -> None:
    honest = simple(5)
    forged = chain([(f"item:{number}", "reviewer:forged", {"n": number}) for number in range(5)])
    assert reasons(forged, stored=head_of(forged)) == []  # the control: it is sealed as well as ours
    assert reasons(forged, stored=head_of(forged), anchor=head_of(honest[:3])) == [
        (3, "differs from the exported head")
    ]


def test_a_cut_off_tail_is_found_by_an_exported_head() -> None:
    entries = simple(5)
    assert reasons(entries[:3], stored=head_of(entries[:3])) == []  # the control: the stored head was rewritten
    cut = reasons(entries[:3], stored=head_of(entries[:3]), anchor=head_of(entries))
    assert cut == [(5, "events up to the exported head are missing")]


def test_erasure_accounts_only_for_the_payloads_it_names() -> None:
    story = [("item:1", "a", {"n": 1}), ("item:2", "a", {"n": 2}), ("item:3", "a", {"n": 3}), ("e", "a", erasure(1, 2))]
    entries = chain(story)
    gone = [(event, None if event.seq in {1, 2} else payload) for event, payload in entries]
    assert reasons(gone, stored=head_of(entries)) == []
    too_much = [(event, None if event.seq in {1, 2, 3} else payload) for event, payload in entries]
    assert reasons(too_much, stored=head_of(entries)) == [(3, "its payload is missing and no erasure event covers it")]


def test_erasure_without_its_payload_accounts_for_nothing() -> None:
    entries = chain([("item:1", "a", {"n": 1}), ("e", "a", erasure(1, 1))])
    gone: list[Entry] = [(event, None) for event, _ in entries]
    assert [seq for seq, _ in reasons(gone, stored=head_of(entries))] == [1, 2]


@pytest.mark.parametrize("payload", [{}, {"seqs": 5}, {"seqs": [[1]]}, {"seqs": [["a", "b"]]}, {"seqs": [[None, 1]]}])
def test_erasure_that_names_no_payload_is_a_break(payload: dict[str, Any]) -> None:
    entries = chain([("item:1", "a", {"n": 1}), ("e", "a", {"kind": ERASED, **payload})])
    assert reasons(entries, stored=head_of(entries)) == [(2, "does not list the erased payloads")]


def test_hash_does_not_depend_on_the_time_zone_of_the_timestamp() -> None:
    """A database may give the same moment back in another zone; ours always gives UTC, and only that is hashed."""
    event, _ = simple(1)[0]
    elsewhere = replace(event, at=event.at.astimezone(timezone(timedelta(hours=2))))
    assert elsewhere == event
    assert elsewhere.seal() != event.seal()


@given(seqs=st.sets(st.integers(0, 40)))
def test_ranges_contain_exactly_their_numbers(seqs: set[int]) -> None:
    seq_ranges = ranges(seqs)
    assert [seq for first, last in seq_ranges for seq in range(first, last + 1)] == sorted(seqs)
    assert all(right[0] > left[1] + 1 for left, right in pairwise(seq_ranges))


@given(story=stories)
def test_an_export_reads_back_as_it_was(story: list[Any]) -> None:
    entries = chain(story)
    assert [from_export(as_export(*entry)) for entry in entries] == entries
    event, _ = entries[0]
    assert from_export(as_export(event, None)) == (event, None)


BAD_LINES: list[dict[str, Any]] = [
    {"seq": "1"},
    {"seq": 1.0},
    {"at": 5},
    {"at": "yesterday"},
    {"kind": None},
    {"hash": ["x"]},
    {"payload": 5},
    {"payload": 0},
    {"payload": []},
    {"extra": "x"},
]


@pytest.mark.parametrize("change", BAD_LINES, ids=str)
def test_a_line_with_other_types_or_fields_is_refused(change: dict[str, Any]) -> None:
    line = as_export(*simple(1)[0])
    with pytest.raises((TypeError, ValueError)):
        from_export({**line, **change})


@pytest.mark.parametrize("missing", [*Event.__slots__, "payload"])
def test_a_line_that_lacks_a_field_is_refused(missing: str) -> None:
    line = as_export(*simple(1)[0])
    del line[missing]
    with pytest.raises(ValueError, match="not the fields"):
        from_export(line)
