"""Loaded graphs: compiled, as a builder, or made by a factory function for every run.

`open` returns a graph with our checkpointer and store, which replace the author's on a shallow copy. `Pregel.copy` is
not used because it drops the type list of `compile` (see `serde`).
"""

from __future__ import annotations

import copy
import inspect
import typing
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from assent.errors import LoadError
from assent.gate.graphs import is_gated, marks_of
from assent.review.model.secrets import Path
from assent.runs import losses
from assent.runs.checkpoints.state_types import state_types
from assent.runs.checkpoints.strict import strict_saver
from assent.runs.checkpoints.types import CheckpointTypes

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.pregel import Pregel
    from langgraph.store.base import BaseStore

    AnyPregel: TypeAlias = Pregel[Any, Any, Any, Any]
    Saver: TypeAlias = BaseCheckpointSaver[Any]

Access = Literal["threads.create_run", "threads.update", "threads.read", "assistants.read"]
"""The purpose of opening a graph. Factories receive it, so that they need not connect if only the shape is read."""

_UNNAMED = "LangGraph"
_CACHED = 8


@dataclass(frozen=True, slots=True)
class Opening:
    """The arguments of opening a graph, available to factories."""

    config: Mapping[str, Any]
    checkpointer: Saver | None
    store: BaseStore | None
    access: Access
    user: Any
    context: Any


class GraphSpec(ABC):
    """One entry of `graphs` in langgraph.json, ready to be opened."""

    def __init__(self, name: str, description: str | None, types: CheckpointTypes) -> None:
        self.name = name
        self.description = description
        self.gated = False
        """Whether the graph contains the gate. For a factory, it is determined when the first graph is made."""
        self.marks: dict[str, frozenset[Path]] = {}
        """Paths marked as secret in the tools' schemas, by tool. For a factory, those of its first graph."""
        self._types = types

    @property
    def title(self) -> str:
        """The name of its own assistant."""
        return self.name

    def open(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        checkpointer: Saver | None,
        store: BaseStore | None,
        access: Access = "threads.create_run",
        user: Any = None,
        context: Any = None,
    ) -> AbstractAsyncContextManager[AnyPregel]:
        """The graph with our checkpointer and store, valid inside the `async with` only.

        Its exit raises the store error that aborted the run, or the first failed write of a run that did not fail.
        """
        return _Watched(self._open(Opening(config or {}, checkpointer, store, access, user, context)))

    @abstractmethod
    def _open(self, opening: Opening) -> AbstractAsyncContextManager[AnyPregel]: ...

    def _bound(self, graph: AnyPregel, opening: Opening) -> AnyPregel:
        self.gated = self.gated or is_gated(graph)
        self.marks = self.marks or marks_of(graph)
        bound = copy.copy(graph)
        types = self._types | state_types(graph)
        bound.checkpointer = None if opening.checkpointer is None else strict_saver(opening.checkpointer, types)
        bound.store = opening.store
        if bound.name == _UNNAMED:
            bound.name = self.name
        return bound


class _Watched(AbstractAsyncContextManager["AnyPregel"]):
    """An opened graph that raises failed store calls at its exit (see `losses`)."""

    __slots__ = ("_lost", "_opened")

    def __init__(self, opened: AbstractAsyncContextManager[AnyPregel]) -> None:
        self._opened = opened
        self._lost: list[Exception] = []

    async def __aenter__(self) -> AnyPregel:
        self._lost = losses.watch()
        return await self._opened.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        handled = await self._opened.__aexit__(kind, error, trace)
        if (loss := losses.raised_for(self._lost, error)) is not None and loss is not error:
            raise loss from error
        return handled


class StaticGraph(GraphSpec):
    """A graph that is the same for every run. Reopening it on the same checkpointer costs a shallow copy."""

    def __init__(self, name: str, description: str | None, types: CheckpointTypes, graph: AnyPregel) -> None:
        super().__init__(name, description, types)
        self.gated = is_gated(graph)
        self.marks = marks_of(graph)
        self._graph = graph
        self._opened: dict[int, tuple[AnyPregel, Opening]] = {}

    @property
    def title(self) -> str:
        return self.name if self._graph.name == _UNNAMED else self._graph.name

    def _open(self, opening: Opening) -> AbstractAsyncContextManager[AnyPregel]:
        key = id(opening.checkpointer)
        if key not in self._opened:
            if len(self._opened) >= _CACHED:
                self._opened.clear()
            # The opening keeps its checkpointer alive, because ids of dead objects are reused.
            self._opened[key] = (self._bound(self._graph, opening), opening)
        opened = copy.copy(self._opened[key][0])
        opened.store = opening.store
        return nullcontext(opened)


