"""Conditions answer exactly or fail; no condition and no arguments keep them busy."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.review.model import conditions
from assent.review.model.conditions import ConditionFailed, InvalidCondition, Variables
from tests.unit.test_canonical import values

PATIENCE = 5
"""Seconds that nothing here may take: far more than it does, so that a busy machine does not matter."""


def seen(args: Any) -> Variables:
    return conditions.variables(args, tool="refund", graph="billing", agent="clerk", tenant="acme")


def holds(text: str, args: Any) -> bool:
    return conditions.compile(text).holds(seen(args))


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        ("args.amount <= 100", {"amount": 100}, True),
        ("args.amount <= 100", {"amount": 100.01}, False),
        ("args.amount == 598", {"amount": 598.0}, True),
        ("args.to.endsWith('@example.com')", {"to": "ann@example.com"}, True),
        ("args.to.all(a, a.endsWith('@example.com'))", {"to": ["a@example.com", "b@evil.example"]}, False),
        ("has(args.card) && args.card.number != ''", {}, False),
        ("args.path.matches('^/tmp/[a-z]+$')", {"path": "/tmp/x/../etc"}, False),
        ("args.path.matches(r'^\\w+$')", {"path": "abc"}, True),
        ("args == null", None, True),
        ("args == []", [], True),
        ("args.flag == 1", {"flag": True}, False),
        ("size(args.name) == 2", {"name": "é😀"}, True),
        ("tool == 'refund' && graph == 'billing' && agent == 'clerk' && tenant == 'acme'", {}, True),
        ("args.a > 1 || true // a comment with '''", {}, True),
        ("args.matches == 1", {"matches": 1}, True),
    ],
)
def test_a_condition_says_whether_it_holds(text: str, args: Any, expected: bool) -> None:
    assert holds(text, args) is expected


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        (r"args.id.matches(r'^\d+$')", {"id": "٣"}, False),
        (r"args.branch.matches(r'^\w+$')", {"branch": "ſ"}, False),
        (r"args.name.matches(r'\s')", {"name": "a\u2028b"}, False),
        (r"args.code.matches(r'\D')", {"code": "٣"}, True),
        ("size(args.name) <= 2", {"name": "é😀"}, True),
        ("args.to.exists(a, a > 1)", {"to": ["ann", 2]}, True),
        ("args.to.all(a, a > 1)", {"to": ["ann", 0]}, False),
        ("args.limit in args.limits", {"limit": 1.5, "limits": {}}, False),
    ],
)
def test_answers_on_which_libraries_differ_stay(text: str, args: Any, expected: bool) -> None:
    """Stored policies rely on them. A Rust and a Python library of CEL answer otherwise: they count bytes, or their
    classes of a regular expression hold digits and letters of every script."""
    assert holds(text, args) is expected


@pytest.mark.promise("P7")
@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("-args.n > 0", {"n": -(2**63)}),
        ("args.n > 1", {"n": 2**64}),
        ("args.n - 1 > 0", {"n": 2.5}),
        ("args.flag < 5", {"flag": True}),
        ("args.flag && true", {"flag": 1}),
        ("args.list[-1] == 1", {"list": [1]}),
        ("{'a': 1, 'a': 2}.a == args.a", {"a": 1}),
    ],
)
def test_failures_on_which_libraries_differ_stay(text: str, args: Any) -> None:
    with pytest.raises(ConditionFailed):
        holds(text, args)


@pytest.mark.parametrize("text", ["1 == 1.0", "tool == 1", "true || amount > 1", "args.x in tool", "max(1, 2) == 2"])
def test_wrong_types_and_unknown_names_are_refused_before_any_call(text: str) -> None:
    with pytest.raises(InvalidCondition):
        conditions.compile(text)


@pytest.mark.parametrize("number", [2**53 + 1, 2**62 + 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1])
def test_integers_of_64_bits_are_compared_digit_for_digit(number: int) -> None:
    literal = f"{number}u" if number >= 2**63 else str(number)
    assert holds(f"args.n == {literal}", {"n": number})
    assert not holds(f"args.n == {literal}", {"n": number - 1 if number > 0 else number + 1})


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("args.amount >", 1, 14, "Syntax error"),
        ("true &&\n  amount > 1", 2, 3, "undeclared reference to 'amount'"),
        ("tool > 1", 1, 6, "no matching overload"),
        ("open('/etc/passwd') == ''", 1, 5, "undeclared reference"),
        ("args.l.map(a, [a, a]) == []", 1, 12, "undeclared reference"),
        ("args.amount + 1", None, None, "true or false"),
        ("'yes'", None, None, "true or false"),
        ("", None, None, "CEL expression"),
        ("true\0", None, None, "CEL expression"),
        ("'\ud800' == ''", None, None, "CEL expression"),
        ("true" + " " * 2000, None, None, "2000 characters"),
        ("(" * 40 + "true" + ")" * 40, None, None, "recursion"),
        ("args.s.matches('(')", None, None, "regular expression"),
        ("args.s.matches('((a{9}){9}){9}')", None, None, "repeat groups"),
        ("args.s.matches('\\\\pL{100}')", None, None, "repeat groups"),
        ("args.s.matches(args.pattern)", None, None, "as a literal"),
        ("args.s.matches('a' + args.pattern)", None, None, "as a literal"),
        ("args.s.matches(args.pattern) && \"x.matches('a')\" != ''", None, None, "as a literal"),
        ("args.s.matches( // 'a')\n  '((a{9}){9}){9}')", None, None, "repeat groups"),
        ("'.matches(' != '' && args.s.matches('((a{9}){9}){9}')", None, None, "repeat groups"),
        ("matches(args.s, args.pattern)", None, None, "as a literal"),
        ("// '''\nargs.s.matches(args.pattern) // '''", None, None, "as a literal"),
    ],
)
def test_invalid_condition_is_refused_with_its_position(
    text: str, line: int | None, column: int | None, says: str
) -> None:
    with pytest.raises(InvalidCondition, match=says) as refused:
        conditions.compile(text)
    assert (refused.value.line, refused.value.column) == (line, column)


@pytest.mark.promise("P7")
@pytest.mark.parametrize(
    ("text", "args", "says"),
    [
        ("args.amount > 1", {}, "Key not found"),
        ("args.amount > 1", {"amount": "2"}, "overload"),
        ("args.amount > 1", [], "."),
        ("args.amount > 1", None, "."),
        ("args.amount / 0 > 1", {"amount": 1}, "divide by zero"),
        ("args.amount > 1", {"amount": 2**64}, "Integer"),
        ("args.amount", {"amount": "true"}, "not true or false"),
        ("args.path == '/tmp'", {"path": "/tmp\0/../etc"}, "NUL"),
        ("args.path == '/tmp'", {"path": "/tmp", "/tmp\0": 1}, "NUL"),
        ("args.x == 1", {"x": {1, 2}}, "not JSON"),
        ("args.x == 1", {"x": float("nan")}, "not JSON"),
        ("args.x == 1", {"x": 1, "body": "x" * 70_000}, "longer than"),
        ("args.x.all(x, x > 0)", {"x": [1] * 20_000}, "too large"),
    ],
)
def test_a_condition_without_an_answer_fails(text: str, args: Any, says: str) -> None:
    with pytest.raises(ConditionFailed, match=says):
        holds(text, args)


def test_control_without_the_check_a_nul_truncates_a_text() -> None:
    """The control: this is how the library reads it."""
    bare = Variables({**seen({}).values, "args": {"path": "/tmp\0/../etc"}}, 1, 1)
    assert conditions.compile("args.path == '/tmp'").holds(bare)


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("args.amount < 1", {"amount": 5, "key": int("7193" * 74)}),
        ("args.rates[args.key] < 1", {"rates": {}, "key": "7193" * 200}),
        ("args.rates[args.key] < 1", {"rates": {}, "key": "don't \" tell 7193"}),
    ],
)
def test_failure_message_does_not_contain_a_long_or_quoted_value(text: str, args: Any) -> None:
    with pytest.raises(ConditionFailed) as failed:
        holds(text, args)
    assert "7193" not in str(failed.value)


def test_failure_message_names_a_missing_key_of_the_condition() -> None:
    with pytest.raises(ConditionFailed, match='Key not found in map : "amount"'):
        holds("args.amount > 1", {})


def test_control_shortening_before_removing_shows_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "_without_codes", lambda error: str(error)[:300])
    monkeypatch.setattr(conditions, "_QUOTED", re.compile("'.*'"))
    with pytest.raises(ConditionFailed, match="7193"):
        holds("args.amount < 1", {"amount": 5, "key": int("7193" * 74)})


def test_failure_message_does_not_contain_values() -> None:
    with pytest.raises(ConditionFailed) as failed:
        holds("args.pin > 1", {"pin": 98765432109876543210})
    assert "9876" not in str(failed.value)


@given(values)
def test_any_arguments_give_an_answer_or_a_failure(args: Any) -> None:
    for text in ("args.a == 1", "args == args", "args[0] > 1", "args.exists(x, x == args)", "size(args) > 1"):
        with suppress(ConditionFailed):
            assert isinstance(holds(text, args), bool)


@given(st.text(st.sampled_from("args.l()[]'\"\\!&|+x,allexists matches?:{}/\n1")))
def test_any_text_is_compiled_or_refused(text: str) -> None:
    with suppress(InvalidCondition):
        assert conditions.compile(text).text == text


def nested(source: str, body: str, depth: int) -> str:
    """Loops of one round each, whose variables stand for larger and larger values."""
    text, inner = body.format(f"v{depth}"), ["args.s", *(f"v{level}" for level in range(1, depth + 1))]
    for level in range(depth, 0, -1):
        text = f"{source.format(inner[level - 1])}.exists({inner[level]}, {text})"
    return text


LONG = {"s": "a" * 30_000, "n": "a" * 15_000 + "b", "l": [0] * 60}
MANY = {"l": list(range(9_000))}


@pytest.mark.promise("P7")
@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("args.s.matches('^(a+)+$')", {"s": "a" * 60_000 + "!"}),
        ("args.s.matches('" + ".{0,99}" * 3 + "b')", {"s": "é" * 3_000}),
        ("args.s.matches('" + "[^b]{0,999}" + "b')", {"s": "é" * 1_500}),
        ("args.s.matches('" + ".{0,999}" * 5 + "b')", {"s": "é" * 300}),
        ("args.s.matches('" + "(.*a?)+" * 20 + "b')", {"s": "é" * 10_000}),
        ("args.l.exists(x, args.s.contains(args.n))", LONG),
        (" && ".join(["!args.s.contains(args.n)"] * 70), LONG),
        ("(" + "+".join(["args.s"] * 28) + ").contains(" + "+".join(["args.s"] * 14) + " + 'b')", LONG),
        ("args.l.exists(x, (args.l + args.l + args.l).size() < 0)", MANY),
        ("args.l.exists(x, (args.l + args.l + args.l).size() < 0)", {"l": MANY["l"][:450]}),
        (
            "(" + "+".join(["args.l"] * 20) + ").exists(x, (" + "+".join(["args.l"] * 20) + ").size() < 0)",
            {"l": [0] * 90},
        ),
        ("args.l.all(a, args.l.all(b, args.l.all(c, a + b + c >= 0)))", {"l": [0] * 150}),
        ("args.l.filter(a, args.l.filter(b, args.l == args.l) == []) == []", {"l": [0] * 100}),
        ("[" + "0," * 300 + "].all(a, [" + "0," * 300 + "].all(b, tool.matches('" + "(.*a?)+" * 50 + "b')))", 1),
        (nested("[[{0},{0},{0},{0},{0},{0}]]", "{0} == {0}", 6), {"s": "a"}),
        (nested("[{0}+{0}+{0}+{0}+{0}+{0}]", "size({0}) < 0", 6), {"s": "a" * 1000}),
        (nested("[[{0},{0},{0},{0},{0},{0},{0},{0}]]", "{0} == {0}", 2), {"s": "a" * 1000}),
        ("[" + "0," * 200 + "].all(a, [" + "0," * 200 + "].all(b, args.s.contains(args.n)))", LONG),
        ("// '''\nargs.l.all(a, args.l.all(b, !args.s.contains(args.n))) // '''", LONG),
    ],
)
def test_expensive_condition_fails_within_its_limit(text: str, args: Any) -> None:
    began = time.process_time()
    with suppress(ConditionFailed):
        holds(text, args)
    assert time.process_time() - began < PATIENCE


def test_control_without_the_limit_the_condition_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a tenth of the list that is refused above takes a hundredth of its time, and that is seen."""
    text, args = "args.l.exists(x, (args.l + args.l + args.l).size() < 0)", {"l": MANY["l"][:900]}
    with pytest.raises(ConditionFailed, match="too large"):
        holds(text, args)
    monkeypatch.setattr(conditions, "MAX_WORK", 10**18)
    began = time.process_time()
    assert not holds(text, args)
    assert time.process_time() - began > 0.02


