"""Which types a checkpoint may hold: the rule, the list, and the errors that name what is missing from it.

LangGraph's serializer rebuilds stored objects by importing whatever name the bytes carry. Its strict mode stops that,
but (1) it is read from the environment when LangGraph is imported, (2) a type that is not listed comes back as a plain
dict with a log line, and (3) the list that `compile` makes is lost by every `graph.copy()` and `with_config()`. So
strict mode is required here before anything else, the list is made from the graph again, and what is not on it fails
by name.

This module imports no LangGraph, so that it can come first; `msgpack` holds the serializer itself.
"""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from functools import reduce
from typing import TYPE_CHECKING, Any

from assent.errors import AssentError, ConfigError, UnsafeStart

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.serde.base import SerializerProtocol

VARIABLE = "LANGGRAPH_STRICT_MSGPACK"
SETTING = "checkpoint_types"
"""The setting that lists further types, each as `module:Class`."""

TypeKey = tuple[str, str]
"""What the stored bytes say about an object: its module and the name of its class."""


class StrictMsgpackOff(UnsafeStart):
    """LangGraph was imported without strict checkpoints, so stored bytes could run code."""

    code = "strict_msgpack_off"
    hint = f"set {VARIABLE}=true in the environment, or import assent before langgraph"


class StateError(AssentError):
    """A value of the graph's state cannot be kept in a checkpoint."""

    code = "invalid_state"


class BlockedType(StateError):
    """A type that is not on the list of those that checkpoints may hold."""

    code = "blocked_type"

    def __init__(self, key: TypeKey) -> None:
        name = ":".join(key)
        super().__init__(
            f"{name} is not a type that checkpoints may hold: it is in no schema of the graph nor in {SETTING}",
            hint=f'name the type in the schema of the graph\'s state, or add "{name}" to {SETTING}',
            type=name,
        )

    def __str__(self) -> str:
        # Runs show an exception's text and nothing else, and the text must say which setting helps.
        return f"{self.message}; {self.hint}"


class UnreadableState(StateError):
    """Stored bytes that cannot be turned back into what they were."""

    code = "unreadable_state"


_lost_writes: ContextVar[list[Exception] | None] = ContextVar("lost_writes", default=None)


def watch_writes() -> list[Exception]:
    """The list of writes to checkpoints that fail from here on, in this task and those that it starts.

    LangGraph writes in the background and, with any durability but `sync`, keeps such a failure to itself when it
    happens in a subgraph that then stops for a person: the question would be asked on a state that was never stored.
    """
    lost: list[Exception] = []
    _lost_writes.set(lost)
    return lost


def note_lost_write(error: Exception) -> None:
    """To be called by whatever fails to store something, before it raises."""
    if (lost := _lost_writes.get()) is not None:
        lost.append(error)


def require_strict_msgpack() -> None:
    """Turns strict checkpoints on; refuses when LangGraph was imported earlier without them."""
    loaded = sys.modules.get("langgraph.checkpoint.serde._msgpack")
    if loaded is None:
        os.environ[VARIABLE] = "true"
    elif not loaded.STRICT_MSGPACK_ENABLED:
        raise StrictMsgpackOff()


def type_key(cls: type) -> TypeKey:
    return cls.__module__, cls.__name__


def listed_types(names: Iterable[str]) -> dict[TypeKey, type]:
    """The classes that the setting names. One that cannot be found stops the start, not some later run."""
    return {type_key(cls): cls for cls in map(_named_class, names)}


def _named_class(name: str) -> type:
    module, _, path = name.partition(":")
    try:
        found: Any = reduce(getattr, path.split("."), importlib.import_module(module))
    except (ImportError, AttributeError, ValueError) as exc:
        raise ConfigError(f"{SETTING}: there is no class {name!r} ({exc})", hint="write module:Class") from exc
    if not isinstance(found, type):
        raise ConfigError(f"{SETTING}: {name!r} is not a class", hint="write module:Class")
    return found


def strict_serializer(types: Mapping[TypeKey, type] | None = None) -> SerializerProtocol:
    """A serializer that holds the types LangGraph knows as safe, and these."""
    from assent.engine.msgpack import StrictSerializer

    return StrictSerializer(types)


def strict_saver(saver: BaseCheckpointSaver[Any], types: Mapping[TypeKey, type]) -> BaseCheckpointSaver[Any]:
    """A shallow copy of `saver` that holds these types too and fails on others, whatever serializer it came with."""
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    strict = copy.copy(saver)
    if isinstance(saver.serde, EncryptedSerializer):
        strict.serde = EncryptedSerializer(saver.serde.cipher, _made_strict(saver.serde.serde, types))
    else:
        strict.serde = _made_strict(saver.serde, types)
    return strict


def _made_strict(serde: SerializerProtocol, types: Mapping[TypeKey, type]) -> SerializerProtocol:
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    from assent.engine.msgpack import StrictSerializer

    if isinstance(serde, StrictSerializer):
        return serde.with_types(types)
    if type(serde) is JsonPlusSerializer:
        return StrictSerializer(types)
    raise ConfigError(f"the serializer {type(serde).__name__} cannot be made strict", hint="leave the saver's own one")
