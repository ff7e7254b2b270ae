"""`@gated`: the gate of a single tool or function, in any graph.

A person approves the name and the arguments. The id of the model's call identifies a tool call; the task, the
arguments and the number of equal calls before it identify the call of a function that no model calls.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolRuntime

from assent.gate import injection, results
from assent.gate.graphs import MARK
from assent.gate.injection import RUNTIME, Injection
from assent.gate.passing import adrive, drive, through
from assent.gate.places import Place, akeeper_for, checked, keeper_for
from assent.gate.questions import VERBS, Asking, args_schema, description, prohibition, rejection
from assent.gate.task import Task
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.questions import Verb, Verdict

T = TypeVar("T")


class Declined(Exception):
    """A person rejected the call, or the policy forbids it. It was not made."""


@overload
def gated(function: T, /) -> T: ...


@overload
def gated(*, name: str | None = None, idempotent: bool = False, inbox: Place | None = None) -> Callable[[T], T]: ...


def gated(
    function: Any = None, /, *, name: str | None = None, idempotent: bool = False, inbox: Place | None = None
) -> Any:
    """Lets a function or a tool run only after a person approved exactly this call.

    Goes above or below `@tool`, and on plain functions and nodes. A rejected tool returns the reviewer's message; a
    rejected function raises `Declined`. With `idempotent`, the function passes `current_grant().id` to the service it
    calls as an idempotency key, and is retried automatically after a crash.
    """
    inbox = checked(inbox)
    if function is None:
        return functools.partial(gated, name=name, idempotent=idempotent, inbox=inbox)
    if isinstance(function, BaseTool):
        return _gated_tool(function, idempotent, inbox)
    gate = _FunctionGate(function, name or function.__name__, idempotent, inbox)
    return _async_wrapper(gate) if inspect.iscoroutinefunction(function) else _wrapper(gate)


class _Guarded:
    """A call before the gate; see `passing.Guarded`."""

    listed: bool | None = True

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
        text = description("Tool execution requires approval", self.name, self.args, self._schema)
        return Asking(text, VERBS if self._of_model else VERBS[:3], self._schema)

    def declined(self, verdict: Verdict) -> Any:
        if verdict.verb is Verb.RESPOND:
            return self._said(verdict.message or "", failed=False)
        return self._said(rejection(self.name, self.call_id, verdict.message), failed=True)

    def forbidden(self, rule: str) -> Any:
        return self._said(prohibition(self.name, rule), failed=True)

    def edited(self, result: Any, args: Json) -> Any:
        return result

    def commented(self, result: Any, comments: str) -> Any:
        return results.with_comments(result, comments) if self._of_model else result

    def again(self, recorded: Json) -> Any:
        text = results.settled(recorded)
        if text is None:
            return results.restored(recorded)
        return self._said(text, failed=recorded["doubt"] != "done")

    def _said(self, text: str, *, failed: bool) -> Any:
        """Only a model gets text as a result; other callers get an exception or None."""
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


@dataclass(frozen=True, slots=True)
class _Split:
    """The arguments of a call: those that a person reviews, and those that LangGraph injected."""

    shown: dict[str, Json]
    hidden: dict[str, Any]
    call_id: str | None = None


class _FunctionGate:
    """The static facts about a gated function."""

    def __init__(self, function: Callable[..., Any], name: str, idempotent: bool, inbox: Place | None) -> None:
        self.function = function
        self.name = name
        self.idempotent = idempotent
        self.inbox = inbox
        self.signature = inspect.signature(function)
        self.hints = injection.hints_of(function)

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Split:
        runtime = injection.runtime_in(kwargs)
        bound = self.signature.bind(*args, **kwargs).arguments
        graph = Injection([runtime, *bound.values()])
        hidden = {name: value for name, value in bound.items() if graph.put_in(name, value, self.hints.get(name))}
        shown = {name: value for name, value in bound.items() if name not in hidden}
        return _Split(shown, hidden, graph.tool_runtime.tool_call_id if graph.tool_runtime else None)

    def guarded(self, task: Task, split: _Split) -> _Guarded:
        return _Guarded(self.name, split.call_id, self.idempotent, None, split.shown, task)

    def call(self, hidden: Mapping[str, Any], args: Mapping[str, Any]) -> Any:
        """Calls the function with the approved arguments and the injected ones."""
        unknown = sorted(args.keys() - (self.signature.parameters.keys() - hidden.keys()))
        if unknown:
            raise TypeError(f"{self.name} takes no argument {unknown[0]!r}")
        whole = inspect.BoundArguments(self.signature, OrderedDict())
        values = {**args, **hidden}
        whole.arguments.update((name, values[name]) for name in self.signature.parameters if name in values)
        return self.function(*whole.args, **whole.kwargs)


def _wrapper(gate: _FunctionGate) -> Callable[..., Any]:
    @functools.wraps(gate.function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        task, keeper = Task.current(), keeper_for(gate.inbox)
        split = gate.split(args, kwargs)
        with task.turn():
            guarded = gate.guarded(task, split)
            steps = through(task, keeper, guarded, split.shown, guarded.call_id)
            return drive(steps, keeper, lambda approved: gate.call(split.hidden, approved))

    return _signed(wrapper, gate)


def _async_wrapper(gate: _FunctionGate) -> Callable[..., Any]:
    @functools.wraps(gate.function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        task, keeper = Task.current(), await akeeper_for(gate.inbox)
        split = gate.split(args, kwargs)
        async with task.aturn():
            guarded = gate.guarded(task, split)
            steps = through(task, keeper, guarded, split.shown, guarded.call_id)
            return await adrive(steps, keeper, lambda approved: gate.call(split.hidden, approved))

    return _signed(wrapper, gate)


def _signed(wrapper: Callable[..., Any], gate: _FunctionGate) -> Callable[..., Any]:
    """Gives the wrapper the function's signature plus the parameter in which a ToolNode passes its runtime."""
    setattr(wrapper, MARK, True)
    if injection.asks_for_runtime(gate.hints):
        return wrapper
    extra = inspect.Parameter(RUNTIME, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ToolRuntime)
    parameters = list(gate.signature.parameters.values())
    rest = [parameter for parameter in parameters if parameter.kind is inspect.Parameter.VAR_KEYWORD]
    named = [parameter for parameter in parameters if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    wrapper.__signature__ = gate.signature.replace(parameters=[*named, extra, *rest])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {**gate.function.__annotations__, RUNTIME: ToolRuntime}
    return wrapper


class _ToolGate:
    """The static facts about a gated tool."""

    def __init__(self, kind: type[BaseTool], idempotent: bool, inbox: Place | None) -> None:
        self.kind = kind
        self.idempotent = idempotent
        self.inbox = inbox

    def split(self, tool: BaseTool, given: Any, call_id: str | None) -> _Split:
        """Leaves out the arguments that LangChain overwrites: a person must not review a value that is not used."""
        if not isinstance(given, dict):
            return _Split({"input": given}, {}, call_id)
        rest = dict(given)
        runtime, hints = injection.runtime_in(rest), injection.hints_of_tool(tool)
        graph = Injection([runtime, *rest.values()])
        unused = injection.set_by_langchain(tool)
        hidden = {name: call_id for name in injection.call_id_names(hints) if name in rest and call_id is not None}
        shown: dict[str, Json] = {}
        for name, value in rest.items():
            if name not in unused and name not in hidden:
                (hidden if graph.put_in(name, value, hints.get(name)) else shown)[name] = value
        return _Split(shown, hidden, call_id)

    def guarded(self, tool: BaseTool, split: _Split, task: Task) -> _GuardedTool:
        return _GuardedTool(tool.name, split.call_id, self.idempotent, args_schema(tool), split.shown, task)

    def input(self, given: Any, split: _Split, approved: Json) -> Any:
        """The approved arguments and the injected ones."""
        return {**split.hidden, **approved} if isinstance(given, dict) else approved["input"]


def _gated_tool(tool: BaseTool, idempotent: bool, inbox: Place | None) -> BaseTool:
    """A copy of the tool whose class puts the gate around `run`, where the arguments are still those of the model."""
    kind = type(tool)
    members = _members(_ToolGate(kind, idempotent, inbox))
    copied = tool.model_copy()
    copied.__class__ = type(kind.__name__, (kind,), {**members, MARK: True, "__module__": kind.__module__})
    return copied


def _members(gate: _ToolGate) -> dict[str, Callable[..., Any]]:
    def run(self: BaseTool, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        task, keeper = Task.current(), keeper_for(gate.inbox)
        split = gate.split(self, tool_input, tool_call_id)

        def make(approved: Json) -> Any:
            call_input = gate.input(tool_input, split, approved)
            return gate.kind.run(self, call_input, *args, tool_call_id=tool_call_id, **kwargs)

        with task.turn():
            call = gate.guarded(self, split, task)
            return drive(through(task, keeper, call, call.args, call.call_id), keeper, make)

    async def arun(self: BaseTool, tool_input: Any, *args: Any, tool_call_id: str | None = None, **kwargs: Any) -> Any:
        task, keeper = Task.current(), await akeeper_for(gate.inbox)
        split = gate.split(self, tool_input, tool_call_id)

        async def make(approved: Json) -> Any:
            call_input = gate.input(tool_input, split, approved)
            return await gate.kind.arun(self, call_input, *args, tool_call_id=tool_call_id, **kwargs)

        async with task.aturn():
            call = gate.guarded(self, split, task)
            return await adrive(through(task, keeper, call, call.args, call.call_id), keeper, make)

    def get_input_schema(self: BaseTool, config: RunnableConfig | None = None) -> Any:
        return injection.with_runtime(gate.kind.get_input_schema(self, config), injection.hints_of_tool(self))

    return {"run": run, "arun": arun, "get_input_schema": get_input_schema}