@pytest.mark.parametrize(
    ("text", "loops", "nesting"),
    [
        ("args.a == 'x.all(y, true)'", 0, 0),
        ("args.a.all(x, true) && args.b . exists (x, (x == 1))", 2, 1),
        ("args.a.all(x, x.b.filter(y, y.c.exists(z, z)).size() > 0)", 3, 3),
    ],
)
def test_loops_count_against_the_limit(text: str, loops: int, nesting: int) -> None:
    condition = conditions.compile(text)
    assert (condition.loops, condition.nesting) == (loops, nesting)


def test_usual_calls_are_within_the_limits() -> None:
    mail = {"to": [f"person{n}@example.com" for n in range(100)], "subject": "News", "body": "x" * 10_000}
    assert holds("args.to.all(a, a.endsWith('@example.com')) && args.subject != ''", mail)


def test_one_condition_serves_many_threads() -> None:
    condition = conditions.compile("args.l.exists(x, x == args.n)")
    wrong: list[int] = []

    def ask(number: int) -> None:
        for _ in range(200):
            if condition.holds(seen({"l": [1, 2, 3], "n": number})) is not (number < 4):
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_library_is_loaded_only_for_conditions() -> None:
    code = "import sys, assent.review.model.policies; sys.exit('cel_expr_python' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
