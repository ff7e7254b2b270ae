"""Assistants: a graph with its own configuration, stored in versions.

Every graph has its own assistant, created by the server under an id derived from the graph's name, so that a graph's
name can stand for an assistant wherever a run is started. Config and context are an older and a newer name for the
same settings: a client sets one, and both hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from assent.errors import BadRequest, Conflict
from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import Visible
from assent.threads.model.configs import clean_configurable, clean_metadata

_GRAPHS = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
UNTITLED = "Untitled"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantVersion:
    """One version of an assistant; `created_at` is when it was made."""

    id: str
    version: int
    graph_id: str
    name: str
    description: str | None
    config: dict[str, Any]
    context: dict[str, Any]
    metadata: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Assistant(AssistantVersion):
    """An assistant at its current version."""

    updated_at: datetime
    owner: str | None = None
    """The actor that created the assistant. None for the graphs' own, and where unknown."""

    @property
    def is_graphs_own(self) -> bool:
        return self.id == own_id(self.graph_id)

    def changed_by(self, caller: Principal) -> bool:
        """Whether the caller may change, restore or delete it, where assistants belong to their owners. Other callers
        run it, and a graph's name stands for the graph's own."""
        return caller.may(Scope.ADMIN) or (self.owner == caller.actor and not self.is_graphs_own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A client's change; None leaves a field as it is."""

    graph_id: str | None = None
    name: str | None = None
    description: str | None = None
    config: Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search for assistants: all conditions hold, `name` is a case-insensitive part of the name."""

    graph_id: str | None = None
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    visible: Visible | None = None


def own_id(graph_id: str) -> str:
    """The id of the graph's own assistant, the same on every server."""
    return str(uuid5(_GRAPHS, graph_id))


def graphs_own(graph_id: str, title: str, description: str | None, now: datetime) -> Assistant:
    return Assistant(
        id=own_id(graph_id),
        version=1,
        graph_id=graph_id,
        name=title,
        description=description,
        config={},
        context={},
        metadata={"created_by": "system"},
        created_at=now,
        updated_at=now,
    )


def refreshed(own: Assistant, graph_id: str, title: str, description: str | None) -> Assistant:
    """A graph's own assistant after a start: always of that graph, and named after it unless a client renamed it."""
    if own.version > 1:
        return replace(own, graph_id=graph_id)
    return replace(own, graph_id=graph_id, name=title, description=description)


def make(assistant_id: str, graph_id: str, wanted: Change, now: datetime, owner: str | None = None) -> Assistant:
    config, context = mirrored(wanted.config or {}, wanted.context or {})
    return Assistant(
        id=assistant_id,
        version=1,
        graph_id=graph_id,
        name=wanted.name or UNTITLED,
        description=wanted.description,
        config=config,
        context=context,
        metadata=clean_metadata(wanted.metadata or {}),
        created_at=now,
        updated_at=now,
        owner=owner,
    )


def revise(assistant: Assistant, change: Change, *, version: int, now: datetime) -> Assistant:
    """The next version. Metadata is merged; config and context are replaced, and an empty config clears it."""
    _keep_to_its_graph(assistant, change.graph_id)
    config, context = _reconfigured(assistant, change)
    return replace(
        assistant,
        version=version,
        graph_id=_first(change.graph_id, assistant.graph_id),
        name=_first(change.name, assistant.name),
        description=_first(change.description, assistant.description),
        config=config,
        context=context,
        metadata={**assistant.metadata, **clean_metadata(change.metadata or {})},
        updated_at=now,
    )


def restore(assistant: Assistant, version: AssistantVersion, now: datetime) -> Assistant:
    """The assistant with all fields of that version."""
    _keep_to_its_graph(assistant, version.graph_id)
    return replace(
        assistant,
        version=version.version,
        graph_id=version.graph_id,
        name=version.name,
        description=version.description,
        config=version.config,
        context=version.context,
        metadata=version.metadata,
        updated_at=now,
    )


def mirrored(config: Mapping[str, Any], context: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Config and context, cleaned and mirrored. A client sets one of them, never both."""
    named = config.get("configurable") or {}
    if named and context:
        raise BadRequest("Cannot specify both configurable and context. Prefer setting context alone.")
    shared = clean_configurable(named or context)
    cleaned = {key: value for key, value in config.items() if key != "configurable"}
    if "metadata" in cleaned:
        cleaned["metadata"] = clean_metadata(cleaned["metadata"] or {})
    return {**cleaned, "configurable": shared} if shared else cleaned, dict(shared)


def _reconfigured(assistant: Assistant, change: Change) -> tuple[dict[str, Any], dict[str, Any]]:
    if change.config:
        return mirrored(change.config, change.context or {})
    if change.context is None:
        return assistant.config, assistant.context
    return mirrored({**assistant.config, "configurable": {}}, change.context)


def _keep_to_its_graph(assistant: Assistant, graph_id: str | None) -> None:
    """A graph's name stands for its own assistant, so that one has to run that graph."""
    if assistant.is_graphs_own and graph_id not in (None, assistant.graph_id):
        raise Conflict(
            f"Assistant {assistant.id} is the graph {assistant.graph_id!r}'s own and cannot run another graph",
            hint="create another assistant",
        )


def _first(wanted: Any, present: Any) -> Any:
    return present if wanted is None else wanted
