"""Graph values as JSON: messages, models, dataclasses and other types, in the shape that LangGraph's clients read.

Every value of a graph's state has a JSON text; a value that cannot be shown is replaced by a description.
"""

from __future__ import annotations

import dataclasses
import json
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import PurePath
from re import Pattern
from typing import Any
from uuid import UUID

import orjson

from assent.kernel import jsontext
from assent.kernel.canonical import TOO_LONG

_DEEPEST = 200  # below the limit of Python's stack, above that of a question to a person
_MESSAGES = "langchain_core.messages."
"""LangChain's own messages have no other serialization than their fields, and conversations have thousands of them."""
_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS


def dump(value: Any) -> bytes:
    """One line of JSON. Integers beyond 64 bits stay exact, which orjson alone cannot do."""
    try:
        return orjson.dumps(value, default=_plain, option=_OPTIONS)
    except (TypeError, orjson.JSONEncodeError):
        shown = _Walk().visit(value)
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def plain(value: Any) -> Any:
    """The same value made of JSON types only."""
    return jsontext.load(dump(value))


def texts(value: Any) -> Any:
    """The same value for `dump`, `plain` and `jsontext.dump`: a dict has JSON texts instead of its values, which are
    not parsed and written again each time."""
    if type(value) is not dict or not all(type(key) is str for key in value):
        return plain(value)
    try:
        return {
            key: orjson.Fragment(orjson.dumps(item, default=_plain, option=_OPTIONS)) for key, item in value.items()
        }
    except (TypeError, orjson.JSONEncodeError):
        return plain(value)


def _plain(value: Any) -> Any:  # noqa: C901 - one line per kind of value
    if type(value).__module__.startswith(_MESSAGES) and hasattr(value, "__pydantic_extra__"):
        extra = value.__pydantic_extra__
        return value.__dict__ | extra if extra else value.__dict__
    if hasattr(value, "model_dump") and callable(value.model_dump):
        return value.model_dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        # Older clients build their `Interrupt` from exactly these fields, and it has no such field there.
        return {name: item for name, item in fields.items() if name != "response_schema" or item is not None}
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset, deque, tuple, list)):
        return list(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID, PurePath, Pattern)):
        return str(getattr(value, "pattern", value))
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    return repr(value)


class _Walk:
    """The slow path, for values that orjson refuses: huge integers, lone surrogates, keys of other types, cycles,
    values that raise when they are read."""

    def __init__(self) -> None:
        self._above: list[int] = []

    def visit(self, value: Any) -> Any:
        if value is None or isinstance(value, bool) or type(value) is str:
            return value
        if type(value) is int:
            return value if abs(value) < TOO_LONG else f"<an integer of {value.bit_length()} bits>"
        if isinstance(value, float):
            return value if isfinite(value) else None  # as orjson writes it
        if id(value) in self._above:
            return "<contains itself>"
        if len(self._above) >= _DEEPEST:
            return "<nested too deep>"
        self._above.append(id(value))
        try:
            return self._inside(value)
        except Exception as error:  # noqa: BLE001 - an author's class can raise anything when it is read
            return f"<{type(value).__name__}: {type(error).__name__} when it was read>"
        finally:
            self._above.pop()

    def _inside(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {str(key): self.visit(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
            return [self.visit(item) for item in value]
        return self.visit(_plain(value))
