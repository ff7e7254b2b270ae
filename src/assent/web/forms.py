"""Forms made from arguments and schemas, and read back so that only what a person touched is changed.

An input shows a value as text. What comes back equal to what was shown is untouched, and the original value stays as it
is, digit for digit. A browser changes some texts by itself (line ends, U+0000); where that could not be told from a
person's change, the field is left to the raw JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from starlette.datastructures import FormData as Posted

from assent.domain import canonical
from assent.domain.canonical import Json
from assent.web.texts import spelled

Kind = Literal["text", "number", "flag", "choice", "choices", "json", "secret"]
_HOPS = 8
_MISSING = object()


class FieldProblem(ValueError):
    """What was typed into one field cannot be taken."""

    def __init__(self, label: str, message: str) -> None:
        self.label = label
        self.message = message
        super().__init__(f"{label}: {message}")


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Field:
    """One input. `shown` is what stands in it at first; `original` the value behind that, if there is one."""

    name: str
    kind: Kind
    shown: str = ""
    original: Any = _MISSING
    required: bool = False
    label: str = ""
    help: str | None = None
    options: tuple[Option, ...] = ()
    chosen: tuple[str, ...] = ()
    input: str = "text"
    """What a browser helps to type: a text, a date, an address."""

    @property
    def rows(self) -> int:
        """As tall as what stands in it, within reason."""
        lines = sum(1 + len(line) // 72 for line in self.shown.split("\n"))
        return max(1, min(lines, 16))


# Making fields


def of_args(args: Json, schema: Json) -> list[Field]:
    """The fields of an edit: one per argument, and empty ones for what the schema knows besides."""
    if not isinstance(args, dict):
        return []
    properties = _properties(schema)
    present = [_field(name, value, _resolved(properties.get(name), schema)) for name, value in args.items()]
    more = [_empty(name, _resolved(inner, schema)) for name, inner in properties.items() if name not in args]
    single = [replace(field, kind="json") if field.kind == "choices" else field for field in more]
    return [field for field in (*present, *single) if _survives(field.name) and _survives(field.shown)]


def of_schema(schema: Json) -> list[Field]:
    """The fields of a form; one without a name where the answer is not an object."""
    root = _resolved(schema, schema)
    properties = _properties(root)
    if not properties or not all(map(_survives, properties)):
        return [_empty("", root, required=True)]
    required = root.get("required")
    needed = set(required) if isinstance(required, list) else set()
    return [_empty(name, _resolved(inner, schema), required=name in needed) for name, inner in properties.items()]


def _field(name: str, value: Json, schema: Mapping[str, Json]) -> Field:
    options = _options(schema)
    text = canonical.text(value)
    if options and not isinstance(value, list | dict):
        known = options if any(one.value == text for one in options) else (Option(text, text), *options)
        return Field(name, "choice", text, value, options=known, **_told(name, schema))
    if isinstance(value, str):
        return Field(name, "text", value.replace("\r\n", "\n"), value, **_told(name, schema))
    if isinstance(value, bool):
        return Field(name, "flag", "true" if value else "", value, **_told(name, schema))
    kind: Kind = "number" if isinstance(value, int | float) else "json"
    return Field(name, kind, text, value, **_told(name, schema))


def _empty(name: str, schema: Mapping[str, Json], *, required: bool = False) -> Field:
    told, kind, options = _told(name, schema), _kind(schema), _options(schema)
    default = schema.get("default", _MISSING)
    if kind == "flag":
        return Field(name, kind, "true" if default is True else "", required=required, **told)
    if kind == "choices":
        chosen = tuple(map(canonical.text, default)) if isinstance(default, list) else ()
        return Field(name, kind, required=required, options=_options(_items(schema)), chosen=chosen, **told)
    helped = _INPUTS.get(str(schema.get("format")), "text") if kind == "text" else "text"
    shown = "" if default in (_MISSING, None) else default
    text = shown if isinstance(shown, str) and kind in ("text", "secret") else canonical.text(shown) if shown else ""
    seen = "" if kind == "secret" else text
    return Field(name, kind, seen, required=required, options=options, input=helped, **told)


_INPUTS = {"date": "date", "email": "email", "uri": "url"}
"""By the format of the schema. What has no input of its own, such as a moment with its zone, is typed as it is."""


def _kind(schema: Mapping[str, Json]) -> Kind:
    if _options(schema):
        return "choice"
    if schema.get("writeOnly") is True or schema.get("format") == "password":
        return "secret"
    kinds: dict[Any, Kind] = {"string": "text", "boolean": "flag", "integer": "number", "number": "number"}
    if schema.get("type") == "array" and _options(_items(schema)):
        return "choices"
    kind = schema.get("type")
    return kinds.get(kind, "json") if isinstance(kind, str) else "json"


def _options(schema: Mapping[str, Json]) -> tuple[Option, ...]:
    """The values to choose from: `enum` with or without names, or a list of constants with titles."""
    values, names = schema.get("enum"), schema.get("enumNames")
    if isinstance(values, list):
        labels = names if isinstance(names, list) and len(names) == len(values) else values
        return tuple(Option(canonical.text(value), _label(label)) for value, label in zip(values, labels, strict=True))
    for word in ("oneOf", "anyOf"):
        listed = schema.get(word)
        if isinstance(listed, list) and listed and all(isinstance(one, dict) and "const" in one for one in listed):
            return tuple(Option(canonical.text(one["const"]), _label(one.get("title", one["const"]))) for one in listed)
    return ()


def _items(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    found = schema.get("items")
    return found if isinstance(found, dict) else {}


def _label(value: Json) -> str:
    return spelled(value if isinstance(value, str) else canonical.text(value))


def _told(name: str, schema: Mapping[str, Json]) -> dict[str, Any]:
    title, help = schema.get("title"), schema.get("description")
    label = title if isinstance(title, str) and title.strip() and not name else name
    return {"label": label or "Answer", "help": help if isinstance(help, str) else None}


def _properties(schema: Json) -> Mapping[str, Json]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _resolved(schema: Json, root: Json) -> dict[str, Json]:
    """Behind local references, and past a `null` among alternatives."""
    for _ in range(_HOPS):
        if not isinstance(schema, dict):
            return {}
        reference, alternatives = schema.get("$ref"), schema.get("anyOf")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            schema = (root.get("$defs") or {}).get(reference[8:]) if isinstance(root, dict) else None
        elif isinstance(alternatives, list) and len(real := [one for one in alternatives if one != _NULL]) == 1:
            schema = {**{name: value for name, value in schema.items() if name != "anyOf"}, **_mapping(real[0])}
        else:
            return schema
    return {}


_NULL = {"type": "null"}


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _survives(text: str) -> bool:
    """Whether a browser sends this text back as it got it."""
    return "\0" not in text and "\r" not in text


# Reading them back


def typed(field: Field, prefix: str, posted: Posted) -> str:
    return str(posted.get(f"{prefix}{field.name}") or "").replace("\r\n", "\n")


def edited(args: Mapping[str, Json], fields: Sequence[Field], prefix: str, posted: Posted) -> dict[str, Json]:
    """The arguments with what was touched laid over them. Untouched, they are equal to what they were."""
    changed = dict(args)
    for field in touched(fields, prefix, posted):
        changed[field.name] = _value(field, typed(field, prefix, posted), field.original)
    return changed


def touched(fields: Sequence[Field], prefix: str, posted: Posted) -> Iterator[Field]:
    return (field for field in fields if typed(field, prefix, posted) != field.shown)


def filled(fields: Sequence[Field], prefix: str, posted: Posted) -> Json:
    """What a form says: an object, or the bare value of its only field."""
    if [field.name for field in fields] == [""]:
        return _answer(fields[0], prefix, posted)
    answers = {field.name: _answer(field, prefix, posted) for field in fields}
    return {name: value for name, value in answers.items() if value is not _MISSING}


def parsed(label: str, text: str) -> Json:
    try:
        return canonical.parse(text)
    except canonical.JsonError as error:
        raise FieldProblem(label, f"is not JSON: {error}") from None


def _answer(field: Field, prefix: str, posted: Posted) -> Any:
    if field.kind == "choices":
        return [parsed(field.label, str(one)) for one in posted.getlist(f"{prefix}{field.name}")]
    text = typed(field, prefix, posted)
    if field.kind == "flag" or text:
        return _value(field, text)
    if field.required and field.kind not in ("text", "secret"):
        raise FieldProblem(field.label, "is needed")
    return "" if field.required else _MISSING


def _value(field: Field, text: str, original: Any = _MISSING) -> Json:
    if field.kind == "flag":
        return text == "true"
    if field.kind in ("text", "secret"):
        lines_end_so = isinstance(original, str) and "\r\n" in original
        return text.replace("\n", "\r\n") if lines_end_so else text
    value = parsed(field.label, text)
    if field.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise FieldProblem(field.label, "must be a number")
    return value
