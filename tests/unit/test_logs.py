"""Log lines: one per fact, each with its request's id, and nothing that a caller chose can forge another."""

import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent import logs

TEXT, JSON = logs.TextLines(), logs.JsonLines()
NASTY = "x\n2026-11-15T00:00:00.000+00:00 info    request status=200\r\x1b[2J\u2028\u0085\u202e"


def record(message: str = "request", **facts: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": message, "name": "assent", "levelno": 20, "levelname": "INFO", **facts})
    made.created = 0.0
    return made


def failure(text: str) -> logging.LogRecord:
    try:
        raise RuntimeError(text)
    except RuntimeError:
        return record("unhandled error", exc_info=sys.exc_info())


def test_text_format_writes_one_line_with_fields() -> None:
    line = TEXT.format(record(path="/api/me", status=200))
    assert line == "1970-01-01T00:00:00.000+00:00 info    request path=/api/me status=200"


def test_json_format_writes_one_object_with_fields() -> None:
    assert json.loads(JSON.format(record(path="/api/me", status=200))) == {
        "at": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "logger": "assent",
        "message": "request",
        "path": "/api/me",
        "status": 200,
    }


@pytest.mark.parametrize("style", [TEXT, JSON])
def test_the_request_id_is_in_every_line_of_its_request(style: logging.Formatter) -> None:
    token = logs.request_id.set("r-1")
    try:
        assert "r-1" in style.format(record())
    finally:
        logs.request_id.reset(token)
    assert "r-1" not in style.format(record())


@pytest.mark.parametrize("style", [TEXT, JSON])
@given(text=st.text())
def test_value_with_a_line_break_stays_on_its_line(style: logging.Formatter, text: str) -> None:
    for line in (style.format(record(text)), style.format(record(path=text))):
        assert line.isprintable()
        assert len(line.splitlines()) == 1


@given(text=st.text())
def test_value_that_looks_like_a_field_is_quoted(text: str) -> None:
    line = TEXT.format(record(path=text, status=500))
    before, _, value = line.rpartition(" status=500")[0].partition("path=")
    assert value == text if "=" not in text and '"' not in value else json.loads(value) == text
    assert before.endswith("request ")


def test_control_plain_formatting_is_forged() -> None:
    assert len(logging.Formatter("%(message)s").format(record(NASTY)).splitlines()) > 1
    assert len(TEXT.format(record(NASTY)).splitlines()) == 1


def test_lines_of_a_traceback_are_distinct_from_log_lines() -> None:
    first, *trace = TEXT.format(failure(NASTY)).split("\n")
    assert first.endswith("unhandled error")
    assert len(trace) > 2
    assert all(line.startswith("    ") and line.isprintable() for line in trace)
    assert "RuntimeError" in json.loads(JSON.format(failure("x")))["traceback"]
