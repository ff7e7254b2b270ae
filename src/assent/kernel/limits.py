"""Limits of one tenant, and of the size of a question, a stored document and an answer.

Threads and stored bytes are counted in the background, because counting is slow: `Usage` is the result of the last
count, plus the threads that this process has created since.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from assent.errors import Invalid, TooLarge
from assent.kernel import canonical

MOST_ITEM_VALUES = 10_000
MOST_QUESTIONS = 500
"""Of one thread at a time."""
_IN_SUM = 4
"""How many questions of the largest size a thread can ask at a time."""
MOST_LISTED = 100
"""The maximum of runs, history entries or similar parts that one request returns."""

FILTER_KEY = re.compile(r'[^"\\\x00-\x1f]{0,1000}')
"""A key in a filter on JSON: any that a path of SQLite can name."""

_SMALL_VALUES, _SMALL_CHARACTERS = 500, 16_000
SMALL_BYTES = 128 * 1024
"""The upper bound of the JSON bytes of a value for which `is_small` is true, however its characters are escaped."""
_SCALARS = (int, float, datetime, type(None))


@dataclass(frozen=True, slots=True)
class Limits:
    item_bytes: int = 256 * 1024
    document_bytes: int = 256 * 1024
    answer_bytes: int = 8 * 1024**2
    threads: int = 1_000_000
    pending_items: int = 10_000
    stored_bytes: int = 50 * 1024**3
    active_runs: int = 10_000
    crons: int = 1_000

    def flaw(self, asked: str) -> str | None:
        """Why this JSON text is too large for a question, or None."""
        size = len(asked) if asked.isascii() else len(asked.encode())
        if size > self.item_bytes:
            return f"{size} bytes; a question can have at most {self.item_bytes} (max_item_bytes)"
        if canonical.has_more_values(asked, MOST_ITEM_VALUES):
            return f"more than {MOST_ITEM_VALUES} values, which is too many to show to a person"
        return None

    def flaw_in_sum(self, asked: Sequence[str]) -> str | None:
        """The same for all questions of one stop: one transaction stores their items."""
        if len(asked) > MOST_QUESTIONS:
            return f"{len(asked)} questions at once; a thread can ask at most {MOST_QUESTIONS}"
        together = f"[{','.join(asked)}]"
        if len(together) > _IN_SUM * self.item_bytes:
            return f"{len(together)} characters in all questions together, {_IN_SUM} times max_item_bytes at most"
        if canonical.has_more_values(together, _IN_SUM * MOST_ITEM_VALUES):
            return f"more than {_IN_SUM * MOST_ITEM_VALUES} values in all questions together"
        return None

    def require_document(self, name: str, size: int) -> None:
        """`size` is that of the JSON text. A document is read with every list or run of its object."""
        if size > self.document_bytes:
            raise TooLarge(
                f"{name}: {size} bytes as JSON; this server stores at most {self.document_bytes}",
                hint="store less, or ask the operator to raise max_document_bytes",
                field=name,
                size=size,
                limit=self.document_bytes,
                setting="max_document_bytes",
            )

    def require_answer(self, size: int, rows: int, *, hint: str) -> None:
        """`size` is that of all documents on a page. A page of one row is always allowed."""
        if rows > 1 and size > self.answer_bytes:
            raise Invalid(
                f"the answer would hold {size} bytes of documents; the limit is {self.answer_bytes}",
                hint=f"{hint}; the setting is max_answer_bytes",
                size=size,
                limit=self.answer_bytes,
                setting="max_answer_bytes",
            )


def is_small(value: Any) -> bool:
    """Whether the value is too small to need a thread for writing it as JSON, judged by its first few hundred parts."""
    return has_at_most(value, _SMALL_VALUES, _SMALL_CHARACTERS)


def has_at_most(value: Any, most_values: int, most_characters: int) -> bool:
    """False also for values of unclear size: an object of another class, an integer beyond 64 bits."""
    waiting, values, characters = [value], 0, 0
    while waiting:
        part = waiting.pop()
        values += 1
        if isinstance(part, str):
            characters += len(part)
        elif isinstance(part, dict | list | tuple):
            if len(part) > most_values:
                return False
            characters += sum(map(len, filter(_is_text, part))) if isinstance(part, dict) else 0
            waiting.extend(part.values() if isinstance(part, dict) else part)
        elif not isinstance(part, _SCALARS) or (isinstance(part, int) and part.bit_length() > 64):
            return False
        if values > most_values or characters > most_characters:
            return False
    return True


def _is_text(key: Any) -> bool:
    return isinstance(key, str)


@dataclass(slots=True)
class Usage:
    """By tenant."""

    threads: Counter[str] = field(default_factory=Counter)
    stored_bytes: Counter[str] = field(default_factory=Counter)
