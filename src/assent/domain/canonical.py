"""JSON read strictly, and the one text that is hashed, stored and shown.

An approval is bound to a hash of what the person saw, so two readings of one text must not exist. `parse` refuses what
readers disagree on (duplicate keys, NaN, lone surrogates, bottomless nesting); `text` writes a value in exactly one
way: sorted keys, no spaces, every number digit for digit (598 and 598.0 are different texts); `digest` hashes that.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import reduce
from math import isfinite
from typing import Any, NoReturn, TypeAlias

Json: TypeAlias = Any  # None | bool | int | float | str | list[Json] | dict[str, Json]

MAX_DEPTH = 64
MAX_BYTES = 16 * 1024 * 1024
_WRITE_DEPTH = 2 * MAX_DEPTH  # whatever was parsed can be wrapped in envelopes of ours and still be written

TOO_LONG = 10**4300  # Python's default limit for turning an integer into text

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,79}")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonError(ValueError):
    """A text or value that cannot be read or written exactly; `path` says where it is, as far as that is known."""

    def __init__(self, reason: str, path: str = "") -> None:
        self.reason = reason
        self.path = path
        super().__init__(f"{path}: {reason}" if path else reason)


class MalformedJson(JsonError):
    """The text is not JSON that every reader would read in the same way."""


class JsonTooLarge(JsonError):
    """The text is longer than the caller accepts."""


class NotJson(JsonError):
    """The value has no JSON text."""


def parse(source: str | bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Json:
    """The value of a JSON text, or a `JsonError` that says what is wrong and where."""
    found = _decode(source, max_bytes)
    oddities: list[object] = []
    value = _load(found, oddities)
    # The walk that knows paths is only made where there can be something to find: most bodies are shallow and plain.
    brackets = found.count("{") + found.count("[")
    if oddities or brackets > max_depth or _SURROGATE_ESCAPE.search(found):
        _refuse(value, MalformedJson, max_depth)
    return value


def text(value: Json) -> str:
    """The canonical text. Tuples count as arrays; anything else that is not JSON is refused with its path."""
    _refuse(value, NotJson, _WRITE_DEPTH)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Json) -> str:
    return digest_text(text(value))


def digest_text(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def same(one: Json, other: Json) -> bool:
    """Equal as JSON. 598 and 598.0 are one number, as a JavaScript client cannot tell them apart; 1 and true differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def join(path: str, key: str | int) -> str:
    """One step further down: `join("actions[0]", "args")` is `actions[0].args`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key[:80])}]"
    return f"{path}.{key}" if path else key


def below(base: str, path: str) -> str:
    """A whole path, seen from further up."""
    return f"{base}.{path}" if base and path and not path.startswith("[") else f"{base}{path}"


def where(path: Iterable[str | int]) -> str:
    return reduce(join, path, "")


class _Duplicate(dict[str, Json]):
    """An object in which a key came twice: kept until the walk, which knows its path."""

    def __init__(self, pairs: list[tuple[str, Json]]) -> None:
        super().__init__(pairs)
        times = Counter(key for key, _ in pairs)
        self.key = next(key for key in times if times[key] > 1)


def _decode(source: str | bytes, max_bytes: int) -> str:
    try:
        raw = source.encode() if isinstance(source, str) else source
        if len(raw) > max_bytes:
            raise JsonTooLarge(f"{len(raw)} bytes, and at most {max_bytes} are read")
        return raw.decode() if isinstance(source, bytes) else source
    except UnicodeError as error:
        raise MalformedJson(f"not UTF-8 text: {error}") from None


def _load(source: str, oddities: list[object]) -> Json:
    """What the standard library reads, with everything that it lets pass noted in `oddities`."""

    def build(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        oddities.append(pairs)
        return _Duplicate(pairs)

    def number(digits: str) -> float:
        value = float(digits)
        if not isfinite(value):  # 1e999, NaN, Infinity
            oddities.append(value)
        return value

    try:
        return json.loads(source, object_pairs_hook=build, parse_float=number, parse_constant=number)
    except json.JSONDecodeError as error:
        raise MalformedJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise MalformedJson("nested far too deep") from None
    except ValueError as error:  # Python's own limit on the digits of an integer
        raise MalformedJson(str(error)) from None


def _refuse(value: Json, error: type[JsonError], max_depth: int) -> None:
    """Raise `error` at the first thing that is not JSON. Stopping at once keeps cyclic values from exploding."""
    _Walk(error, max_depth).visit(value)


class _Walk:
    """One pass over a value that knows at any moment where it is."""

    def __init__(self, error: type[JsonError], max_depth: int) -> None:
        self.error = error
        self.max_depth = max_depth
        self.path: list[str | int] = []

    def visit(self, node: object) -> None:
        if isinstance(node, str):
            self._visit_text(node)
        elif isinstance(node, dict):
            self._visit_object(node)
        elif isinstance(node, (list, tuple)):
            self._descend(enumerate(node))
        elif isinstance(node, float):
            if not isfinite(node):
                self._fail(f"{node} is not a JSON number")
        elif isinstance(node, int):
            if abs(node) >= TOO_LONG:
                self._fail("an integer of more than 4300 digits")
        elif node is not None:
            self._fail(f"{type(node).__name__} is not JSON")

    def _fail(self, reason: str, *key: str | int) -> NoReturn:
        raise self.error(reason, where([*self.path, *key]))

    def _visit_text(self, node: str) -> None:
        if not node.isascii() and has_surrogate(node):
            self._fail("a lone surrogate, which is no character")

    def _visit_object(self, node: dict[Any, Any]) -> None:
        if isinstance(node, _Duplicate):
            self._fail("this key comes twice", node.key)
        for key in node:
            if not isinstance(key, str):
                self._fail(f"a key must be a string, not {type(key).__name__}")
            self._visit_text(key)
        self._descend(node.items())

    def _descend(self, children: Iterable[tuple[Any, object]]) -> None:
        if len(self.path) >= self.max_depth:
            self._fail(f"nested deeper than {self.max_depth}")
        for key, child in children:
            self.path.append(key)
            self.visit(child)
            self.path.pop()


def has_surrogate(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False
