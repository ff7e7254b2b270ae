"""Assistants: a graph with a configuration of its own, kept in versions.

Every graph has an assistant of its own, made by the server under an id that follows from the graph's name, so that a
graph's name can stand for an assistant wherever a run is started. Config and context are two names for one thing,
an older and a newer one: whichever a client sets, both hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from assent.domain.configs import clean_configurable, clean_metadata
from assent.domain.visibility import Visible
from assent.errors import BadRequest, Conflict

_GRAPHS = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
UNTITLED = "Untitled"


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantVersion:
    """What an assistant was at one time; `created_at` is when it became so."""

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
    """An assistant as it is now, at the version that is in force."""

    updated_at: datetime

    @property
    def is_graphs_own(self) -> bool:
        return self.id == own_id(self.graph_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a client wants to be different; None leaves a thing as it is."""

    graph_id: str | None = None
    name: str | None = None
    description: str | None = None
    config: Mapping[str, Any] | None = None
    context: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which assistants are asked for: all conditions hold, `name` is part of the name in any case of letters."""

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
    """A graph's own assistant after a start: of that graph whatever came before, named like it unless someone did."""
    if own.version > 1:
        return replace(own, graph_id=graph_id)
    return replace(own, graph_id=graph_id, name=title, description=description)


def make(assistant_id: str, graph_id: str, wanted: Change, now: datetime) -> Assistant:
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
    )


def revise(assistant: Assistant, change: Change, *, version: int, now: datetime) -> Assistant:
    """The next version. Metadata is merged; config and context are replaced, an empty config is none at all."""
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
    """The assistant as it was at that version, in everything."""
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
    """Config and context, cleaned and each holding what the other does. A client sets one of them, never both."""
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