class FactoryGraph(GraphSpec):
    """A function that makes the graph, called each time the graph is opened."""

    def __init__(self, name: str, description: str | None, types: CheckpointTypes, factory: Callable[..., Any]) -> None:
        super().__init__(name, description, types)
        self._factory = factory
        self._config_parameter, self._runtime_parameter = factory_parameters(factory)

    @asynccontextmanager
    async def _open(self, opening: Opening) -> AsyncIterator[AnyPregel]:
        async with AsyncExitStack() as stack:
            made = await _entered(self._factory(**self._arguments(opening)), stack)
            yield self._bound(compiled(made, self.name), opening)

    def _arguments(self, opening: Opening) -> dict[str, Any]:
        arguments: dict[str, Any] = {}
        if self._config_parameter is not None:
            arguments[self._config_parameter] = _factory_config(opening)
        if self._runtime_parameter is not None:
            arguments[self._runtime_parameter] = _server_runtime(opening)
        return arguments


def compiled(made: Any, name: str) -> AnyPregel:
    from langgraph.graph import StateGraph
    from langgraph.pregel import Pregel

    if isinstance(made, StateGraph):
        return made.compile()
    if isinstance(made, Pregel):
        return made
    raise LoadError(f"{name}: a {type(made).__name__} is not a graph", hint="give a StateGraph or a compiled graph")


async def _entered(made: Any, stack: AsyncExitStack) -> Any:
    """Awaits the factory's result and enters it as a context manager, if needed."""
    if inspect.isawaitable(made):
        made = await made
    if hasattr(made, "__aenter__"):
        return await stack.enter_async_context(made)
    if hasattr(made, "__enter__"):
        return stack.enter_context(made)
    return made


def _factory_config(opening: Opening) -> dict[str, Any]:
    """A copy, because some factories modify it."""
    for_execution = {"__is_for_execution__": opening.access == "threads.create_run"}
    return {**opening.config, "configurable": {**opening.config.get("configurable", {}), **for_execution}}


def _server_runtime(opening: Opening) -> Any:
    from langgraph_sdk import runtime

    shared: dict[str, Any] = {"access_context": opening.access, "user": opening.user, "store": opening.store}
    if opening.access == "threads.create_run":
        return runtime._ExecutionRuntime(**shared, context=copy.copy(opening.context))
    return runtime._ReadRuntime(**shared)


def factory_parameters(factory: Callable[..., Any]) -> tuple[str | None, str | None]:
    """The names of the config parameter and the ServerRuntime parameter, in any order."""
    config: list[str] = []
    runtime: list[str] = []
    hints = _hints(factory)
    for name, parameter in inspect.signature(factory).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if _is_runtime(hints.get(name, parameter.annotation)):
            runtime.append(name)
        elif parameter.default is parameter.empty or name == "config":
            config.append(name)
    if len(config) > 1 or len(runtime) > 1:
        raise LoadError(
            f"{getattr(factory, '__name__', factory)}({', '.join(config + runtime)}) takes too many arguments",
            hint="a factory takes a RunnableConfig and a ServerRuntime, both, or neither",
        )
    return next(iter(config), None), next(iter(runtime), None)


def _hints(factory: Callable[..., Any]) -> dict[str, Any]:
    from langchain_core.runnables import RunnableConfig
    from langgraph_sdk.runtime import ServerRuntime

    names = {"ServerRuntime": ServerRuntime, "RunnableConfig": RunnableConfig}
    try:
        return typing.get_type_hints(factory, localns=names)
    except (NameError, TypeError, AttributeError):  # a name that exists for type checkers only
        return {}


def _is_runtime(annotation: Any) -> bool:
    """`ServerRuntime`, `ServerRuntime[Context]`, one of its two variants, or any of these in an Annotated."""
    from langgraph_sdk import runtime

    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2] == "ServerRuntime"
    if typing.get_origin(annotation) is typing.Annotated:
        return _is_runtime(annotation.__origin__)
    annotation = typing.get_origin(annotation) or annotation
    return annotation in (runtime.ServerRuntime, runtime._ExecutionRuntime, runtime._ReadRuntime)
