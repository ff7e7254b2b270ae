"""The serializer of checkpoints: LangGraph's format, with a closed list of types.

Writing: LangGraph encodes, then the bytes are scanned and a type that is not on the list is refused *before* it is
stored; refused only on reading, it would make the thread unreadable. The scan costs about a third of the encoding.
Reading: objects are rebuilt here, because LangGraph's own hook replaces unknown types by a plain dict or None. Listed
types are looked up among the live classes, so no name from the bytes is ever imported; pickle and the JSON format of
old versions are not supported.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any

import ormsgpack

from assent.errors import BlockedType, StateError, UnreadableState
from assent.runs import losses
from assent.runs.checkpoints.serde import require_strict_msgpack, type_key
from assent.runs.checkpoints.types import CheckpointTypes, TypeKey

require_strict_msgpack()

from langgraph.checkpoint.serde import jsonplus  # noqa: E402 - strict mode is read at this import
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer  # noqa: E402
from langgraph.types import Send  # noqa: E402

from assent.runs.checkpoints.upstream import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES, DeltaSnapshot  # noqa: E402

log = logging.getLogger(__name__)

_LISTED_METHODS = frozenset({"fromisoformat"})


class StrictSerializer(JsonPlusSerializer):
    """Accepts LangGraph's safe types, and `types`."""

    def __init__(self, types: CheckpointTypes | None = None) -> None:
        self._types = CheckpointTypes() if types is None else types
        super().__init__(pickle_fallback=False, allowed_msgpack_modules=tuple(self._types) or None)

    def with_types(self, types: CheckpointTypes) -> StrictSerializer:
        return self if self._types.covers(types) else StrictSerializer(self._types | types)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[tuple[str, ...] | type]) -> StrictSerializer:
        """Called by LangGraph with the allowlist of a graph, including subgraphs that a node calls."""
        extra = {(entry if isinstance(entry, tuple) else type_key(entry)): entry for entry in extra_allowlist}
        unknown = extra.keys() - self._types.keys() - SAFE_MSGPACK_TYPES
        classes = {key: _live_class(extra[key]) for key in unknown}
        listed = {(key[0], key[1]): cls for key, cls in classes.items() if cls is not None}
        return self.with_types(CheckpointTypes(listed))

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        try:
            return self._checked(obj)
        except StateError as exc:
            losses.note(exc)
            raise

    def _checked(self, obj: Any) -> tuple[str, bytes]:
        try:
            kind, data = super().dumps_typed(obj)
        except TypeError as exc:
            raise StateError(f"a value of the state cannot be stored: {exc}") from exc
        if kind == "msgpack":
            _Reader(self._types, build=False).read(data)
        return kind, data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, stored = data
        if kind == "msgpack":
            return _Reader(self._types, build=True).read(stored)
        if kind in ("null", "bytes", "bytearray"):
            return super().loads_typed(data)
        raise UnreadableState(f"the checkpoint format {kind} is not supported", hint="only msgpack is supported")


def _live_class(entry: tuple[str, ...] | type) -> type | None:
    if isinstance(entry, type):
        return entry
    value = getattr(sys.modules.get(entry[0]), entry[1], None)
    return value if isinstance(value, type) else None


