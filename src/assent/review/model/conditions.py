"""Conditions of policies: short CEL expressions over a call that an agent wants to make.

CEL has no unbounded loops, no clock and no I/O, but its input comes from an agent: evaluation must not be slow or
exploitable. Hence the limits: a condition is checked and typed when it is written, a regular expression is a literal
(and runs in linear time), and the amount of work is estimated before it runs. Every failure is `ConditionFailed`, and
the caller decides the safe default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from assent.kernel import canonical
from assent.kernel.canonical import Json

MAX_TEXT = 2_000
MAX_ARGS_BYTES = 64 * 1024
MAX_WORK = 250_000_000
"""Weight of the condition × bytes of the call × rounds of its loops; measured, this is about a second at worst."""

_PATTERN_WEIGHT = 60  # cost of a regular expression step relative to others
_WITHOUT_MAP = "stdlib: {exclude_macros: [map]}"  # a chain of map(a, [a, a]) doubles its value at every step
MAX_ROUNDS = 10_000  # the library's own limit

_RAW = r"""[rR](?:\'\'\'(?s:.*?)\'\'\'|\"\"\"(?s:.*?)\"\"\"|'[^'\r\n]*'|"[^"\r\n]*")"""
_LONG = r"""\'\'\'(?s:\\.|[^\\])*?\'\'\'|\"\"\"(?s:\\.|[^\\])*?\"\"\""""
_SHORT = r"""'(?:\\.|[^'\\\r\n])*'|"(?:\\.|[^"\\\r\n])*\""""
_STRING = f"(?:{_RAW}|{_LONG}|{_SHORT})"
_STRING_OR_COMMENT = re.compile(rf"({_STRING})|//[^\r\n]*")
_MATCHES = re.compile(r"\bmatches\s*\((?:\s*'(\d+)'\s*\))?")
_LOOP_OR_BRACKET = re.compile(r"\.\s*(?:all|exists|exists_one|filter)\s*\(|[()]")
_LONGEST_REASON = 300
_CODES = re.compile(r"^[A-Z_]+: |\s*\[[A-Z_]+\]$")
_QUOTED = re.compile(r"'(?:.*'|.*)", re.DOTALL)
_KEY = re.compile(r'"(.*?)"?\Z', re.DOTALL)
_POSITION = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?: expecting \{.*)?$", re.MULTILINE)


class InvalidCondition(ValueError):
    """The text is not a valid condition; `line` and `column` locate the error, if possible."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        self.reason, self.line, self.column = reason, line, column
        super().__init__(f"line {line}, column {column}: {reason}" if line else reason)


class ConditionFailed(Exception):
    """The condition has no result for this call."""


@dataclass(frozen=True, slots=True)
class Variables:
    """The input of conditions, measured once for all of them. `fault` is the reason why no condition may read it."""

    values: dict[str, Json]
    size: int
    longest: int
    fault: str | None = None


def variables(args: Json, *, tool: str, graph: str, agent: str, tenant: str) -> Variables:
    values = {"args": args, "tool": tool, "graph": graph, "agent": agent, "tenant": tenant}
    try:
        written = canonical.text(values)
    except canonical.NotJson as error:
        return Variables({}, 0, 0, f"the call is not JSON: {error}")
    size = len(written.encode())
    if size > MAX_ARGS_BYTES:
        return Variables({}, size, 0, f"the call is longer than {MAX_ARGS_BYTES} bytes, the limit for conditions")
    if "\\u0000" in written:  # the library truncates a text there
        return Variables({}, size, 0, "the call contains a NUL character")
    return Variables(values, size, max(map(len, _containers(args)), default=0))


def _containers(value: Json) -> Iterator[Any]:
    if isinstance(value, (dict, list, tuple)):
        yield value
        for child in value.values() if isinstance(value, dict) else value:
            yield from _containers(child)


@dataclass(frozen=True, slots=True)
class Condition:
    text: str
    weight: int
    loops: int
    nesting: int
    program: Any

    def holds(self, given: Variables) -> bool:
        """Whether the condition is true for the call; raises `ConditionFailed` if it cannot be evaluated."""
        if given.fault:
            raise ConditionFailed(given.fault)
        if self.weight * given.size * self._rounds(given.longest) > MAX_WORK:
            raise ConditionFailed("the call is too large for this condition")
        try:
            result = self.program.eval(data=given.values)
        except Exception as error:  # noqa: BLE001 - any library error on hostile arguments means no result
            raise ConditionFailed(_discreet(error, self.text)) from None
        return _truth(result, self.text)

    def _rounds(self, longest: int) -> int:
        """The maximum number of loop iterations over lists of the call."""
        return int(min(self.loops * max(longest, 1) ** min(self.nesting, 4), MAX_ROUNDS)) if self.loops else 1


@lru_cache(maxsize=1024)
def compile(text: str) -> Condition:
    """The checked and compiled condition; raises `InvalidCondition` with the error and its position."""
    if len(text) > MAX_TEXT:
        raise InvalidCondition(f"must be at most {MAX_TEXT} characters long")
    if not text.strip() or "\0" in text or canonical.has_surrogate(text):
        raise InvalidCondition("must be a CEL expression, such as args.amount > 100")
    program = _program(text)
    if program.return_type().name() not in ("BOOL", "DYN"):
        raise InvalidCondition("must be true or false, such as args.amount > 100")
    outline, strings = _outline(text)
    loops, nesting = _count_loops(outline)
    weight = len(text) + _PATTERN_WEIGHT * sum(map(_pattern_size, _patterns(outline, strings)))
    return Condition(text, weight * _growth(outline, nesting), loops, nesting, program)


@cache
def _environment() -> Any:
    from cel_expr_python import cel  # type: ignore[import-untyped]  # lazy: 14 MB

    texts = dict.fromkeys(("tool", "graph", "agent", "tenant"), cel.Type.STRING)
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_WITHOUT_MAP), variables={"args": cel.Type.DYN, **texts})


def _program(text: str) -> Any:
    try:
        return _environment().compile(text)
    except RuntimeError as error:
        match = _POSITION.search(str(error))
        if match and int(match[1]) > 0:
            raise InvalidCondition(match[3], int(match[1]), int(match[2])) from None
        raise InvalidCondition(match[3] if match else _reason(error)) from None


def _truth(result: Any, text: str) -> bool:
    kind = result.type().name()
    if kind == "BOOL":
        return bool(result.value())
    raise ConditionFailed(_discreet(result.value(), text) if kind == "ERROR" else "the result is not true or false")


def _outline(text: str) -> tuple[str, list[str]]:
    """The text without comments and with a number for every string, and the strings as written."""
    strings: list[str] = []

    def numbered(match: re.Match[str]) -> str:
        if not match[1]:
            return ""
        strings.append(match[1])
        return f"'{len(strings) - 1}'"

    return _STRING_OR_COMMENT.sub(numbered, text), strings


def _patterns(outline: str, strings: list[str]) -> Iterator[str]:
    """The regular expressions. A dynamic pattern could be made slow, so it is refused; a literal is compiled now."""
    for number in _MATCHES.findall(outline):
        if not number:
            raise InvalidCondition("matches takes its pattern as a literal: args.to.matches('^[a-z]+$')")
        tried = _program(f"''.matches({strings[int(number)]})").eval(data={})
        if tried.type().name() == "ERROR":
            raise InvalidCondition(_reason(tried.value()))
        yield strings[int(number)]


def _pattern_size(literal: str) -> int:
    """The approximate steps per character. Even in linear time, ((a{30}){30}){30} takes too many."""
    if re.search(r"\)\s*\{|\\[pPuUxX0-7]", literal):
        raise InvalidCondition("a pattern cannot repeat groups, as in (ab){3}, nor use \\p or character codes")
    return len(literal) + sum(int(count) for count in re.findall(r"\d+", literal))


def _growth(outline: str, nesting: int) -> int:
    """The factor by which a value can outgrow the call: a + a is twice as long, and a loop over [a + a, a] repeats that
    for its variable."""
    sums, parts = outline.count("+"), outline.count(",")
    return int((1 + sums) * (1 + sums + parts) ** nesting)


def _count_loops(text: str) -> tuple[int, int]:
    """The number of loops, and their nesting depth."""
    open_brackets: list[bool] = []
    loops = deepest = 0
    for match in _LOOP_OR_BRACKET.finditer(text):
        if match[0] == ")":
            del open_brackets[-1:]
            continue
        open_brackets.append(match[0] != "(")
        loops += open_brackets[-1]
        deepest = max(deepest, sum(open_brackets))
    return loops, deepest


def _reason(error: object) -> str:
    return _without_codes(error)[:_LONGEST_REASON]


def _discreet(error: object, text: str) -> str:
    """Removes the quoted parts, which may be a secret from the arguments, before it shortens the rest; an open one runs
    to the end. The name of a key that the condition itself contains stays."""

    def known(match: re.Match[str]) -> str:
        named = re.search(rf"(?<!\w){re.escape(match[1])}(?!\w)", text)
        return match[0] if match[1] and named else '"…"'

    return _KEY.sub(known, _QUOTED.sub("'…'", _without_codes(error)))[:_LONGEST_REASON]


def _without_codes(error: object) -> str:
    return _CODES.sub("", str(error).strip())
