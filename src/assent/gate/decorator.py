"""`@gated`: the gate of a single tool or function, in any graph.

What is approved is the name and the arguments. A tool is known by the id of the model's call; a function that no model
calls by its task, its arguments, and how many such calls the task has made before.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from types import UnionType
from typing import Any, TypeVar, overload

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg
from langgraph.prebuilt import ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import Verb, Verdict
from assent.gate import results
from assent.gate.graphs import MARK
from assent.gate.inbox import keeper_for
from assent.gate.keeper import Keeper
from assent.gate.passing import adrive, drive, through
from assent.gate.questions import VERBS, Asking, args_schema, prohibition, rejection
from assent.gate.task import Task

T = TypeVar("T")

_RUNTIME = "assent_runtime"
_INJECTED = (ToolRuntime, Runtime, BaseStore, InjectedToolArg)
_INJECTED_NAMES = frozenset({"config", "runtime", "store", "writer", "previous"})


class Declined(Exception):
    """A person has turned the call down, or the policy never lets it run. It was not made."""


@overload
def gated(function: T, /) -> T: ...


@overload
def gated(*, name: str | None = None, idempotent: bool = False, inbox: Keeper | None = None) -> Callable[[T], T]: ...


def gated(
    function: Any = None, /, *, name: str | None = None, idempotent: bool = False, inbox: Keeper | None = None
) -> Any:
    """Lets a function or a tool run only after a person agreed to exactly this call.

    Stands above or below `@tool`, and on plain functions and nodes. A tool that is turned down returns what was said; a
    function raises `Declined`. With `idempotent`, the function gives `current_grant().id` to whom it calls, and is
    tried again by itself after a crash.
    """
    if function is None:
        return functools.partial(gated, name=name, idempotent=idempotent, inbox=inbox)
    if isinstance(function, BaseTool):
        return _gated_tool(function, idempotent, inbox)
    gate = _FunctionGate(function, name or function.__name__, idempotent, inbox)
    return _async_wrapper(gate) if inspect.iscoroutinefunction(function) else _wrapper(gate)


class _Guarded:
    """A call before the gate; see `passing.Guarded`."""

    listed: bool | None = True
    conditional = False

    def __init__(self, name: str, call_id: str | None, idempotent: bool, schema: Json, args: Json, task: Task) -> None:
        try:
            hashed = canonical.digest_text(f"{task.ns} {name} {canonical.text(args)}")
        except canonical.NotJson as error:
            raise TypeError(f"{name} is gated, so its arguments must be JSON: {error}") from None
        self.name = name
        self.args = args
        self.idempotent = idempotent
        self.call_id = call_id or f"{name}:{hashed[:24]}:{task.count(hashed)}"
        self._of_model = call_id is not None
        self._schema = schema

    def asking(self) -> Asking:
        said = f"Tool execution requires approval\n\nTool: {self.name}\nArgs: {self.args}"
        return Asking(said, VERBS if self._of_model else VERBS[:3], self._schema)

    def declined(self, verdict: Verdict) -> Any:
        if verdict.verb is Verb.RESPOND:
            return self._said(verdict.message or "", failed=False)
        return self._said(rejection(self.name, self.call_id, verdict.message), failed=True)

    def forbidden(self, rule: str) -> Any:
        return self._said(prohibition(self.name, rule), failed=True)

    def edited(self, result: Any, args: Json) -> Any:
        return result

    def again(self, recorded: Json) -> Any:
        said = results.settled(recorded)
        if said is None:
            return results.restored(recorded)
        return self._said(said, failed=recorded["doubt"] != "done")

    def _said(self, text: str, *, failed: bool) -> Any:
        """Words are a result for a model only."""
        if self._of_model:
            return text
        if failed:
            raise Declined(text)
        return None


class _GuardedTool(_Guarded):
    def _said(self, text: str, *, failed: bool) -> Any:
        if not self._of_model:
            return super()._said(text, failed=failed)
        status: typing.Literal["success", "error"] = "error" if failed else "success"
        return ToolMessage(text, name=self.name, tool_call_id=self.call_id, status=status)


class _FunctionGate:
    """What is known of a gated function before it is called."""

    def __init__(self, function: Callable[..., Any], name: str, idempotent: bool, inbox: Keeper | None) -> None:
        self.function = function
        self.name = name
        self.idempotent = idempotent
        self.inbox = inbox
        self.signature = inspect.signature(function)
        self._injected = frozenset(_injected(function, self.signature))

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[inspect.BoundArguments, dict[str, Json]]:
        """All arguments, and those that a person is asked about: what LangGraph puts in is none of theirs."""
        bound = self.signature.bind(*args, **kwargs)
        return bound, {name: value for name, value in bound.arguments.items() if name not in self._injected}

    def guarded(self, task: Task, args: Json, runtime: ToolRuntime[Any, Any] | None) -> _Guarded:
        call_id = runtime.tool_call_id if runtime else None
        return _Guarded(self.name, call_id, self.idempotent, None, args, task)

    def call(self, bound: inspect.BoundArguments, args: Mapping[str, Any]) -> Any:
        """With the arguments as they were approved, and with what LangGraph put in."""
        unknown = sorted(args.keys() - self.signature.parameters.keys())
        if unknown:
            raise TypeError(f"{self.name} takes no argument {unknown[0]!r}")
        kept = {name: value for name, value in bound.arguments.items() if name in self._injected}
        whole = inspect.BoundArguments(self.signature, OrderedDict())
        for name in self.signature.parameters:
            if name in kept or name in args:
                whole.arguments[name] = kept[name] if name in kept else args[name]
        return self.function(*whole.args, **whole.kwargs)


def _wrapper(gate: _FunctionGate) -> Callable[..., Any]:
    @functools.wraps(gate.function)
    def wrapper(*args: Any, assent_runtime: Any = None, **kwargs: Any) -> Any:
        task, keeper = Task.current(), keeper_for(gate.inbox)
        bound, shown = gate.split(args, kwargs)
        with task.turn():
            guarded = gate.guarded(task, shown, assent_runtime)
            steps = through(task, keeper, guarded, shown, guarded.call_id)
            return drive(steps, keeper, lambda approved: gate.call(bound, approved))

    return _signed(wrapper, gate)


def _async_wrapper(gate: _FunctionGate) -> Callable[..., Any]:
    @functools.wraps(gate.function)
    async def wrapper(*args: Any, assent_runtime: Any = None, **kwargs: Any) -> Any:
        task, keeper = Task.current(), keeper_for(gate.inbox)
        bound, shown = gate.split(args, kwargs)
        async with task.aturn():
            guarded = gate.guarded(task, shown, assent_runtime)
            steps = through(task, keeper, guarded, shown, guarded.call_id)
            return await adrive(steps, keeper, lambda approved: gate.call(bound, approved))

    return _signed(wrapper, gate)


def _signed(wrapper: Callable[..., Any], gate: _FunctionGate) -> Callable[..., Any]:
    """Seen from outside it takes what the function takes, and what tells a ToolNode to name the model's call."""
    extra = inspect.Parameter(_RUNTIME, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ToolRuntime)
    parameters = list(gate.signature.parameters.values())
    rest = [one for one in parameters if one.kind is inspect.Parameter.VAR_KEYWORD]
    named = [one for one in parameters if one.kind is not inspect.Parameter.VAR_KEYWORD]
    wrapper.__signature__ = gate.signature.replace(parameters=[*named, extra, *rest])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {**gate.function.__annotations__, _RUNTIME: ToolRuntime}
    setattr(wrapper, MARK, True)
    return wrapper


