"""Separates the values that LangGraph injects into a call from values that a caller passes under the same names.

A person does not review the state, the store or the runtime that LangGraph injects. A model, or a tool node of the
author, can pass values under the same names. So a value is left out only if it is the same object that LangGraph holds
for the running task; every other value is an ordinary argument.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, InjectedToolCallId
from langchain_core.tools.base import get_all_basemodel_annotations
from langgraph.config import get_config
from langgraph.prebuilt import InjectedState, ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from pydantic import BaseModel, create_model

from assent.gate.upstream import (
    CONF,
    CONFIG_KEY_NODE_ERROR,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_SCRATCHPAD,
    injected_arguments,
)

RUNTIME = "assent_runtime"
"""The parameter in which a ToolNode passes its runtime to the gate if the author's code does not request one."""

_OWN_TYPES = (ToolRuntime, Runtime, BaseStore)

Hints = Mapping[str, Any]


class Injection:
    """The objects that LangGraph holds for the running task. `given` are the values of a call; they include the runtime
    of the ToolNode if one made the call."""

    def __init__(self, given: Iterable[Any]) -> None:
        self._configurable: Mapping[str, Any] = get_config()[CONF]
        runtimes = (value for value in given if isinstance(value, ToolRuntime))
        self.tool_runtime = next((value for value in runtimes if self._is_of_task(value.config)), None)

    def put_in(self, name: str, value: Any, hint: Any) -> bool:
        """Whether LangGraph injected this value into the parameter."""
        marks = _marks(hint)
        state = next((mark for mark in marks if _is_a(mark, InjectedState)), None)
        if state is not None and self._is_state(value, getattr(state, "field", None)):
            return True
        if value is None:  # where a store or a config was requested, and none exists
            return any(mark is RunnableConfig or _is_a(mark, _OWN_TYPES) for mark in marks)
        if self.tool_runtime is not None and any(_is_a(mark, InjectedToolCallId) for mark in marks):
            return bool(value == self.tool_runtime.tool_call_id)
        return self._is_own(name, value)

    def _is_own(self, name: str, value: Any) -> bool:
        if isinstance(value, ToolRuntime):
            return self._is_of_task(value.config)
        if isinstance(value, Mapping) and self._is_of_task(value):
            return True
        runtime = self._configurable.get(CONFIG_KEY_RUNTIME)
        held = [runtime, self._configurable.get(CONFIG_KEY_NODE_ERROR)]
        held += [getattr(runtime, attribute, None) for attribute in ("store", "stream_writer")]
        held += [getattr(runtime, "previous", None)] if name == "previous" else []
        return any(value is item for item in held)

    def _is_of_task(self, config: Any) -> bool:
        """Compares the scratchpad: no config built by a model or another caller contains this object."""
        configurable = config.get(CONF) if isinstance(config, Mapping) else None
        held = configurable.get(CONFIG_KEY_SCRATCHPAD) if isinstance(configurable, Mapping) else None
        return held is not None and held is self._configurable.get(CONFIG_KEY_SCRATCHPAD)

    def _is_state(self, value: Any, field: str | None) -> bool:
        """Whether the value is the state, or the field of it, of this call's ToolNode. Validation may have copied it,
        with fewer fields where the annotation has fewer."""
        if self.tool_runtime is None:
            return False
        state: Any = self.tool_runtime.state
        if field is not None:
            return _same(value, state.get(field) if isinstance(state, Mapping) else getattr(state, field, None))
        if isinstance(state, list) and isinstance(value, dict):
            state = dict.fromkeys(value, state)  # a ToolNode wraps the messages in a dict
        if isinstance(state, Mapping) and isinstance(value, Mapping) and value:
            return all(name in state and _same(item, state[name]) for name, item in value.items())
        return _same(value, state)


def hints_of(function: Callable[..., Any]) -> Hints:
    """The annotations of its parameters, as far as they resolve."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):  # a name that exists for type checkers only
        return {}


def hints_of_tool(tool: BaseTool) -> Hints:
    schema = tool.args_schema
    fields = {} if schema is None or isinstance(schema, dict) else get_all_basemodel_annotations(schema)
    return {**hints_of(_function_of(tool)), **fields}


def asks_for_runtime(hints: Hints) -> bool:
    """Whether a ToolNode passes its runtime to the author's code: it fills one parameter only."""
    return "runtime" in hints or _has(hints, ToolRuntime)


def with_runtime(schema: Any, hints: Hints) -> Any:
    """Adds the field in which a ToolNode passes its runtime, needed to recognise the injected state. The model does not
    see that field."""
    if not _has(hints, InjectedState) or asks_for_runtime(hints):
        return schema
    if not (inspect.isclass(schema) and issubclass(schema, BaseModel)):
        return schema
    field: Any = (typing.Annotated[Any, ToolRuntime, InjectedToolArg()], None)
    return create_model(schema.__name__, __base__=schema, **{RUNTIME: field})


def runtime_in(given: dict[str, Any]) -> ToolRuntime[Any, Any] | None:
    """Removes the gate's own parameter from the arguments and returns it."""
    runtime = given.pop(RUNTIME, None)
    if runtime is not None and Injection([runtime]).tool_runtime is None:
        raise TypeError(f"{RUNTIME} is set by LangGraph's ToolNode only; the call was not made")
    return runtime  # type: ignore[no-any-return]


def set_by_graph(tool: BaseTool | None) -> frozenset[str]:
    """The arguments that a ToolNode or LangChain sets: a value from the model is dropped."""
    if tool is None:
        return frozenset()
    return set_by_langchain(tool) | injected_arguments(tool)


def set_by_langchain(tool: BaseTool) -> frozenset[str]:
    """The arguments that `BaseTool.run` and the tool's own `_run` overwrite for every caller."""
    methods = (tool._run, tool._arun)
    wrapped = [
        function for function in (getattr(tool, "func", None), getattr(tool, "coroutine", None)) if function is not None
    ]
    names = {
        name for function in (*methods, *wrapped) for name, hint in hints_of(function).items() if hint is RunnableConfig
    }
    names |= {"run_manager" for function in methods if "run_manager" in inspect.signature(function).parameters}
    names |= {"callbacks" for function in wrapped if "callbacks" in inspect.signature(function).parameters}
    return frozenset(names)


def call_id_names(hints: Hints) -> list[str]:
    """The parameters that take the id of the model's call."""
    return [name for name, hint in hints.items() if _has({name: hint}, InjectedToolCallId)]


def _function_of(tool: BaseTool) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or tool._run
    return function


def _marks(hint: Any) -> list[Any]:
    """The types in an annotation and their metadata: X, m and NoneType for `Annotated[X, m] | None`."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return [*_marks(hint.__origin__), *hint.__metadata__]
    if origin in (typing.Union, UnionType):
        return [mark for part in typing.get_args(hint) for mark in _marks(part)]
    return [origin or hint]


def _is_a(mark: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(mark, kind) or (inspect.isclass(mark) and issubclass(mark, kind))


def _has(hints: Hints, kind: type) -> bool:
    return any(_is_a(mark, kind) for hint in hints.values() for mark in _marks(hint))


def _same(value: Any, held: Any) -> bool:
    try:
        return value is held or bool(value == held)
    except Exception:  # noqa: BLE001 - an author's class may compare in any way; if in doubt, the value is shown
        return False
