"""Output of commands: tables for people, JSON for scripts, one line for an error. Texts in them are escaped: agents and
other servers wrote some of them. Exit codes are documented in docs/cli.md, which a test compares with `EXIT_CODES`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from assent.errors import (
    AssentError,
    AuditBroken,
    BadRequest,
    ConfigError,
    Conflict,
    Forbidden,
    HandlerRefused,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from assent.surfaces.cli.escapes import escaped

if TYPE_CHECKING:
    from rich.console import Console

UNBOUNDED = 10_000
"""The width of a table in a pipe, so that each row is one line."""

EXIT_CODES: dict[type[AssentError], int] = {
    ConfigError: 3,
    Invalid: 2,
    BadRequest: 2,
    Unauthenticated: 4,
    Forbidden: 4,
    HandlerRefused: 4,
    NotFound: 5,
    Conflict: 6,
    TooManyRequests: 7,
    Unavailable: 7,
    AuditBroken: 8,
    AssentError: 1,
}


def fail(error: AssentError) -> int:
    """Prints an error as one line on stderr, with the hint below it. Returns the exit code."""
    console = _console(stderr=True)
    console.print(f"assent: {escaped(' '.join(error.message.split()))}", style="red")
    if error.hint:
        console.print(f"  {_escaped_lines(error.hint)}")
    return next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))


def emit(value: Any) -> None:
    """Prints JSON for scripts. The escapes are valid JSON, so the value is the same."""
    say(_escaped_lines(json.dumps(value, indent=2, ensure_ascii=False, default=_plain)))


def say(text: str = "", *, to_stderr: bool = False) -> None:
    print(text, file=sys.stderr if to_stderr else sys.stdout, flush=True)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, empty: str) -> None:
    """Prints rows as a table; without rows, the sentence `empty`."""
    if not rows:
        return say(empty)
    from rich.table import Table

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column.replace("_", " "), overflow="fold", no_wrap=column.split("_")[-1] == "id")
    for row in rows:
        grid.add_row(*(_cell(row[column]) for column in columns))
    console = _console()
    if not sys.stdout.isatty():
        console.width = UNBOUNDED
    console.print(grid, soft_wrap=False)


def _console(*, stderr: bool = False) -> Console:
    """Prints text verbatim, without markup or emoji. The import is local because servers do not need it."""
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, (list, tuple)):
        return escaped(" ".join(map(str, value)))
    return "" if value is None else escaped(str(value))


def _escaped_lines(text: str) -> str:
    return "\n".join(map(escaped, text.split("\n")))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value)
