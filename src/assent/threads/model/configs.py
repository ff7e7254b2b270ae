"""Configs from callers, merged over their assistant's and stripped of keys that only the server may set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from assent.errors import BadRequest

DECISION = "assent"
"""The key of a run's metadata with the comments on the question that the run answers: `item_id` and `comments`."""

_OURS = frozenset({"thread_id", "run_id", "graph_id", "assistant_id", "user_id", "cron_id", DECISION})
IDENTITY = "langgraph_auth_"
"""Prefix of the config keys with the attributes of the actor."""
_OUR_PREFIXES = ("__", "checkpoint_", IDENTITY, "langgraph_request_id")
_OUR_TAGS = "langsmith:"
LIMITS = ("recursion_limit", "max_concurrency")
"""How a graph is executed; nodes work the same with others."""
_KEPT = ("tags", "run_name", *LIMITS)


def clean_configurable(named: Mapping[str, Any]) -> dict[str, Any]:
    """Removes keys by which a client could answer approvals, select another thread, or impersonate a user."""
    return {name: value for name, value in named.items() if name not in _OURS and not name.startswith(_OUR_PREFIXES)}


def clean_tags(tags: Sequence[str]) -> list[str]:
    """Removes tags that LangGraph interprets: a run tagged as hidden emits no question, and does not stop before every
    node where it should."""
    return [tag for tag in tags if not tag.startswith(_OUR_TAGS)]


def clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """For a thread or an assistant. Clients label them with their own users."""
    dropped = _OURS - {"graph_id", "user_id"}
    return {name: value for name, value in metadata.items() if name not in dropped and not name.startswith(IDENTITY)}


def clean_run_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """For a run. Graphs and checkpoints read the run's user from it, so clients must not set that."""
    return {name: value for name, value in clean_metadata(metadata).items() if name not in _OURS}


def merge(
    asked: Mapping[str, Any] | None, context: Mapping[str, Any] | None, assistant: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The run's config and context: the caller's over the assistant's. They mirror each other, so one may be given."""
    asked = asked or {}
    named = asked.get("configurable") or {}
    if named and context:
        raise BadRequest("Cannot specify both configurable and context. Prefer setting context alone.")
    base = assistant["config"].get("configurable") or assistant["context"]
    merged = clean_configurable({**base, **named, **(context or {})})
    settings = {name: asked.get(name, assistant["config"].get(name)) for name in _KEPT}
    config = {name: value for name, value in settings.items() if value is not None}
    if "tags" in config:
        config["tags"] = clean_tags(config["tags"])
    return {**config, "configurable": merged, "metadata": clean_run_metadata(asked.get("metadata") or {})}, merged
