"""Limits of arguments, such as `amount` at most 100: the way people narrow a standing approval without writing CEL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from assent.errors import Invalid
from assent.kernel.canonical import Json

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_RESERVED = frozenset(
    ("as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let")
)
_RESERVED |= {"loop", "namespace", "null", "package", "return", "true", "var", "void", "while"}


class Bound(StrEnum):
    SAME = "same"
    AT_MOST = "at_most"
    AT_LEAST = "at_least"


_OPERATORS = {Bound.SAME: "==", Bound.AT_MOST: "<=", Bound.AT_LEAST: ">="}


@dataclass(frozen=True, slots=True)
class Limit:
    argument: str
    bound: Bound
    value: Json

    def __post_init__(self) -> None:
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if self.bound is not Bound.SAME and not is_number:
            raise Invalid(f"{self.argument}: {self.bound} needs a number")

    @property
    def condition(self) -> str:
        plain = _NAME.fullmatch(self.argument) and self.argument not in _RESERVED
        place = f"args.{self.argument}" if plain else f"args[{_literal(self.argument)}]"
        return f"{place} {_OPERATORS[self.bound]} {_literal(self.value)}"


def condition_of(limits: Iterable[Limit], condition: str | None = None) -> str | None:
    """One CEL condition for all limits, and for the condition beside them."""
    parts = [limit.condition for limit in limits]
    if condition is None or not parts:
        return " && ".join(parts) or condition
    return " && ".join([*parts, f"({condition})"])


def _literal(value: Json) -> str:
    """JSON is CEL, except for escaped pairs of surrogates."""
    return json.dumps(value, ensure_ascii=False)
