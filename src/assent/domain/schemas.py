"""Values checked against JSON Schemas that agents and MCP servers wrote.

The schema is as untrusted as the value. Nothing is ever fetched for a `$ref`; regular expressions run in linear time;
the number of references followed is limited; a schema that cannot be enforced says so (`defect`) and then checks
nothing, because the agent's own check still follows. Messages are made from the schema, never from the value, so that
what a person typed into a password field does not come back in an error text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

from attrs import evolve
from jsonschema import Draft4Validator, Draft7Validator, Draft201909Validator, Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from pydantic_core import SchemaError as UnusablePattern
from pydantic_core import SchemaValidator, core_schema
from referencing import Registry
from referencing.exceptions import Unresolvable

from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import Problem

MAX_SCHEMA_TEXT = 200_000
MAX_REFERENCES = 5_000
MAX_PROBLEMS = 20

_DRAFTS = {"draft-04": Draft4Validator, "draft-07": Draft7Validator, "2019-09": Draft201909Validator}

_MESSAGES = {
    "additionalProperties": "has fields that the schema does not know",
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
    "uniqueItems": "has an entry twice",
    "const": "must be {}",
    "enum": "must be one of {}",
}


class _Exhausted(Exception):
    """Following this schema's references takes too long."""


def problems(schema: Json, value: Json, path: str = "") -> tuple[Problem, ...]:
    """What is wrong with `value`, field by field below `path`; nothing where the schema cannot be enforced."""
    compiled = _compile(canonical.text(schema))
    if isinstance(compiled, str):
        return ()
    try:
        return tuple(_problem(error, path) for error in _first(compiled.fresh().iter_errors(value)))
    except (Unresolvable, RecursionError, _Exhausted):
        return ()


def defect(schema: Json) -> str | None:
    """Why this schema cannot be enforced, or None."""
    return _defect(canonical.text(schema))


@lru_cache(maxsize=256)
def _defect(schema_text: str) -> str | None:
    compiled = _compile(schema_text)
    return compiled if isinstance(compiled, str) else _dead_end(compiled.fresh())


def part_check(schema_text: str) -> Callable[[Json], str | None]:
    """For a schema without a defect: says of each part of it, taken by itself, where its references fail. All of them
    together may follow as many as a whole schema may."""
    compiled = _compile(schema_text)
    assert isinstance(compiled, _Compiled)
    validator = compiled.fresh()
    return lambda part: _dead_end(validator.evolve(schema=part))


def _dead_end(validator: Any) -> str | None:
    try:
        for _ in validator.iter_errors(None):
            pass
    except Unresolvable as error:
        return f"refers to {error.ref!r}, which is not part of it"
    except (RecursionError, _Exhausted):
        return "refers to itself without end"
    return None


@lru_cache(maxsize=256)
def _compile(schema_text: str) -> _Compiled | str:
    """The schema ready for use, or the reason why it is not. The text makes it hashable."""
    if len(schema_text) > MAX_SCHEMA_TEXT:
        return f"is longer than {MAX_SCHEMA_TEXT} characters"
    schema = canonical.parse(schema_text, max_depth=2 * canonical.MAX_DEPTH)
    if "patternProperties" in schema_text:  # the library would match these with backtracking expressions
        return "uses patternProperties"
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
    references = ("$ref", "$dynamicRef", "$recursiveRef")
    counted = {name: _counted(draft.VALIDATORS[name]) for name in references if name in draft.VALIDATORS}
    extend: Any = validators.extend  # its stub has no types
    kind = extend(draft, ours | counted)
    kind.evolve = evolve  # the library's own would change to what a `$schema` names: back to its checks, without limits
    return kind


@dataclass(frozen=True)
class _Compiled:
    validator: Any
    checked: set[int]
    """Which objects of the schema are known to be schemas themselves: what a reference leads to may be anything."""

    def fresh(self) -> Any:
        """The validator, with a new budget."""
        return self.validator.evolve(format_checker=_Budget(self.checked))


@dataclass
class _Budget:
    """How many references may still be followed, and where to.

    Handed down as the format checker: the one attribute that the library carries unchanged into every subschema, and
    free here because `format` is checked by a function of our own.
    """

    checked: set[int]
    left: int = MAX_REFERENCES

    def spend(self, validator: Any, reference: Json) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Exhausted
        target = _target(validator, reference)
        if not isinstance(target, bool) and id(target) not in self.checked:
            self._check(validator, reference, target)

    def _check(self, validator: Any, reference: str, target: Json) -> None:
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
    """The first errors. Where all alternatives failed, the failure that lies deepest was most likely the one meant."""
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
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError("no match")


def _check_format(validator: Any, name: Json, instance: Json, schema: Json) -> Iterator[ValidationError]:
    reader = _FORMATS.get(name) if isinstance(name, str) else None
    if reader is None or not isinstance(instance, str):
        return
    try:
        reader(instance)
    except ValueError:
        yield ValidationError("no such format")


@lru_cache(maxsize=256)
def _matcher(pattern: str) -> SchemaValidator | None:
    """A matcher in linear time (Rust's regex, by way of pydantic): Python's own can be made to run for years."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
    except UnusablePattern:  # look-around and the like: left to the agent's own check
        return None


def can_match(pattern: str) -> bool:
    return _matcher(pattern) is not None


def _matches(pattern: str, value: str) -> bool:
    matcher = _matcher(pattern)
    return matcher is None or matcher.isinstance_python(value)


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
