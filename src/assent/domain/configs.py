"""Configs from callers, merged over their assistant's and cleaned of what only the server may say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assent.errors import BadRequest

_OURS = frozenset({"thread_id", "run_id", "graph_id", "assistant_id", "user_id", "cron_id"})
_OUR_PREFIXES = ("__", "checkpoint_", "langgraph_auth_", "langgraph_request_id")
_KEPT = ("tags", "recursion_limit")


def clean_configurable(named: Mapping[str, Any]) -> dict[str, Any]:
    """Without keys by which a client could answer approvals, pick another thread, or pose as someone."""
    return {name: value for name, value in named.items() if name not in _OURS and not name.startswith(_OUR_PREFIXES)}


def clean_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in metadata.items() if name not in _OURS - {"graph_id", "user_id"}}


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
    kept = {name: asked.get(name, assistant["config"].get(name)) for name in _KEPT}
    config = {name: value for name, value in kept.items() if value is not None}
    return {**config, "configurable": merged, "metadata": clean_metadata(asked.get("metadata") or {})}, merged
