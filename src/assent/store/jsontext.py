"""JSON columns as text: orjson where it is exact, the standard library for integers beyond 64 bits."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_DIGITS = re.compile(r"\d{19}")


def dump(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def load(text: str | bytes) -> Any:
    return json.loads(text) if _has_big_integer(text) else orjson.loads(text)


def _has_big_integer(text: str | bytes) -> bool:
    """orjson reads an integer beyond 64 bits as a float; only a text with 19 digits in a row can hold one."""
    return len(text) > 18 and _DIGITS.search(text if isinstance(text, str) else text.decode()) is not None
