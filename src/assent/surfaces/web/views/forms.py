"""Builds forms from arguments and schemas, and parses them so that only edited fields change.

An input shows a value as text. A field that returns unchanged keeps its original value, digit for digit. Browsers
change some texts (line ends, U+0000); fields with such texts are editable only as raw JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from starlette.datastructures import FormData as Posted

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.secrets import is_marked
from assent.surfaces.web.text.texts import spelled

Kind = Literal["text", "number", "flag", "choice", "choices", "json", "secret"]
_HOPS = 8
_MISSING = object()


class FieldProblem(ValueError):
    """The input of one field is invalid."""

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
    """One input. `shown` is its initial text; `original` is the value it came from, if any."""

    name: str
    kind: Kind
    shown: str = ""
    original: Any = _MISSING
    required: bool = False
    label: str = ""
    title: str = ""
    """The title of the schema, if it says more than the name."""

    help: str | None = None
    options: tuple[Option, ...] = ()
    chosen: tuple[str, ...] = ()
    input: str = "text"
    """The HTML input type: text, date, email, url."""

    @property
    def rows(self) -> int:
        """Height in lines, from 1 to 16."""
        lines = sum(1 + len(line) // 72 for line in self.shown.split("\n"))
        return max(1, min(lines, 16))


# Building fields


def of_args(args: Json, schema: Json) -> list[Field]:
    """The fields of an edit: one per argument, and empty ones for other properties of the schema."""
    if not isinstance(args, dict):
        return []
    properties = _properties(schema)
    present = [_field(name, value, _resolved(properties.get(name), schema)) for name, value in args.items()]
    more = [_empty(name, _resolved(inner, schema)) for name, inner in properties.items() if name not in args]
    single = [replace(field, kind="json") if field.kind == "choices" else field for field in more]
    return [field for field in (*present, *single) if _survives(field.name) and _survives(field.shown)]


def of_schema(schema: Json) -> list[Field]:
    """The fields of a form; a single unnamed field if the answer is not an object."""
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
        present = any(option.value == text for option in options)
        choices = options if present else (Option(text, text), *options)
        return Field(name, "choice", text, value, options=choices, **_captions(name, schema))
    if isinstance(value, str):
        return Field(name, "text", value.replace("\r\n", "\n"), value, **_captions(name, schema))
    if isinstance(value, bool):
        return Field(name, "flag", "true" if value else "", value, **_captions(name, schema))
    kind: Kind = "number" if isinstance(value, int | float) else "json"
    return Field(name, kind, text, value, **_captions(name, schema))


def _empty(name: str, schema: Mapping[str, Json], *, required: bool = False) -> Field:
    captions, kind, options = _captions(name, schema), _kind(schema), _options(schema)
    default = schema.get("default", _MISSING)
    if kind == "flag":
        return Field(name, kind, "true" if default is True else "", required=required, **captions)
    if kind == "choices":
        chosen = tuple(map(canonical.text, default)) if isinstance(default, list) else ()
        return Field(name, kind, required=required, options=_options(_items(schema)), chosen=chosen, **captions)
    helped = _INPUTS.get(str(schema.get("format")), "text") if kind == "text" else "text"
    shown = "" if default in (_MISSING, None) else default
    text = shown if isinstance(shown, str) and kind in ("text", "secret") else canonical.text(shown) if shown else ""
    seen = "" if kind == "secret" else text
    return Field(name, kind, seen, required=required, options=options, input=helped, **captions)


_INPUTS = {"date": "date", "email": "email", "uri": "url"}
"""Input type by schema format. Other formats, such as date-time with a zone, are plain text."""


def _kind(schema: Mapping[str, Json]) -> Kind:
    if _options(schema):
        return "choice"
    if is_marked(schema):
        return "secret"
    kinds: dict[Any, Kind] = {"string": "text", "boolean": "flag", "integer": "number", "number": "number"}
    if schema.get("type") == "array" and _options(_items(schema)):
        return "choices"
    kind = schema.get("type")
    return kinds.get(kind, "json") if isinstance(kind, str) else "json"


def _options(schema: Mapping[str, Json]) -> tuple[Option, ...]:
    """The options: `enum` with or without names, or a list of constants with titles."""
    values, names = schema.get("enum"), schema.get("enumNames")
    if isinstance(values, list):
        labels = names if isinstance(names, list) and len(names) == len(values) else values
        return tuple(Option(canonical.text(value), _label(label)) for value, label in zip(values, labels, strict=True))
    for word in ("oneOf", "anyOf"):
        listed = schema.get(word)
        consts = listed if isinstance(listed, list) else []
        if consts and all(isinstance(const, dict) and "const" in const for const in consts):
            return tuple(
                Option(canonical.text(const["const"]), _label(const.get("title", const["const"]))) for const in consts
            )
    return ()


def _items(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    return _mapping(schema.get("items"))


def _label(value: Json) -> str:
    return spelled(value if isinstance(value, str) else canonical.text(value))


def _captions(name: str, schema: Mapping[str, Json]) -> dict[str, Any]:
    title, help = schema.get("title"), schema.get("description")
    label = title if isinstance(title, str) and title.strip() and not name else name
    told = title.strip() if isinstance(title, str) and title.strip() not in (name, label) else ""
    return {"label": label or "Answer", "title": told, "help": help if isinstance(help, str) else None}


def _properties(schema: Json) -> Mapping[str, Json]:
    return _mapping(_mapping(schema).get("properties"))


def _resolved(schema: Json, root: Json) -> dict[str, Json]:
    """Resolves local references and optional (`null`) alternatives."""
    for _ in range(_HOPS):
        if not isinstance(schema, dict):
            return {}
        reference, alternatives = schema.get("$ref"), schema.get("anyOf")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            schema = (root.get("$defs") or {}).get(reference[8:]) if isinstance(root, dict) else None
        elif isinstance(alternatives, list) and len(real := [other for other in alternatives if other != _NULL]) == 1:
            schema = {**{name: value for name, value in schema.items() if name != "anyOf"}, **_mapping(real[0])}
        else:
            return schema
    return {}


_NULL = {"type": "null"}


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _survives(text: str) -> bool:
    """Whether a browser returns this text unchanged."""
    return "\0" not in text and "\r" not in text


# Parsing fields


def typed(field: Field, prefix: str, posted: Posted) -> str:
    return str(posted.get(f"{prefix}{field.name}") or "").replace("\r\n", "\n")


def edited(args: Mapping[str, Json], fields: Sequence[Field], prefix: str, posted: Posted) -> dict[str, Json]:
    """The arguments with the edited fields replaced."""
    changed = dict(args)
    for field in touched(fields, prefix, posted):
        changed[field.name] = _value(field, typed(field, prefix, posted), field.original)
    return changed


def touched(fields: Sequence[Field], prefix: str, posted: Posted) -> Iterator[Field]:
    return (field for field in fields if typed(field, prefix, posted) != field.shown)


def filled(fields: Sequence[Field], prefix: str, posted: Posted) -> Json:
    """The form's answer: an object, or the value of its single unnamed field."""
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
        return [parsed(field.label, str(value)) for value in posted.getlist(f"{prefix}{field.name}")]
    text = typed(field, prefix, posted)
    if field.kind == "flag" or text:
        return _value(field, text)
    if field.required and field.kind not in ("text", "secret"):
        raise FieldProblem(field.label, "is required")
    return "" if field.required else _MISSING


def _value(field: Field, text: str, original: Any = _MISSING) -> Json:
    if field.kind == "flag":
        return text == "true"
    if field.kind in ("text", "secret"):
        had_crlf = isinstance(original, str) and "\r\n" in original
        return text.replace("\n", "\r\n") if had_crlf else text
    value = parsed(field.label, text)
    if field.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise FieldProblem(field.label, "must be a number")
    return value
