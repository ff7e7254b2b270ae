"""The types that a checkpoint may hold: strict mode, and the list of types.

LangGraph's serializer rebuilds stored objects by importing any name in the bytes. Its strict mode prevents that, but
(1) it is read from the environment when LangGraph is imported, (2) an unlisted type is loaded as a plain dict with a
log line, and (3) every `graph.copy()` and `with_config()` loses the list that `compile` makes. So strict mode is
required here first, the list is rebuilt from the graph, and an unlisted type raises an error that names it.

This module imports no LangGraph, so that it can be imported first; `msgpack` holds the serializer.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from functools import reduce
from typing import Any

from assent.errors import ConfigError, StrictMsgpackOff
from assent.runs.checkpoints import generic_models
from assent.runs.checkpoints.types import TypeKey
from assent.runs.upstream import strict_msgpack

VARIABLE = "LANGGRAPH_STRICT_MSGPACK"
SETTING = "checkpoint_types"
"""The setting that lists further types, each as `module:Class`."""


def require_strict_msgpack() -> None:
    """Turns strict checkpoints on; refuses when LangGraph was imported earlier without them."""
    strict = strict_msgpack()
    if strict is None:
        os.environ[VARIABLE] = "true"
    elif not strict:
        raise StrictMsgpackOff()


def type_key(cls: type) -> TypeKey:
    return cls.__module__, cls.__name__


def listed_types(names: Iterable[str]) -> dict[TypeKey, type]:
    """The classes that the setting names. A missing class stops the start instead of a later run."""
    return {type_key(cls): cls for cls in map(_named_class, names)}


def _named_class(name: str) -> type:
    module, _, path = name.partition(":")
    try:
        cls: Any = reduce(getattr, generic_models.base_name(path).split("."), importlib.import_module(module))
        if generic_models.is_filled_in(path):
            cls = generic_models.filled_in(cls, path, vars(sys.modules[cls.__module__]).get)
    except (ImportError, AttributeError, ValueError) as exc:
        raise ConfigError(f"{SETTING}: class {name!r} not found ({exc})", hint="write module:Class") from exc
    if not isinstance(cls, type):
        raise ConfigError(f"{SETTING}: {name!r} is not a class", hint="write module:Class")
    return cls