class _Reader:
    """One pass over stored bytes: checks every type and, with `build`, rebuilds the objects.

    ormsgpack replaces an exception of its hook by a bare ValueError, so the first error is stored and raised last.
    """

    __slots__ = ("_build", "_problem", "_types")

    def __init__(self, types: CheckpointTypes, *, build: bool) -> None:
        self._types = types
        self._build = build
        self._problem: StateError | None = None

    def read(self, data: bytes) -> Any:
        try:
            return self._unpack(data)
        except ValueError as exc:
            problem = self._problem or UnreadableState(f"the stored bytes are damaged: {exc}")
            raise problem from problem.__cause__

    def _unpack(self, data: bytes) -> Any:
        return ormsgpack.unpackb(data, ext_hook=self._hook, option=ormsgpack.OPT_NON_STR_KEYS)

    def _hook(self, code: int, data: bytes) -> Any:
        try:
            return self._object(code, data)
        except StateError as exc:
            self._problem = self._problem or exc
            raise

    def _object(self, code: int, data: bytes) -> Any:
        if code == jsonplus.EXT_DELTA_SNAPSHOT:
            return DeltaSnapshot(self._unpack(data))
        if code == jsonplus.EXT_NUMPY_ARRAY:
            return _array(*self._unpack(data)) if self._build else None
        if code not in _BUILDERS:
            raise UnreadableState(f"the checkpoint holds data of an unknown kind ({code})")
        module, name, payload, *rest = self._unpack(data)
        cls = self._class((module, name), rest[0] if code == jsonplus.EXT_METHOD_SINGLE_ARG else None)
        return _built(code, cls, payload, (module, name)) if self._build else None

    def _class(self, key: TypeKey, method: str | None) -> Any:
        cls = self._types.get(key) or (_safe_class(key) if key in SAFE_MSGPACK_TYPES else None)
        if cls is None:
            raise BlockedType(*key)
        if method is None:
            return cls
        if (*key, method) not in SAFE_MSGPACK_METHODS and not (key in self._types and method in _LISTED_METHODS):
            raise BlockedType(key[0], f"{key[1]}.{method}")
        return getattr(cls, method)


@cache
def _safe_class(key: TypeKey) -> Any:
    return getattr(import_module(key[0]), key[1])


def _built(code: int, cls: Any, payload: Any, key: TypeKey) -> Any:
    try:
        return _BUILDERS[code](cls, payload)
    except Exception as exc:  # a constructor may raise anything, and the error must name the type
        raise UnreadableState(f"a stored {':'.join(key)} cannot be rebuilt: {type(exc).__name__}: {exc}") from exc


def _from_value(cls: Any, value: Any) -> Any:
    if isinstance(cls, type) and issubclass(cls, set | frozenset):
        return cls(_frozen(element) for element in value)
    return cls(value)


def _frozen(value: Any) -> Any:
    """Restores tuples: members of a set are hashable, so a list was a tuple."""
    return tuple(_frozen(element) for element in value) if isinstance(value, list) else value


def _from_values(cls: Any, values: list[Any]) -> Any:
    if cls is Send and len(values) > 2:
        return Send(values[0], values[1], timeout=values[2])
    return cls(*values)


def _from_fields(cls: Any, values: dict[str, Any]) -> Any:
    """Fields that the constructor does not take (`init=False`) are set afterwards."""
    later = {f.name for f in dataclasses.fields(cls) if not f.init} if dataclasses.is_dataclass(cls) else set()
    made = cls(**{name: value for name, value in values.items() if name not in later})
    for name in later & values.keys():
        object.__setattr__(made, name, values[name])
    return made


def _from_model(cls: Any, values: dict[str, Any]) -> Any:
    """Retries by field name if the model expects aliases, then without validation if it has new required fields."""
    try:
        return cls(**values)
    except (TypeError, ValueError) as exc:
        first = exc
    if not hasattr(cls, "model_validate"):
        return cls.construct(**values)
    try:
        return cls.model_validate(values, by_name=True)
    except (TypeError, ValueError):
        log.warning("validate stored %s failed, using it unvalidated: %s", cls.__name__, first)
        return cls.model_construct(**values)


def _array(dtype: str, shape: list[int], order: Any, buffer: bytes) -> Any:
    import numpy  # type: ignore[import-not-found, unused-ignore] # present only if the author uses it

    return numpy.frombuffer(buffer, dtype=numpy.dtype(dtype)).reshape(shape, order=order)


_BUILDERS: dict[int, Callable[[Any, Any], Any]] = {
    jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG: _from_value,
    jsonplus.EXT_CONSTRUCTOR_POS_ARGS: _from_values,
    jsonplus.EXT_CONSTRUCTOR_KW_ARGS: _from_fields,
    jsonplus.EXT_METHOD_SINGLE_ARG: _from_value,
    jsonplus.EXT_PYDANTIC_V1: _from_model,
    jsonplus.EXT_PYDANTIC_V2: _from_model,
}
