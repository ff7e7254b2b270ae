"""The Agent Inbox types for other languages: JSON Schema and TypeScript, generated from the Python ones.

Generated, so that the three stay in sync; only the type features that they use are supported.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints

from typing_extensions import is_typeddict

from assent.kernel.canonical import Json
from assent.review.dialects.human_interrupt import ActionRequest, HumanInterrupt, HumanInterruptConfig, HumanResponse

TYPES: tuple[type, ...] = (HumanInterruptConfig, ActionRequest, HumanInterrupt, HumanResponse)

_SCHEMAS: dict[object, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    NoneType: {"type": "null"},
}
_TYPESCRIPT: dict[object, str] = {str: "string", bool: "boolean", dict: "Record<string, any>", NoneType: "null"}


def json_schema() -> Json:
    """One schema with a definition per type; a `HumanInterrupt` or a list of them fits the whole."""
    single = {"$ref": "#/$defs/HumanInterrupt"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Agent Inbox",
        "anyOf": [single, {"type": "array", "items": single}],
        "$defs": {kind.__name__: _object(kind) for kind in TYPES},
    }


def typescript() -> str:
    return "\n".join(_interface(kind) for kind in TYPES)


def _hints(kind: type) -> dict[str, tuple[Any, bool]]:
    """Each field's type, and whether it is required."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: _required(hint) for name, hint in hints.items()}


def _required(hint: Any) -> tuple[Any, bool]:
    return (get_args(hint)[0], False) if get_origin(hint) is NotRequired else (hint, True)


def _object(kind: type) -> Json:
    hints = _hints(kind)
    return {
        "type": "object",
        "description": (kind.__doc__ or "").strip(),
        "properties": {name: _schema(hint) for name, (hint, _) in hints.items()},
        "required": [name for name, (_, required) in hints.items() if required],
    }


def _schema(hint: Any) -> Json:
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))}
    if get_origin(hint) in (Union, UnionType):
        return {"anyOf": [_schema(option) for option in get_args(hint)]}
    return {"$ref": f"#/$defs/{hint.__name__}"} if is_typeddict(hint) else _SCHEMAS[get_origin(hint) or hint]


def _interface(kind: type) -> str:
    fields = [
        f"  {name}{'' if required else '?'}: {_typescript(hint)};" for name, (hint, required) in _hints(kind).items()
    ]
    return "\n".join(
        [f"/** {(kind.__doc__ or '').strip()} */", f"export interface {kind.__name__} {{", *fields, "}", ""]
    )


def _typescript(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return " | ".join(f'"{word}"' for word in get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(_typescript(option) for option in get_args(hint))
    return str(hint.__name__) if is_typeddict(hint) else _TYPESCRIPT[get_origin(hint) or hint]
