"""SQL statements, with cautions about statements that affect many rows.

Statements are matched by patterns, not parsed, because SQL dialects differ. A false caution is cheaper than a missed
one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assent.kernel.canonical import Json
from assent.review.model.calls.arguments import Args, first, text
from assent.review.model.calls.cautions import Caution
from assent.review.model.policies import Risk

EXAMINED = 50_000
_MOST_UNOPENED = 20
TEXTS = ("sql", "query", "statement", "statements", "migration")
_NAMES = re.compile(r"(?i)sql|migrat|database|(?:^|_)db(?:_|$)|run_?query|execute_?query")
_BEGINS = re.compile(
    r"\s*+(?>(?>--[^\n]*+\n|/\*.{0,2000}?\*/)\s*+){0,20}+"  # atomic: a comment ends at its first end
    r"(?:select|insert|update|delete|merge|create|alter|drop|truncate|with|begin|grant|revoke|replace|call|do|explain)\b",
    re.IGNORECASE | re.DOTALL,
)
_QUOTED = re.compile(r"'(?:[^']|'')*(?:'|\Z)|--[^\n]*|/\*(?!!).*?(?:\*/|\Z)", re.DOTALL)
_BACKSLASHED = re.compile(r"'(?:[^'\\]|\\.)*(?:'|\Z)|--[^\n]*|/\*(?!!).*?(?:\*/|\Z)", re.DOTALL)
_WHERE = re.compile(r"\bWHERE\b(?!\s+(?:1\s*=\s*1|TRUE)\s*(?:;|$))", re.IGNORECASE)
_DELETES = re.compile(r"\bDELETE\b(?=\s+FROM\b|\s+\w+\s+FROM\b)", re.IGNORECASE)
_UPDATES = re.compile(r"(?<!DO )\bUPDATE\b(?! CASCADE\b)", re.IGNORECASE)
_SETS = re.compile(r"\bSET\b", re.IGNORECASE)
_ALWAYS = (
    (re.compile(r"\bDROP\s+[A-Z]+\b", re.IGNORECASE), "Deletes a database object permanently (DROP)."),
    (re.compile(r"\bTRUNCATE\b", re.IGNORECASE), "Empties a table (TRUNCATE)."),
    (re.compile(r"\b(?:GRANT|REVOKE)\s+[A-Z]+\b", re.IGNORECASE), "Changes permissions (GRANT, REVOKE)."),
)
_TOO_LONG = "Too long to check completely."


def talks_sql(name: str, args: Args) -> bool:
    return bool(_NAMES.search(name)) and bool(_BEGINS.match(statement(args)))


def statement(args: Args) -> str:
    sql: Json = first(args, *TEXTS)
    if isinstance(sql, list) and sql and all(isinstance(line, str) for line in sql):
        return ";\n".join(line.rstrip().removesuffix(";") for line in sql)
    return text(args, *TEXTS)


def cautions(statement: str) -> list[Caution]:
    examined = statement[:EXAMINED]
    warnings = {_TOO_LONG: ""} if len(statement) > EXAMINED else {}
    for pattern, warning in _ALWAYS:
        if match := pattern.search(examined):
            warnings[warning] = _excerpt(examined[match.start() :])
    for quoted in (_QUOTED, _BACKSLASHED):
        warnings |= dict(_unbounded(quoted.sub(" '' ", examined)))
    return [Caution(warning, excerpt, Risk.HIGH) for warning, excerpt in warnings.items()]


def _unbounded(code: str) -> Iterator[tuple[str, str]]:
    if _is_odd(code):
        yield _TOO_LONG, ""
    for part in _parts(code):
        if _WHERE.search(part):
            continue
        if match := _DELETES.search(part):
            yield "Deletes every row: no WHERE clause (DELETE).", _excerpt(part[match.start() :])
        match = _UPDATES.search(part)
        if match and _SETS.search(part, match.end()):
            yield "Changes every row: no WHERE clause (UPDATE).", _excerpt(part[match.start() :])


def _parts(code: str) -> Iterator[str]:
    """Splits code into statements. Parenthesised code is a separate part, so that its WHERE does not count for the
    rest. A closing parenthesis without a match may be part of a name: the code before it is checked alone and with the
    rest."""
    levels: list[list[str]] = [[]]
    unopened = 0
    for piece in re.split(r"([()])", code):
        if piece == "(":
            levels.append([])
        elif piece == ")":
            unopened += len(levels) == 1
            if len(levels) > 1:
                yield from _statements(levels.pop())
            elif unopened <= _MOST_UNOPENED:
                yield from _statements(levels[0])
            levels[-1].append(" () ")
        else:
            levels[-1].append(piece)
    for level in levels:
        yield from _statements(level)


def _is_odd(code: str) -> bool:
    """Whether there are too many unmatched closing parentheses to check."""
    depth = unopened = 0
    for mark in re.findall(r"[()]", code):
        depth += 1 if mark == "(" else -1
        if depth < 0:
            depth, unopened = 0, unopened + 1
    return unopened > _MOST_UNOPENED


def _statements(pieces: list[str]) -> Iterator[str]:
    return (" ".join(statement.split()) for statement in "".join(pieces).split(";"))


def _excerpt(code: str) -> str:
    line = " ".join(code[:200].split())
    return line if len(line) <= 80 else f"{line[:79]}…"
