"""Parametrized generic models of pydantic, such as `Box[int]`, looked up by their stored names.

Such a class exists only after its first use, which may be inside a function, so it can be missing after a restart. It
is rebuilt from its base and the names in its brackets, without import or execution: a name is one of the few below, or
a class that is allowed by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Optional, Union
from uuid import UUID

Find = Callable[[str], Any]
"""Returns the class of a name in the brackets, or None."""

_LONGEST = 300
_PLAIN: dict[str, Any] = {
    **{kind.__name__: kind for kind in (int, float, str, bytes, bool, type(None), list, dict, set, frozenset, tuple)},
    **{kind.__name__: kind for kind in (date, datetime, time, timedelta, Decimal, UUID)},
    "Any": Any,
    "Union": Union,
    "Optional": Optional,
}


def is_filled_in(name: str) -> bool:
    return "[" in name


def base_name(name: str) -> str:
    return name.partition("[")[0]


def filled_in(base: Any, name: str, find: Find) -> type | None:
    """`base` with the arguments in `name`; None if an argument is unknown or the resulting name differs."""
    try:
        expression = ast.parse(name[:_LONGEST], mode="eval").body
        if not is_generic(base) or not isinstance(expression, ast.Subscript):
            return None
        made = base[_read(expression.slice, find)]
    except (SyntaxError, LookupError, TypeError, ValueError, RecursionError):
        return None
    return made if isinstance(made, type) and made.__name__ == name else None


def is_generic(cls: Any) -> bool:
    return bool((getattr(cls, "__pydantic_generic_metadata__", None) or {}).get("parameters"))


def is_only(cls: type) -> bool:
    """Whether no other live class has the same name: `Box[Order]` is ambiguous if there are two `Order` classes."""
    base = (getattr(cls, "__pydantic_generic_metadata__", None) or {}).get("origin")
    return base is None or {other for other in base.__subclasses__() if other.__name__ == cls.__name__} <= {cls}


def _read(node: ast.expr, find: Find) -> Any:
    match node:
        case ast.Name(id=name):
            kind = _PLAIN.get(name) or find(name)
            if kind is None:
                raise LookupError(name)
            return kind
        case ast.Constant(value=value) if value is ...:
            return value
        case ast.Tuple(elts=parts):
            return tuple(_read(part, find) for part in parts)
        case ast.Subscript(value=ast.Name(id=name) as outer, slice=inner):
            kind = _read(outer, find)
            if name in _PLAIN or is_generic(kind):
                return kind[_read(inner, find)]
    raise LookupError(ast.unparse(node))
