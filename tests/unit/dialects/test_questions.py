"""The status and resolution that a set of verdicts gives its item."""

from __future__ import annotations

import pytest

from assent.review.model.questions import Action, ItemType, Question, Verb, Verdict, headline, outcome, summary


@pytest.mark.parametrize(
    ("verbs", "status", "resolution"),
    [
        ("approve", "APPROVED", "accepted"),
        ("accept", "APPROVED", "accepted"),
        ("edit", "APPROVED", "edited"),
        ("respond", "APPROVED", "responded"),
        ("reject", "REJECTED", "rejected"),
        ("ignore", "REJECTED", "ignored"),
        ("decline", "REJECTED", "declined"),
        ("cancel", "REJECTED", "declined"),
        ("approve approve", "APPROVED", "accepted"),
        ("approve edit", "APPROVED", "edited"),
        ("approve reject", "APPROVED", "partial"),
        ("edit ignore", "APPROVED", "partial"),
        ("approve respond", "APPROVED", "partial"),
        ("accept decline", "APPROVED", "partial"),
        ("decline cancel", "REJECTED", "declined"),
        ("reject ignore", "REJECTED", "rejected"),
    ],
)
def test_verdicts_give_the_status_and_resolution_of_the_item(verbs: str, status: str, resolution: str) -> None:
    item_outcome = outcome(Verdict(str(index), Verb(verb)) for index, verb in enumerate(verbs.split()))
    assert (item_outcome.status, item_outcome.resolution) == (status, resolution)


def test_every_verb_has_an_outcome() -> None:
    assert {outcome([Verdict("0", verb)]).status for verb in Verb} == {"APPROVED", "REJECTED"}


def test_headline_is_the_first_line_with_text() -> None:
    assert headline(" \n  Well? \nmore") == "Well?"
    assert headline("\n", "Form") == "Form"
    assert len(headline("x" * 1000)) == 120


@pytest.mark.parametrize(
    ("arguments", "line"), [("null", ""), ("{}", ""), ('{"a":1}', '{"a":1}'), ("null 5", "5"), ("{} null", "")]
)
def test_summary_leaves_out_empty_values(arguments: str, line: str) -> None:
    actions = tuple(Action(str(at), "act", None, text) for at, text in enumerate(arguments.split()))
    assert summary(Question("request", ItemType.TOOL, "Act", None, actions)) == line
