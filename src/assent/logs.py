"""Structured logs: one line per record, as text for people or JSON for machines, each with its request's id.

Callers choose parts of a log line (a path, a name), so a value must not end its line or fake another field: special
characters are quoted and escaped, and the lines of a traceback are indented.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "color_message",
    "taskName",
    "traceback",
}
_BARE = re.compile(r'[^\s"=]+')


def configure(level: str, style: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for noisy in ("uvicorn.access", "httpx", "httpcore", "alembic", "watchfiles"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"at": _at(record), "level": record.levelname.lower(), "logger": record.name}
        line |= {"message": record.getMessage(), **_facts(record)}
        if trace := _trace(self, record):
            line["traceback"] = trace
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{name}={_quoted(value)}" for name, value in _facts(record).items())
        line = f"{_at(record)} {record.levelname.lower():7} {_one_line(record.getMessage())} {facts}".rstrip()
        trace = (f"    {_one_line(part)}" for part in _trace(self, record).splitlines())
        return "\n".join((line, *trace))


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """The caller's own traceback text, without secrets, or Python's."""
    written = getattr(record, "traceback", None)
    if isinstance(written, str):
        return written
    return formatter.formatException(record.exc_info) if record.exc_info else ""


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    facts = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    current = request_id.get()
    return {**facts, "request_id": current} if current else facts


def _quoted(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and _BARE.fullmatch(text) else json.dumps(text)


def _one_line(text: str) -> str:
    """The text with line ends, control and invisible characters escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
