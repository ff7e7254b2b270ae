"""Graph values as JSON: messages, models, dataclasses and the rest, once, in the shape LangGraph's clients read."""

from __future__ import annotations

import dataclasses
import json
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

_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS


def dump(value: Any) -> bytes:
    """One line of JSON. Integers beyond 64 bits stay exact, which orjson alone cannot do."""
    try:
        return orjson.dumps(value, default=_plain, option=_OPTIONS)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(_walk(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def plain(value: Any) -> Any:
    """The same value made of JSON types only."""
    return json.loads(dump(value))


def _plain(value: Any) -> Any:  # noqa: C901 - one line per kind of value
    if hasattr(value, "model_dump") and callable(value.model_dump):
        return value.model_dump()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        # Older clients build their `Interrupt` from exactly what they get, and it has no such field there.
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
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (Decimal, UUID, PurePath, Pattern)):
        return str(getattr(value, "pattern", value))
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    return repr(value)


def _walk(value: Any) -> Any:
    """The slow way, for what orjson refuses: huge integers, lone surrogates, keys of other types."""
    if value is None or isinstance(value, bool) or type(value) in (int, str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None  # as orjson writes it
    if isinstance(value, dict):
        return {str(key): _walk(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_asdict"):
        return [_walk(item) for item in value]
    return _walk(_plain(value))
