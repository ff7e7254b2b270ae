"""The part of a thread's events that a client selects: channels, namespaces, depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assent.kernel.limits import MOST_LISTED
from assent.runs.events.model.events import Event

CHANNELS = ("values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom")
_NAMED = "custom:"


class BadSelection(ValueError):
    """The channels cannot be selected."""


@dataclass(frozen=True, slots=True)
class Selection:
    channels: frozenset[str]
    namespaces: tuple[tuple[str, ...], ...] = ()
    """Prefixes; without any, all namespaces are selected."""
    depth: int | None = None
    """The most levels below a prefix."""

    def matches(self, event: Event) -> bool:
        return self._has_channel(event) and self._has_namespace(event.namespace)

    def _has_channel(self, event: Event) -> bool:
        if event.channel in self.channels:
            return True
        name = event.data.get("name") if event.channel == "custom" and isinstance(event.data, dict) else None
        return name is not None and f"{_NAMED}{name}" in self.channels

    def _has_namespace(self, namespace: Sequence[str]) -> bool:
        return not self.namespaces or any(self._is_below(namespace, prefix) for prefix in self.namespaces)

    def _is_below(self, namespace: Sequence[str], prefix: Sequence[str]) -> bool:
        if self.depth is not None and len(namespace) - len(prefix) > self.depth:
            return False
        return starts_with(namespace, prefix)


def selection(params: dict[str, Any]) -> Selection:
    """The selection that a client asks for. Fields beside the channels that cannot be understood select everything, as
    on LangGraph's server."""
    channels = params.get("channels")
    if not isinstance(channels, list) or not channels:
        raise BadSelection("channels is required and must be a non-empty array")
    unknown = [channel for channel in channels[:MOST_LISTED] if not _is_channel(channel)]
    if unknown or len(channels) > MOST_LISTED:
        named = ", ".join(str(channel)[:100] for channel in unknown[:5]) or f"more than {MOST_LISTED}"
        raise BadSelection(
            f"channels contains unsupported entries: {named}. Allowed: {', '.join(CHANNELS)}, or any `custom:<name>`."
        )
    return Selection(frozenset(channels), _namespaces(params.get("namespaces")), counted(params.get("depth")))


def counted(value: Any) -> int | None:
    """A number of zero or more; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def starts_with(namespace: Sequence[str], prefix: Sequence[str]) -> bool:
    """Whether the namespace begins with the prefix, in which a node's name without a task matches all its tasks."""
    return len(prefix) <= len(namespace) and all(map(_is_part, namespace, prefix))


def node_of(segment: str) -> str:
    """The node's name in a segment `node:task` of a namespace."""
    return segment.partition(":")[0]


def is_namespace(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MOST_LISTED and all(isinstance(part, str) for part in value)


def _is_channel(value: Any) -> bool:
    return isinstance(value, str) and (value in CHANNELS or (value.startswith(_NAMED) and value != _NAMED))


def _namespaces(value: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        return ()
    return tuple(tuple(namespace) for namespace in value[:MOST_LISTED] if is_namespace(namespace))


def _is_part(candidate: str, segment: str) -> bool:
    return candidate == segment or (":" not in segment and node_of(candidate) == segment)
