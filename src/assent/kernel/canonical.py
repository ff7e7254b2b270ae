"""Strict JSON parsing, and the canonical text that is hashed, stored and shown.

An approval is bound to a hash of the text that the person saw, so a text must have one meaning. `parse` refuses input
that parsers disagree on (duplicate keys, NaN, lone surrogates, unlimited nesting); `text` writes a value in exactly one
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
MAX_VALUES = 200_000
MAX_DIGITS = 300
"""Of one integer in a parsed text. Python needs quadratic time for the digits of an integer: up to this length a text
costs no more than one of the same size that is full of short integers."""
_WRITE_DEPTH = 2 * MAX_DEPTH  # a parsed value can be wrapped in envelopes of ours and still be written

TOO_LONG = 10**4300  # Python's default limit for turning an integer into text

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,79}")
_DIGIT_OR_NOT = bytes(ord("0") if chr(byte).isascii() and chr(byte).isdigit() else ord(" ") for byte in range(256))
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


class JsonError(ValueError):
    """A text or value that cannot be read or written exactly; `path` is its location, if available."""

    def __init__(self, reason: str, path: str = "") -> None:
        self.reason = reason
        self.path = path
        super().__init__(f"{path}: {reason}" if path else reason)


class MalformedJson(JsonError):
    """The text is not JSON that all parsers read in the same way."""


class JsonTooLarge(JsonError):
    """The text is longer, or holds more values, than the caller accepts."""


class NotJson(JsonError):
    """The value has no JSON text."""


def parse(
    source: str | bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH, max_values: int = MAX_VALUES
) -> Json:
    """The value of a JSON text; a `JsonError` names the problem and its path.

    The values are counted before any of them is created: an empty list takes a few bytes of text, and a hundred times
    as much memory."""
    decoded = _decode(source, max_bytes)
    if has_more_values(decoded, max_values):
        raise JsonTooLarge(f"more than {max_values} values")
    oddities: list[object] = []
    value = _load(decoded, oddities)
    # The walk that tracks paths is only needed for suspicious texts: most bodies are shallow and plain.
    brackets = decoded.count("{") + decoded.count("[")
    if oddities or brackets > max_depth or _SURROGATE_ESCAPE.search(decoded):
        _refuse(value, MalformedJson, max_depth)
    return value


def text(value: Json) -> str:
    """The canonical text. Tuples count as arrays; any other value that is not JSON is refused with its path."""
    _refuse(value, NotJson, _WRITE_DEPTH)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Json) -> str:
    return digest_text(text(value))


def digest_text(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def same(left: Json, right: Json) -> bool:
    """Equal as JSON. 598 and 598.0 are equal, as a JavaScript client cannot distinguish them; 1 and true differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def numbered(value: Json) -> Json:
    """The value with its whole numbers as integers: values that are the `same` then have one text."""
    if isinstance(value, dict):
        return {name: numbered(member) for name, member in value.items()}
    if isinstance(value, list):
        return [numbered(element) for element in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def join(path: str, key: str | int) -> str:
    """Appends a step: `join("actions[0]", "args")` is `actions[0].args`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{json.dumps(key[:80])}]"
    return f"{path}.{key}" if path else key


def below(base: str, path: str) -> str:
    """A path prefixed by its base."""
    return f"{base}.{path}" if base and path and not path.startswith("[") else f"{base}{path}"


def where(path: Iterable[str | int]) -> str:
    return reduce(join, path, "")


class _Duplicate(dict[str, Json]):
    """An object with a duplicate key: reported by the walk, which tracks paths."""

    def __init__(self, pairs: list[tuple[str, Json]]) -> None:
        super().__init__(pairs)
        times = Counter(key for key, _ in pairs)
        self.key = next(key for key in times if times[key] > 1)


def _decode(source: str | bytes, max_bytes: int) -> str:
    try:
        raw = source.encode() if isinstance(source, str) else source
        if len(raw) > max_bytes:
            raise JsonTooLarge(f"{len(raw)} bytes; the limit is {max_bytes}")
        return raw.decode() if isinstance(source, bytes) else source
    except UnicodeError as error:
        raise MalformedJson(f"not UTF-8 text: {error}") from None


def has_more_values(source: str, most: int) -> bool:
    """Whether a JSON text holds more than `most` values. Invalid JSON is counted up to where a parser stops."""
    if _marks(source) < most:
        return False
    plain = source.replace("\\\\", "").replace('\\"', "")
    if plain.count('"') > 4 * most:  # every string is a key or a value
        return True
    return _marks("".join(plain.split('"')[::2])) >= most


def has_digits(source: str | bytes, count: int) -> bool:
    """Whether a JSON text has `count` digits in a row anywhere: in an integer, a fraction or a string.

    Stored documents are checked with the GIL held. A table lookup per byte and a search for a constant take 1 to 2 ms
    per megabyte; a regular expression takes 12 to 60 ms."""
    if len(source) < count:
        return False
    raw = source.encode() if isinstance(source, str) else source
    return b"0" * count in raw.translate(_DIGIT_OR_NOT)


def _marks(source: str) -> int:
    """The number of marks that precede each value but the first, including those in strings."""
    return source.count(",") + source.count("[") + source.count("{")


def _load(source: str, oddities: list[object]) -> Json:
    """Parses with the standard library and adds the values that it wrongly accepts to `oddities`."""

    def build(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        built = dict(pairs)
        if len(built) == len(pairs):
            return built
        oddities.append(pairs)
        return _Duplicate(pairs)

    def integer(digits: str) -> int:
        if len(digits.lstrip("-")) > MAX_DIGITS:
            raise MalformedJson(f"an integer of more than {MAX_DIGITS} digits")
        return int(digits)

    def number(digits: str) -> float:
        value = float(digits)
        if not isfinite(value):  # 1e999, NaN, Infinity
            oddities.append(value)
        return value

    hooks: dict[str, Any] = {"parse_int": integer} if has_digits(source, MAX_DIGITS + 1) else {}
    try:
        return json.loads(source, object_pairs_hook=build, parse_float=number, parse_constant=number, **hooks)
    except json.JSONDecodeError as error:
        raise MalformedJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise MalformedJson("nested far too deep") from None


def _refuse(value: Json, error: type[JsonError], max_depth: int) -> None:
    """Raises `error` at the first value that is not JSON. Stopping at once also ends the walk of a cyclic value."""
    _Walk(error, max_depth).visit(value)


class _Walk:
    """One pass over a value that tracks its path."""

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
            self._fail("a lone surrogate, which is not a character")

    def _visit_object(self, node: dict[Any, Any]) -> None:
        if isinstance(node, _Duplicate):
            self._fail("this key is a duplicate", node.key)
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
