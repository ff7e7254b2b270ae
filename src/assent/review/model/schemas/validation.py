"""Validates values against JSON Schemas of agents and MCP servers.

The schema is as untrusted as the value. No `$ref` is ever fetched; regular expressions run in linear time and have a
maximum size; the work of a check is limited; a schema that cannot be enforced is reported (`defect`) and then checks
nothing, because the agent validates again. Messages are built from the schema, never from the value, so that a password
does not appear in an error text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache, lru_cache, partial
from itertools import islice
from typing import Any
from uuid import UUID

from attrs import evolve
from jsonschema import Draft4Validator, Draft7Validator, Draft201909Validator, Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from assent.errors import Problem
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.schemas import parts as schema_parts

MAX_SCHEMA_TEXT = 64 * 1024
MAX_SCHEMA_VALUES = 10_000
MAX_REFERENCES = 2_000
MAX_STEPS = 5_000
"""The maximum number of comparisons of a subschema with a part of the value."""
MAX_STEPS_OF_ALL = 20_000
"""The same for many values together."""
MAX_PATTERNS = 50
MAX_PATTERN_TEXT = 1_000
MAX_PATTERN_MEMORY = 256 * 1024
"""The memory of a compiled expression: `\\pL{1000}` is short, and takes a fifth of a second to compile."""
MAX_MATCHED_TEXT = 100_000
MAX_PROBLEMS = 20

_DRAFTS = {"draft-04": Draft4Validator, "draft-07": Draft7Validator, "2019-09": Draft201909Validator}

_MESSAGES = {
    "additionalProperties": "has fields that the schema does not allow",
    "anyOf": "fits none of the allowed forms",
    "exclusiveMaximum": "must be less than {}",
    "exclusiveMinimum": "must be greater than {}",
    "format": "is not a valid {}",
    "maxItems": "may have at most {} entries",
    "maxLength": "may be at most {} characters long",
    "maximum": "must be at most {}",
    "minItems": "must have at least {} entries",
    "minLength": "must be at least {} characters long",
    "minimum": "must be at least {}",
    "multipleOf": "must be a multiple of {}",
    "oneOf": "fits none of the allowed forms",
    "pattern": "does not match {}",
    "required": "is required",
    "type": "must be {}",
    "uniqueItems": "has a duplicate entry",
    "const": "must be {}",
    "enum": "must be one of {}",
}


_UNICODE_ESCAPE = re.compile(r"((?<!\\)(?:\\\\)*)\\u([0-9A-Fa-f]{4})")


class _Exhausted(Exception):
    """Following this schema's references takes too long."""


class _TooMuchWork(Exception):
    """Validating this value against this schema takes too long."""


def problems(schema: Json, value: Json, path: str = "") -> tuple[Problem, ...]:
    """The problems of `value`, by field below `path`; empty if the schema cannot be enforced."""
    compiled = _compile(canonical.text(schema))
    if isinstance(compiled, str):
        return ()
    try:
        return tuple(_problem(error, path) for error in _first(compiled.fresh().iter_errors(value)))
    except (Unresolvable, RecursionError, _Exhausted):
        return ()
    except _TooMuchWork:
        return (Problem(path, "takes too long to be checked against the schema"),)


def accepts_any(schema: Json, values: Iterable[Json]) -> bool:
    """Whether any of these values fits a schema without a defect; true if that takes too long to check."""
    compiled = _compile(canonical.text(schema))
    if isinstance(compiled, str):
        return True
    validator = compiled.fresh(MAX_STEPS_OF_ALL)
    try:
        return any(validator.is_valid(value) for value in values)
    except (Unresolvable, RecursionError, _Exhausted, _TooMuchWork):
        return True


def defect(schema: Json) -> str | None:
    """The reason why this schema cannot be enforced, or None."""
    return _defect(canonical.text(schema))


@lru_cache(maxsize=256)
def _defect(schema_text: str) -> str | None:
    compiled = _compile(schema_text)
    return compiled if isinstance(compiled, str) else _unusable_reason(compiled.fresh())


def part_check(schema_text: str) -> Callable[[Json], str | None]:
    """For a schema without a defect: a function that returns the broken reference of each part, taken separately. All
    parts share the budget of one schema."""
    compiled = _compile(schema_text)
    assert isinstance(compiled, _Compiled)
    validator = compiled.fresh()
    return lambda part: _unusable_reason(validator.evolve(schema=part))


