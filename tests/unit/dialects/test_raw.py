"""Any other value that an agent raises can be shown and answered; a breakpoint, which has no value, can be decided."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from assent.errors import InvalidDecision
from assent.kernel import canonical
from assent.review import dialects
from assent.review.dialects import breakpoint, plain
from assent.review.model.questions import Interrupt, ItemType, Question, Verb, Verdict
from tests.unit.dialects.pausing import CONFIG, Asking


def recognise(value: Any) -> Question:
    return dialects.recognise(Interrupt("i", value))


@pytest.mark.parametrize(
    ("value", "title", "description"),
    [
        ("\nShip it?\nIt is ready.", "Ship it?", "\nShip it?\nIt is ready."),
        ({"question": "Ship it?", "draft": "…"}, "Ship it?", "Ship it?"),
        ({"task": "Review", "n": 1}, "Review", "Review"),
        ("", "Question", ""),
        (7, "Input needed", None),
        (None, "Input needed", None),
        ([], "Input needed", None),
        ("x" * 500, "x" * 119 + "…", "x" * 500),
    ],
)
def test_any_value_is_a_question(value: Any, title: str, description: str | None) -> None:
    question = recognise(value)
    assert (question.dialect, question.type) == ("raw", ItemType.QUESTION)
    assert (question.title, question.description) == (title, description)
    assert question.actions[0].args_text == canonical.text(value)
    assert question.problems == ()


@pytest.mark.parametrize("answer", ["yes", 0, False, [], 3.5, {"approved": True}, ["a", None], 2**64 - 1])
def test_raw_answer_is_passed_on_unchanged(answer: Any) -> None:
    written = Verdict("0", Verb.RESPOND, message=answer) if answer == "yes" else Verdict("0", Verb.RESPOND, args=answer)
    asking = Asking("Well?")
    asking.decide(written)
    assert asking.received == answer
    assert type(asking.received) is type(answer)
    assert dialects.decode(recognise("Well?"), answer) == dialects.Decoded((written,), answer)


@pytest.mark.parametrize(
    "verdict",
    [
        Verdict("0", Verb.RESPOND),
        Verdict("0", Verb.RESPOND, message="  "),
        Verdict("0", Verb.RESPOND, message="a", args=1),
        Verdict("0", Verb.RESPOND, message="a", name="b"),
        Verdict("0", Verb.RESPOND, args={"n": float("inf")}),
        Verdict("0", Verb.RESPOND, args={"n": [2**64]}),
        Verdict("0", Verb.APPROVE),
    ],
)
def test_other_decisions_are_refused(verdict: Verdict) -> None:
    with pytest.raises(InvalidDecision) as refused:
        dialects.encode(recognise("Well?"), [verdict])
    assert refused.value.problems[0].path.startswith("actions[0].")


def test_raw_question_has_no_negative_answer() -> None:
    assert dialects.negative(recognise("Well?"), "expired") is None
    assert dialects.feedback(recognise("Well?"), "again") is None


class Colour(StrEnum):
    RED = "red"


@dataclass
class Point:
    x: int


class Silent:
    """Its text would name an address in memory, another one each time."""


class Rude:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class Sly(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.extend([loop] * 10)
    return loop


@pytest.mark.parametrize(
    ("value", "shown", "path"),
    [
        ({"when": date(2026, 1, 2)}, {"when": "datetime.date(2026, 1, 2)"}, "when"),
        ([Point(1)], ["Point(x=1)"], "[0]"),
        ({"n": float("nan")}, {"n": "nan"}, "n"),
        (float("-inf"), "-inf", ""),
        ({"a": b"\x00"}, {"a": "b'\\x00'"}, "a"),
        ({1: "one", "1": "other"}, {"<int 1>": "one", "1": "other"}, ""),
        ("\ud800!", "\\ud800!", ""),
        ([10**5000], ["…"], "[0]"),
        ([Silent()], [f"<{__name__}.Silent>"], "[0]"),
        ([Rude()], [f"<{__name__}.Rude>"], "[0]"),
    ],
)
def test_value_outside_json_is_shown_as_text_with_a_remark(value: Any, shown: Any, path: str) -> None:
    question = recognise(value)
    assert question.dialect == "raw"
    assert question.actions[0].args == shown
    assert [problem.path for problem in question.problems] == [path]
    assert canonical.digest(shown) == canonical.digest(recognise(value).value)


def test_deeply_nested_and_very_long_values_are_truncated() -> None:
    deep: Any = "x"
    for _ in range(10_000):
        deep = [deep]
    assert "deeper than 64" in recognise(deep).problems[0].message
    assert len(recognise(endless()).problems) == plain.MAX_PROBLEMS
    wide = recognise(list(range(plain.MAX_VALUES + 10)))
    assert "left out" in wide.problems[0].message


def test_ordinary_python_values_are_converted_to_json() -> None:
    question = recognise({"colour": Colour.RED, "pair": (1, 2), "sly": Sly(a=1)})
    assert question.value == {"colour": "red", "pair": [1, 2], "sly": {"a": 1}}
    assert question.problems == ()


def test_request_with_values_outside_json_is_not_offered_for_approval() -> None:
    config = {"allow_accept": True, "allow_edit": False, "allow_respond": False, "allow_ignore": False}
    question = recognise({"action_request": {"action": "go", "args": {"when": date(2026, 1, 2)}}, "config": config})
    assert question.dialect == "raw"
    assert question.problems[0].path == "action_request.args.when"


class Work(TypedDict, total=False):
    done: bool


def stopped() -> Any:
    builder = StateGraph(Work)
    builder.add_node("publish", lambda state: {"done": True})
    builder.add_edge(START, "publish")
    graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["publish"])
    graph.invoke({"done": False}, CONFIG)
    return graph


def test_a_breakpoint_is_a_question_without_a_value() -> None:
    graph = stopped()
    state = graph.get_state(CONFIG)
    assert state.interrupts == ()
    question = breakpoint.question(state.next)
    assert (question.dialect, question.type, question.title) == (
        "breakpoint",
        ItemType.BREAKPOINT,
        "Paused before publish",
    )
    assert dialects.encode(question, [Verdict("0", Verb.APPROVE)]) is breakpoint.Step.CONTINUE
    assert dialects.encode(question, [Verdict("0", Verb.REJECT)]) is breakpoint.Step.END
    assert graph.invoke(None, CONFIG) == {"done": True}


def test_a_breakpoint_takes_no_other_decision_and_no_value() -> None:
    question = breakpoint.question(["publish"])
    for verdict in (Verdict("0", Verb.IGNORE), Verdict("0", Verb.REJECT, message="why")):
        with pytest.raises(InvalidDecision):
            dialects.encode(question, [verdict])
    with pytest.raises(InvalidDecision):
        dialects.decode(question, "go")
    assert dialects.negative(question, "expired") == (Verdict("0", Verb.REJECT),)
    assert dialects.feedback(question, "again") is None
