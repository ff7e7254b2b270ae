"""Structured logs: one line per fact, as text for people or JSON for machines, each with its request's id.

Callers choose parts of what is logged (a path, a name), so nothing in a value can end its line or pass for a fact of
its own: what is not plain is quoted and escaped, and the lines of a traceback are indented.
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

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}
_BARE = re.compile(r'[^\s"=]+')


def configure(level: str, style: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for noisy in ("uvicorn.access", "httpx", "httpcore", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {"at": _at(record), "level": record.levelname.lower(), "logger": record.name}
        line |= {"message": record.getMessage(), **_facts(record)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{name}={_quoted(value)}" for name, value in _facts(record).items())
        line = f"{_at(record)} {record.levelname.lower():7} {_one_line(record.getMessage())} {facts}".rstrip()
        if not record.exc_info:
            return line
        trace = (f"    {_one_line(part)}" for part in self.formatException(record.exc_info).splitlines())
        return "\n".join((line, *trace))


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    facts = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    current = request_id.get()
    return {**facts, "request_id": current} if current else facts


def _quoted(value: Any) -> str:
    text = str(value)
    return text if text.isprintable() and _BARE.fullmatch(text) else json.dumps(text)


def _one_line(text: str) -> str:
    """The text with line ends, control and invisible characters written out."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _at(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