class _ToolGate:
    """What is known of a gated tool before it is called."""

    def __init__(self, kind: type[BaseTool], idempotent: bool, inbox: Keeper | None) -> None:
        self.kind = kind
        self.idempotent = idempotent
        self.inbox = inbox

    def guarded(self, tool: BaseTool, given: Any, call_id: str | None, task: Task) -> _GuardedTool:
        shown = tool._filter_injected_args(given) if isinstance(given, dict) else {"input": given}
        return _GuardedTool(tool.name, call_id, self.idempotent, args_schema(tool), shown, task)

    def input(self, given: Any, shown: Json, approved: Json) -> Any:
        """The arguments as they were approved, and what LangGraph put in beside them."""
        if not isinstance(given, dict):
            return approved["input"]
        return {**{name: value for name, value in given.items() if name not in shown}, **approved}


def _gated_tool(tool: BaseTool, idempotent: bool, inbox: Keeper | None) -> BaseTool:
    """The same tool, of a class that puts the gate around its `run`: there the arguments are still the model's own."""
    kind = type(tool)
    members = _members(_ToolGate(kind, idempotent, inbox))
    copied = tool.model_copy()
    copied.__class__ = type(kind.__name__, (kind,), {**members, MARK: True, "__module__": kind.__module__})
    return copied


def _members(gate: _ToolGate) -> dict[str, Callable[..., Any]]:
    def run(self: BaseTool, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        task, keeper = Task.current(), keeper_for(gate.inbox)

        def make(approved: Json) -> Any:
            given = gate.input(tool_input, call.args, approved)
            return gate.kind.run(self, given, *args, tool_call_id=tool_call_id, **kwargs)

        with task.turn():
            call = gate.guarded(self, tool_input, tool_call_id, task)
            return drive(through(task, keeper, call, call.args, call.call_id), keeper, make)

    async def arun(self: BaseTool, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        task, keeper = Task.current(), keeper_for(gate.inbox)

        async def make(approved: Json) -> Any:
            given = gate.input(tool_input, call.args, approved)
            return await gate.kind.arun(self, given, *args, tool_call_id=tool_call_id, **kwargs)

        async with task.aturn():
            call = gate.guarded(self, tool_input, tool_call_id, task)
            return await adrive(through(task, keeper, call, call.args, call.call_id), keeper, make)

    return {"run": run, "arun": arun}


def _injected(function: Callable[..., Any], signature: inspect.Signature) -> Iterator[str]:
    """The parameters that LangGraph fills in: by their type, or, where they have none, by their name."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):  # a name that exists for type checkers only
        hints = {}
    for name, parameter in signature.parameters.items():
        untyped = name not in hints and parameter.annotation is parameter.empty
        if _is_injected(hints.get(name)) or (untyped and name in _INJECTED_NAMES):
            yield name


def _is_injected(hint: Any) -> bool:
    """`ToolRuntime`, `Runtime[Context]`, a config, a store; any of these or nothing; what LangChain calls injected."""
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _is_injected(hint.__origin__) or any(map(_is_injected, hint.__metadata__))
    if origin in (typing.Union, UnionType):
        return any(map(_is_injected, typing.get_args(hint)))
    kind = origin or hint
    if kind is RunnableConfig:
        return True
    return issubclass(kind if inspect.isclass(kind) else type(kind), _INJECTED)