def _unusable_reason(validator: Any) -> str | None:
    try:
        for _ in validator.iter_errors(None):
            pass
    except Unresolvable as error:
        return f"refers to {error.ref!r}, which is not part of it"
    except (RecursionError, _Exhausted):
        return "refers to itself without end"
    except _TooMuchWork:
        return "takes too long to be checked"
    return None


@lru_cache(maxsize=256)
def _compile(schema_text: str) -> _Compiled | str:
    """The compiled schema, or the reason why it cannot be used. The text makes it hashable."""
    if len(schema_text) > MAX_SCHEMA_TEXT:
        return f"is longer than {MAX_SCHEMA_TEXT} characters"
    if canonical.has_more_values(schema_text, MAX_SCHEMA_VALUES):
        return f"has more than {MAX_SCHEMA_VALUES} values"
    if schema_text.count('"pattern":') > MAX_PATTERNS:
        return f"has more than {MAX_PATTERNS} patterns"
    schema = canonical.parse(schema_text, max_depth=2 * canonical.MAX_DEPTH)
    if "patternProperties" in schema_text:  # the library would match these with backtracking expressions
        return "uses patternProperties"
    if schema_parts.are_too_many(schema):
        return f"has more than {schema_parts.MOST_PARTS} parts"
    kind = _validator_class(_draft(schema))
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        return f"is not valid JSON Schema at {canonical.where(error.absolute_path) or 'its root'}"
    except RecursionError:
        return "is nested too deep"
    return _Compiled(kind(schema, registry=Registry()), {id(schema)})


def _draft(schema: Json) -> Any:
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    names = (name for name in _DRAFTS if isinstance(declared, str) and name in declared)
    return _DRAFTS.get(next(names, ""), Draft202012Validator)


@cache
def _validator_class(draft: Any) -> Any:
    ours: dict[str, Any] = {"format": _check_format, "pattern": _check_pattern, "required": _check_required}
    ours["uniqueItems"] = _check_unique
    references = ("$ref", "$dynamicRef", "$recursiveRef")
    counted = {name: _counted(draft.VALIDATORS[name]) for name in references if name in draft.VALIDATORS}
    extend: Any = validators.extend  # its stub has no types
    kind = extend(draft, ours | counted)
    kind.evolve = _evolve
    kind.check_schema = partial(_check_schema, draft)
    return kind


def _check_schema(draft: Any, schema: Json) -> None:
    """As in the library, which compares all pairs of entries for uniqueness."""
    for error in _meta_class(draft)(draft.META_SCHEMA, format_checker=draft.FORMAT_CHECKER).iter_errors(schema):
        raise SchemaError.create_from(error)


@cache
def _meta_class(draft: Any) -> Any:
    extend: Any = validators.extend  # its stub has no types
    kind = extend(draft, {"uniqueItems": _check_unique})
    kind.evolve = evolve  # its own would switch to the draft in `$schema`
    return kind


def _evolve(validator: Any, **changes: Any) -> Any:
    """Called by the library for every subschema that it applies. The library's own would switch to the draft in
    `$schema`, without our checks and limits."""
    if validator.format_checker is not None and "schema" in changes:
        validator.format_checker.step(changes["schema"])
    return evolve(validator, **changes)


@dataclass(frozen=True)
class _Compiled:
    validator: Any
    checked: set[int]
    """The objects of the schema that were validated as schemas: a reference may point to anything."""

    def fresh(self, steps: int = MAX_STEPS) -> Any:
        """The validator, with a new budget."""
        return self.validator.evolve(format_checker=_Budget(self.checked, steps=steps))


@dataclass
class _Budget:
    """The remaining work of a validation.

    Passed as the format checker: the one attribute that the library passes unchanged to every subschema, and unused
    here because our own function checks `format`.
    """

    checked: set[int]
    left: int = MAX_REFERENCES
    steps: int = MAX_STEPS
    text: int = MAX_MATCHED_TEXT

    def step(self, schema: Json) -> None:
        """Counts long lists, such as an `enum`, as more work."""
        parts = schema.values() if isinstance(schema, dict) else ()
        self.steps -= 1 + sum(len(part) for part in parts if isinstance(part, list | dict)) // 10
        if self.steps < 0:
            raise _TooMuchWork

    def match(self, text: str) -> None:
        self.text -= len(text)
        if self.text < 0:
            raise _TooMuchWork

    def spend(self, validator: Any, reference: Json) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Exhausted
        target = _target(validator, reference)
        if not isinstance(target, bool) and id(target) not in self.checked:
            self._check(validator, reference, target)

    def _check(self, validator: Any, reference: str, target: Json) -> None:
        """Validates the target of a reference. Targets may be nested: each costs as much as it has parts."""
        self.steps -= 2 * sum(1 for _ in islice(schema_parts.walk(target), MAX_STEPS))
        if self.steps < 0:
            raise _TooMuchWork
        try:
            validator.check_schema(target)
        except SchemaError:
            raise Unresolvable(ref=reference) from None
        self.checked.add(id(target))


