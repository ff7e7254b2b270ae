"""Statements to a database, and those among them that touch more than a few rows.

A statement is not parsed, because every database reads it differently: a caution too many costs a look, one too few
costs a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from assent.domain.canonical import Json
from assent.web.language import gettext as _
from assent.web.renderers.blocks import Caution, Code, Facts, Rendering
from assent.web.renderers.reading import View, call, first, only, others, text
from assent.web.renderers.registry import renders

EXAMINED = 50_000
_TEXTS = ("sql", "query", "statement", "statements", "migration")
_PARAMETERS = ("parameters", "params", "values")
_NAMES = re.compile(r"(?i)sql|migrat|database|(?:^|_)db(?:_|$)|run_?query|execute_?query")
_BEGINS = re.compile(
    r"\s*(?:(?:--[^\n]*\n|/\*.{0,2000}?\*/)\s*){0,20}"
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
    (re.compile(r"\bDROP\s+[A-Z]+\b", re.IGNORECASE), "It removes something for good (DROP)."),
    (re.compile(r"\bTRUNCATE\b", re.IGNORECASE), "It empties a table (TRUNCATE)."),
    (re.compile(r"\b(?:GRANT|REVOKE)\s+[A-Z]+\b", re.IGNORECASE), "It changes who may do what (GRANT, REVOKE)."),
)


def talks_sql(item: View) -> bool:
    name, args = call(item)
    return bool(_NAMES.search(name)) and bool(_BEGINS.match(_statement(args)))


@renders("sql", "sql_migration", label="SQL", icon="database", matches=talks_sql)
def sql(item: View) -> Rendering | None:
    args = only(item)
    statement = _statement(args)
    if not statement:
        return None
    facts = {"Parameters": first(args, *_PARAMETERS), **others(args, _TEXTS, _PARAMETERS)}
    return Rendering(*cautions(statement), Code(statement, "SQL"), Facts(facts))


def cautions(statement: str) -> list[Caution]:
    examined = statement[:EXAMINED]
    found = {told: "" for told in (_("It is too long to be examined to its end."),) if len(statement) > EXAMINED}
    for pattern, told in _ALWAYS:
        if match := pattern.search(examined):
            found[told] = _excerpt(examined[match.start() :])
    for quoted in (_QUOTED, _BACKSLASHED):
        found |= dict(_unbounded(quoted.sub(" '' ", examined)))
    return [Caution(told, where) for told, where in found.items()]


def _unbounded(code: str) -> Iterator[tuple[str, str]]:
    for part in _parts(code):
        if _WHERE.search(part):
            continue
        if match := _DELETES.search(part):
            yield "It deletes every row: there is no WHERE (DELETE).", _excerpt(part[match.start() :])
        match = _UPDATES.search(part)
        if match and _SETS.search(part, match.end()):
            yield "It changes every row: there is no WHERE (UPDATE).", _excerpt(part[match.start() :])


def _parts(code: str) -> Iterator[str]:
    """Statement by statement; what stands in parentheses is a part of its own, whose WHERE is not that of the rest."""
    levels: list[list[str]] = [[]]
    for piece in re.split(r"([()])", code):
        if piece == "(":
            levels.append([])
        elif piece == ")":
            yield from _statements(levels.pop() if len(levels) > 1 else levels[0])
            levels[-1].append(" () ")
        else:
            levels[-1].append(piece)
    for level in levels:
        yield from _statements(level)


def _statements(pieces: list[str]) -> Iterator[str]:
    return (" ".join(one.split()) for one in "".join(pieces).split(";"))


def _excerpt(code: str) -> str:
    line = " ".join(code[:200].split())
    return line if len(line) <= 80 else f"{line[:79]}…"


def _statement(args: View) -> str:
    found: Json = first(args, *_TEXTS)
    if isinstance(found, list) and found and all(isinstance(one, str) for one in found):
        return ";\n".join(one.rstrip().removesuffix(";") for one in found)
    return text(args, *_TEXTS)
