"""JSON columns as text: orjson where it is exact, the standard library for integers beyond 64 bits."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson
from sqlalchemy.util import await_only

from assent.kernel.canonical import has_digits
from assent.kernel.fair_threads import alone

_READ_AT_ONCE = 128 * 1024


def dump(value: Any, *, default: Callable[[Any], Any] | None = None) -> str:
    """`default` writes what is not JSON."""
    try:
        return orjson.dumps(value, default=default).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=default)


def load_beside_loop(text: bytes) -> Any:
    """For a function that runs in a greenlet on the event loop: parses a large text in a thread."""
    if len(text) <= _READ_AT_ONCE:
        return load(text)
    return await_only(alone(load, text))


def load(text: str | bytes) -> Any:
    """orjson reads an integer beyond 64 bits as a float; only a text with 19 digits in a row can hold one. Any text
    that cannot be read is a `ValueError`, also one that is nested too deep."""
    if not has_digits(text, 19):
        return orjson.loads(text)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
