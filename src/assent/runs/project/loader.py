"""Loads the objects that `langgraph.json` names: graphs, the auth object, the app with custom routes.

This module does not import LangGraph at import time: a project without graphs must start fast, and strict checkpoints
have to be enabled first. A graph that fails to load is reported with the others; an auth file that fails to load stops
the start, because a server without it is open.

The functions run the author's modules, which may block or call `asyncio.run`: call them before the event loop starts,
or in a thread.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assent.errors import LoadError
from assent.identity.auth_users import AUTH_PARAMETERS
from assent.identity.upstream import handlers_of
from assent.kernel import model_builds
from assent.outbox import webhook_rules
from assent.outbox.webhook_rules import WebhookRules
from assent.runs.checkpoints.serde import VARIABLE, listed_types, require_strict_msgpack
from assent.runs.checkpoints.types import CheckpointTypes, is_installed
from assent.runs.project.graphs import FactoryGraph, GraphSpec, StaticGraph, compiled
from assent.runs.project.imports import authors_code, import_object, put_on_path
from assent.runs.project.manifest import GraphEntry, HttpSection, Manifest
from assent.threads.model.threads import ThreadSweep
from assent.threads.rows.memory.items import MemorySection

if TYPE_CHECKING:
    from langgraph_sdk import Auth
    from starlette.types import ASGIApp

    from assent.runs.memory.index import VectorIndex

log = logging.getLogger(__name__)

__all__ = [
    "GraphSpec",
    "LoadError",
    "LoadedGraphs",
    "load_app",
    "load_auth",
    "load_graphs",
    "load_index",
    "load_webhook_rules",
    "prepare",
]


@dataclass(frozen=True, slots=True)
class LoadedGraphs:
    """Each graph of the manifest is either in `graphs` or in `failures`. An error's `details` is the traceback."""

    graphs: Mapping[str, GraphSpec]
    failures: Mapping[str, LoadError]
    memory: MemorySection = field(default_factory=MemorySection)
    index: VectorIndex | None = None
    webhooks: WebhookRules = field(default_factory=WebhookRules)
    auth: Auth | None = None
    app: ASGIApp | None = None
    open_app: bool = False
    """Whether the author's routes accept requests without a credential."""
    http: HttpSection = field(default_factory=HttpSection)
    sweep: ThreadSweep = field(default_factory=ThreadSweep)
    ui: Mapping[str, Path] = field(default_factory=dict)
    security: Mapping[str, Any] = field(default_factory=dict)
    """`auth.openapi`: the security of the author's handlers, for the OpenAPI document."""


def prepare(manifest: Manifest) -> None:
    """Makes the project importable: strict checkpoints, environment, folders. Idempotent."""
    require_strict_msgpack()
    for name, value in manifest.env.items():
        if name != VARIABLE:
            os.environ.setdefault(name, value)  # the operator's environment overrides the project's file
    put_on_path(manifest.roots)


def load_graphs(manifest: Manifest, *, checkpoint_types: Iterable[str] = ()) -> LoadedGraphs:
    """Loads every graph. `checkpoint_types`: further types that states may hold, as `module:Class`."""
    if not manifest.graphs:
        return LoadedGraphs({}, {}, manifest.memory)
    prepare(manifest)
    _import_langgraph()
    folders = (manifest.root, *(folder for folder in manifest.roots if not is_installed(folder)))
    types = CheckpointTypes(listed_types([*checkpoint_types, *manifest.checkpoint_types]), folders)
    graphs: dict[str, GraphSpec] = {}
    failures: dict[str, LoadError] = {}
    for name, entry in manifest.graphs.items():
        try:
            with authors_code(entry.source, manifest.roots):
                graphs[name] = _load_graph(entry, manifest, types)
        except LoadError as exc:
            log.error("load graph %r failed: %s", name, exc, extra={"traceback": exc.details})
            failures[name] = exc
    return LoadedGraphs(graphs, failures, manifest.memory)


def _import_langgraph() -> None:
    """Before the author's modules import it, with models that are built at their first use."""
    with model_builds.deferred():
        import langgraph.graph
        import langgraph.pregel  # noqa: F401


def _load_graph(entry: GraphEntry, manifest: Manifest, types: CheckpointTypes) -> GraphSpec:
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
        log.warning("graph %r has its own %s; Assent's is used instead", name, " and ".join(own))


def _not_a_graph(made: Any) -> str:
    if hasattr(made, "__aenter__") or inspect.isawaitable(made):
        return "name the function itself, not its result"
    return "name a StateGraph, a compiled graph, or a function that makes one"


def load_index(manifest: Manifest) -> VectorIndex | None:
    """The index of the store, with the project's embedding. A server does not start with one that does not load."""
    section = manifest.index
    if section is None:
        return None
    prepare(manifest)
    from langchain_core.embeddings import Embeddings
    from langgraph.store.base import ensure_embeddings

    from assent.runs.memory.index import VectorIndex

    if section.source is None:
        made = _provided(section.name)
    else:
        with authors_code(section.source, manifest.roots):
            made = import_object(section.source, manifest.roots)
    if not callable(made) and not isinstance(made, Embeddings):
        raise LoadError(f"store.index.embed: {section.name} is a {type(made).__name__}", hint="name a function")
    return VectorIndex(ensure_embeddings(made), dims=section.dims, fields=section.fields, name=section.name)


def _provided(name: str) -> Any:
    from langchain.embeddings import init_embeddings

    try:
        return init_embeddings(name)
    except (ImportError, ValueError) as error:
        raise LoadError(f"store.index.embed: {name}: {error}", hint="install the provider's package") from error
    except Exception as error:  # the provider's own class, such as openai.OpenAIError without a key
        hint = "set what the provider needs in the environment, or in env of langgraph.json"
        raise LoadError(f"store.index.embed: {name}: {error}", hint=hint) from error


def load_webhook_rules(manifest: Manifest, environment: Mapping[str, str]) -> WebhookRules:
    """Which addresses the project's runs may name. `environment` has the values of the headers."""
    prepare(manifest)
    return webhook_rules.read(manifest.webhooks, {**manifest.env, **environment})


def load_auth(manifest: Manifest) -> Auth | None:
    """The author's `langgraph_sdk.Auth`. Any other object is an error, so that the server is never open by mistake."""
    if manifest.auth is None:
        return None
    prepare(manifest)
    from langgraph_sdk import Auth

    with authors_code(manifest.auth.source, manifest.roots):
        made = import_object(manifest.auth.source, manifest.roots)
    if not isinstance(made, Auth):
        raise LoadError(f"auth.path: {manifest.auth.source.text} is a {type(made).__name__}", hint="auth = Auth()")
    _check_authenticate(handlers_of(made).authenticate, manifest.auth.source.text)
    return made


def _check_authenticate(handler: Any, source: str) -> None:
    if handler is None:
        raise LoadError(f"auth.path: {source} has no @auth.authenticate handler, so it would refuse every request")
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