def _target(validator: Any, reference: str) -> Json:
    try:
        return validator._resolver.lookup(reference).contents
    except Unresolvable:
        raise Unresolvable(ref=reference) from None


def _counted(follow: Callable[..., Iterable[ValidationError]]) -> Callable[..., Iterator[ValidationError]]:
    def check(validator: Any, reference: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
        if validator.format_checker is not None:
            validator.format_checker.spend(validator, reference)
        yield from follow(validator, reference, instance, schema) or ()

    return check


def _first(errors: Iterator[ValidationError]) -> Iterator[ValidationError]:
    """The first errors. If all alternatives failed, the deepest failure is the most relevant."""
    for _, error in zip(range(MAX_PROBLEMS), errors, strict=False):
        yield best_match([error]) or error


def _problem(error: ValidationError, base: str) -> Problem:
    path = base
    for step in error.absolute_path:
        path = canonical.join(path, step)
    return Problem(path, _message(str(error.validator or ""), error.validator_value))


def _message(keyword: str, expected: Json) -> str:
    if keyword == "type" and isinstance(expected, list):
        shown = " or ".join(map(str, expected))
    elif keyword in ("const", "enum"):
        shown = canonical.text(expected)
    else:
        shown = str(expected)
    shown = shown if len(shown) <= 200 else shown[:199] + "…"
    return _MESSAGES.get(keyword, f"does not satisfy {keyword}" if keyword else "is not allowed").format(shown)


def _check_required(validator: Any, required: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
    """As in the library, with the missing field in the path."""
    if isinstance(instance, dict) and isinstance(required, list):
        yield from (ValidationError("missing", path=[name]) for name in required if name not in instance)


def _check_pattern(validator: Any, pattern: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
    if isinstance(instance, str):
        if validator.format_checker is not None:
            validator.format_checker.match(instance)
        if not _matches(pattern, instance):
            yield ValidationError("no match")


def _check_unique(validator: Any, unique: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
    """As in the library, but in linear time. 1 and 1.0 are equal there."""
    if unique is True and isinstance(instance, list):
        texts = {canonical.text(canonical.numbered(entry)) for entry in instance}
        if len(texts) < len(instance):
            yield ValidationError("twice")


def _check_format(validator: Any, name: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
    reader = _FORMATS.get(name) if isinstance(name, str) else None
    if reader is None or not isinstance(instance, str):
        return
    try:
        reader(instance)
    except ValueError:
        yield ValidationError("no such format")


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> Any:
    """A linear-time matcher (RE2), which also bounds the cost of compiling: Python's own can be made to run for years.
    None for an unsupported pattern, such as look-around: the agent validates it."""
    import re2  # type: ignore[import-untyped]  # slow to import, and few schemas have a pattern

    if len(pattern) > MAX_PATTERN_TEXT:
        return None
    options = re2.Options()
    options.max_mem, options.never_capture, options.log_errors = MAX_PATTERN_MEMORY, True, False
    try:
        return re2.compile(_UNICODE_ESCAPE.sub(r"\1\\x{\2}", pattern), options)
    except (re2.error, UnicodeError):
        return None


def can_match(pattern: str) -> bool:
    return _matcher(pattern) is not None


def _matches(pattern: str, value: str) -> bool:
    matcher = _matcher(pattern)
    return matcher is None or matcher.search(value) is not None


def _read_email(value: str) -> None:
    name, _, host = value.rpartition("@")
    if not name or not host or any(mark.isspace() for mark in value):
        raise ValueError


def _read_uri(value: str) -> None:
    scheme, colon, rest = value.partition(":")
    if not (colon and rest and scheme.isascii() and scheme[:1].isalpha()) or any(mark.isspace() for mark in value):
        raise ValueError


_FORMATS: dict[str, Callable[[str], object]] = {
    "date": date.fromisoformat,
    "date-time": datetime.fromisoformat,
    "email": _read_email,
    "time": time.fromisoformat,
    "uri": _read_uri,
    "uuid": UUID,
}
