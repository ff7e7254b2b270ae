"""Loads what `langgraph.json` names: graphs, the auth object, the app with custom routes.

Importing this module imports no LangGraph: a project without graphs must start fast, and strict checkpoints have to be
on before LangGraph is there. A graph that does not load is reported beside the others; an auth file that does not load
stops the start, because a server without its guard is open.

The functions run the author's modules, which may block or call `asyncio.run`: call them before the event loop starts,
or in a thread.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from assent.domain import webhook_rules
from assent.domain.webhook_rules import WebhookRules
from assent.engine.graphs import FactoryGraph, GraphSpec, StaticGraph, compiled
from assent.engine.imports import LoadError, authors_code, import_object, put_on_path
from assent.engine.manifest import GraphEntry, Manifest, MemorySection
from assent.engine.serde import VARIABLE, TypeKey, listed_types, require_strict_msgpack

if TYPE_CHECKING:
    from langgraph_sdk import Auth
    from starlette.types import ASGIApp

log = logging.getLogger(__name__)

__all__ = [
    "GraphSpec",
    "LoadError",
    "LoadedGraphs",
    "load_app",
    "load_auth",
    "load_graphs",
    "load_webhook_rules",
    "prepare",
]


AUTH_PARAMETERS = frozenset(
    {
        *("request", "body", "path", "method", "path_params", "query_params", "headers", "authorization"),
        *("scope", "scopes", "user"),
    }
)
"""What an `@auth.authenticate` handler may ask for, by the names of its parameters."""


@dataclass(frozen=True, slots=True)
class LoadedGraphs:
    """Each graph of the manifest is in exactly one of the two. An error's `details` is the author's traceback."""

    graphs: Mapping[str, GraphSpec]
    failures: Mapping[str, LoadError]
    memory: MemorySection = field(default_factory=MemorySection)
    webhooks: WebhookRules = field(default_factory=WebhookRules)
    auth: Auth | None = None
    app: ASGIApp | None = None
    prefix: str = ""


def prepare(manifest: Manifest) -> None:
    """Makes the project importable: strict checkpoints, its environment, its folders. A second call changes nothing."""
    require_strict_msgpack()
    for name, value in manifest.env.items():
        if name != VARIABLE:
            os.environ.setdefault(name, value)  # what the operator exported wins over the project's file
    put_on_path(manifest.roots)


def load_graphs(manifest: Manifest, *, checkpoint_types: Iterable[str] = ()) -> LoadedGraphs:
    """Loads every graph. `checkpoint_types` are further types, as `module:Class`, that states may hold."""
    if not manifest.graphs:
        return LoadedGraphs({}, {})
    prepare(manifest)
    types = listed_types([*checkpoint_types, *manifest.checkpoint_types])
    graphs: dict[str, GraphSpec] = {}
    failures: dict[str, LoadError] = {}
    for name, entry in manifest.graphs.items():
        try:
            with authors_code(entry.source, manifest.roots):
                graphs[name] = _load_graph(entry, manifest, types)
        except LoadError as exc:
            log.error("graph %r was not loaded: %s\n%s", name, exc, exc.details)
            failures[name] = exc
    return LoadedGraphs(graphs, failures, manifest.memory)


def _load_graph(entry: GraphEntry, manifest: Manifest, types: Mapping[TypeKey, type]) -> GraphSpec:
    from langgraph.graph import StateGraph
    from langgraph.pregel import Pregel

    made = import_object(entry.source, manifest.roots)
    if isinstance(made, StateGraph | Pregel):
        graph = compiled(made, entry.name)
        _note_own_persistence(entry.name, graph)
        return StaticGraph(entry.name, entry.description, types, graph)
    if callable(made) and not hasattr(made, "__aenter__") and not hasattr(made, "__enter__"):
        return FactoryGraph(entry.name, entry.description, types, made)
    raise LoadError(f"{entry.source.text}: a {type(made).__name__} is not a graph", hint=_not_a_graph(made))


def _note_own_persistence(name: str, graph: Any) -> None:
    own = [part for part in ("checkpointer", "store") if getattr(graph, part) not in (None, False)]
    if own:
        log.warning("graph %r brings its own %s; Assent's is used instead", name, " and ".join(own))


def _not_a_graph(made: Any) -> str:
    if hasattr(made, "__aenter__") or inspect.isawaitable(made):
        return "name the function itself, not what it returns"
    return "name a StateGraph, a compiled graph, or a function that makes one"


def load_webhook_rules(manifest: Manifest) -> WebhookRules:
    """Which addresses the project's runs may name, with the headers of its own filled in from the environment."""
    prepare(manifest)
    return webhook_rules.read(manifest.webhooks, os.environ)


def load_auth(manifest: Manifest) -> Auth | None:
    """The author's `langgraph_sdk.Auth`. Anything else in its place is an error, never an open server."""
    if manifest.auth is None:
        return None
    prepare(manifest)
    from langgraph_sdk import Auth

    with authors_code(manifest.auth.source, manifest.roots):
        made = import_object(manifest.auth.source, manifest.roots)
    if not isinstance(made, Auth):
        raise LoadError(f"auth.path: {manifest.auth.source.text} is a {type(made).__name__}", hint="auth = Auth()")
    _check_authenticate(made._authenticate_handler, manifest.auth.source.text)
    return made


def _check_authenticate(handler: Any, source: str) -> None:
    if handler is None:
        raise LoadError(f"auth.path: {source} has no @auth.authenticate handler, so nobody could call")
    for name, parameter in inspect.signature(handler).parameters.items():
        if name not in AUTH_PARAMETERS and parameter.default is parameter.empty:
            raise LoadError(
                f"auth.path: {source}: @auth.authenticate asks for {name!r}, which no request has",
                hint=f"it can ask for {', '.join(sorted(AUTH_PARAMETERS))}",
            )


def load_app(manifest: Manifest) -> ASGIApp | None:
    """The author's ASGI app with custom routes."""
    if manifest.http.app is None:
        return None
    prepare(manifest)
    with authors_code(manifest.http.app, manifest.roots):
        made: Any = import_object(manifest.http.app, manifest.roots)
    if not callable(made) or (inspect.isfunction(made) and len(inspect.signature(made).parameters) != 3):
        raise LoadError(f"http.app: {manifest.http.app.text} is not an ASGI app", hint="app = FastAPI()")
    return cast("ASGIApp", made)
