"""The body of a cron's runs, stored as its caller sent it, with the cron's id in the config."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from assent.threads.model.crons import Completion
from assent.threads.model.runs import Strategy
from assent.threads.run_requests import RunRequest

_CRON_ID = "cron_id"


def with_cron_id(payload: Mapping[str, Any], cron_id: str) -> dict[str, Any]:
    config = payload.get("config") or {}
    named = {**(config.get("configurable") or {}), _CRON_ID: cron_id}
    return {**payload, "config": {**config, "configurable": named}}


def merged(present: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The changed fields replace the present ones whole; the assistant stays."""
    return {**present, **change, "assistant_id": present["assistant_id"]}


def request_of(cron: Mapping[str, Any], due: datetime | None = None) -> RunRequest:
    """The request of its run for this due time. Only the fields that the API documents for crons count."""
    payload: Mapping[str, Any] = cron["payload"]
    modes = payload.get("stream_mode") or "values"
    keeps = cron["on_run_completed"] is Completion.KEEP or payload.get("on_completion") == "keep"
    strategy = payload.get("multitask_strategy")
    return RunRequest(
        assistant_id=cron["assistant_id"],
        input=payload.get("input"),
        config=_config(payload.get("config")),
        context=payload.get("context"),
        metadata={**cron["metadata"], **(payload.get("metadata") or {})},
        stream_mode=(modes,) if isinstance(modes, str) else tuple(modes),
        stream_subgraphs=bool(payload.get("stream_subgraphs")),
        stream_resumable=bool(payload.get("stream_resumable")),
        interrupt_before=payload.get("interrupt_before"),
        interrupt_after=payload.get("interrupt_after"),
        multitask_strategy=Strategy(strategy) if strategy else None,
        keep_thread=keeps,
        durability=payload.get("durability") or ("exit" if payload.get("checkpoint_during") is False else "async"),
        webhook=payload.get("webhook"),
        cron={"cron_id": cron["id"], **({"cron_due": due.isoformat()} if due else {})},
    )


def _config(config: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Without the cron's id: only the server sets that of a run."""
    if config is None:
        return None
    named = {name: value for name, value in (config.get("configurable") or {}).items() if name != _CRON_ID}
    return {**config, "configurable": named}
