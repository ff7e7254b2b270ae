"""Lists the author's types in a graph's schemas, which its checkpoints may hold.

`compile` makes such a list too, but any later copy of the graph loses it, and it covers fewer containers. This list is
built from the parts that every copy keeps (builder, channels, subgraphs) and holds the classes themselves.
"""

from __future__ import annotations

import dataclasses
import logging
import typing
from collections import deque
from collections.abc import Iterator
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin
from uuid import UUID

from assent.runs.checkpoints.serde import type_key
from assent.runs.checkpoints.types import TypeKey

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

log = logging.getLogger(__name__)

_STORABLE = (Enum, UUID, Decimal, set, frozenset, deque, PurePath, date, time, timedelta)


def state_types(graph: Pregel[Any, Any, Any, Any]) -> dict[TypeKey, type]:
    """The storable classes in the schemas of `graph` and its subgraphs, by their stored names."""
    classes: dict[TypeKey, type] = {}
    ambiguous: set[TypeKey] = set()
    for cls in _classes(_annotations(graph)):
        if _storable(cls) and classes.setdefault(type_key(cls), cls) is not cls:
            ambiguous.add(type_key(cls))
    for key in ambiguous:
        log.warning("two classes are named %s in %s; neither can be stored in a checkpoint", key[1], key[0])
    return {key: cls for key, cls in classes.items() if key not in ambiguous}


def _annotations(graph: Any) -> Iterator[Any]:
    for part in (graph, *(subgraph for _, subgraph in graph.get_subgraphs(recurse=True))):
        yield getattr(part, "context_schema", None)
        for channel in getattr(part, "channels", {}).values():
            yield getattr(channel, "ValueType", None)
            yield getattr(channel, "UpdateType", None)
        if (builder := getattr(part, "builder", None)) is not None:
            yield from _builder_schemas(builder)


def _builder_schemas(builder: Any) -> Iterator[Any]:
    yield from (builder.state_schema, builder.input_schema, builder.output_schema)
    for node in builder.nodes.values():
        yield node.input_schema
    for branches in builder.branches.values():
        for branch in branches.values():
            yield branch.input_schema


def _classes(annotations: Iterator[Any]) -> Iterator[type]:
    """Traverses containers, unions, aliases and the fields of classes."""
    waiting, seen = deque(annotations), set[int]()
    keep: list[Any] = []  # keeps the objects alive, because ids of dead objects are reused
    while waiting:
        annotation = waiting.pop()
        if id(annotation) in seen:
            continue
        seen.add(id(annotation))
        keep.append(annotation)
        if isinstance(annotation, type) and get_origin(annotation) is None:
            yield annotation
            waiting.extend(_fields(annotation))
        else:
            waiting.extend(_parts(annotation))


def _parts(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Literal:
        yield from (type(value) for value in get_args(annotation))
    elif origin is Annotated:
        yield annotation.__origin__
    elif isinstance(annotation, TypeVar):
        yield from (annotation.__bound__, *annotation.__constraints__)
    elif origin is not None:
        yield from (origin, *get_args(annotation))
    else:  # `type X = …` and NewType
        yield getattr(annotation, "__value__", None)
        yield getattr(annotation, "__supertype__", None)


def _fields(cls: type) -> Iterator[Any]:
    """The types of the fields of a record class; empty for other classes."""
    if isinstance(models := getattr(cls, "model_fields", None), dict):
        yield from (field.annotation for field in models.values())
    elif any(hasattr(cls, mark) for mark in ("__dataclass_fields__", "__total__", "_fields", "__fields__")):
        yield from _hints(cls).values()


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except (NameError, TypeError, AttributeError):  # a name that exists for type checkers only
        return dict(getattr(cls, "__annotations__", {}))


def _storable(cls: type) -> bool:
    """Whether LangGraph's encoder stores instances by class name."""
    if cls.__module__ in ("builtins", "typing", "abc"):
        return False
    named = ("model_dump", "get_secret_value", "_asdict", "__fields__")
    return dataclasses.is_dataclass(cls) or issubclass(cls, _STORABLE) or any(hasattr(cls, name) for name in named)
