"""Threads and their states as LangGraph's clients read them.

The models are for the OpenAPI document; responses are serialized directly from the data, because a state can be large
and contain any values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Literal

from fastapi import Response
from pydantic import BaseModel

from assent.kernel import fair_threads, jsonable
from assent.kernel.extracts import Path
from assent.kernel.limits import has_at_most, is_small
from assent.threads.model.threads import Thinning, Thread, ThreadStatus, Visibility
from assent.threads.rows.state.thread_storage import Size

Json = dict[str, Any]
_MEDIUM_VALUES, _MEDIUM_CHARACTERS = 5_000, 400_000
SelectField = Literal[
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "config",
    "context",
    "status",
    "values",
    "interrupts",
    "error",
]


class TtlView(BaseModel):
    strategy: Thinning
    ttl_minutes: float
    expires_at: datetime


class ThreadView(BaseModel):
    thread_id: str
    created_at: datetime
    updated_at: datetime
    state_updated_at: datetime
    metadata: Json
    status: ThreadStatus
    config: Json
    values: Any
    interrupts: dict[str, list[Json]] | None = None
    error: Json | None = None
    ttl: TtlView | None = None
    extracted: Json | None = None
    owner: str | None = None
    visibility: Visibility = Visibility.SHARED


class FoundThread(BaseModel):
    """A thread in search results, with the selected fields."""

    thread_id: str | None = None
    status: ThreadStatus | None = None
    metadata: Json | None = None
    values: Any = None
    interrupts: dict[str, list[Json]] | None = None
    extracted: Json | None = None


class StateView(BaseModel):
    """A ThreadState, with the selected fields."""

    values: Any = None
    next: list[str] | None = None
    tasks: list[Json] | None = None
    metadata: Json | None = None
    created_at: datetime | None = None
    checkpoint: Json | None = None
    parent_checkpoint: Json | None = None
    interrupts: list[Json] | None = None
    checkpoint_id: str | None = None
    parent_checkpoint_id: str | None = None


class UpdatedState(BaseModel):
    checkpoint: Json
    configurable: Json
    checkpoint_id: str | None


class SizeView(BaseModel):
    rows: int
    bytes: int


class StoredView(BaseModel):
    count: int
    bytes: int


class ChannelsView(StoredView):
    by_channel: dict[str, StoredView]


class StorageView(BaseModel):
    """Checkpoints share the parts of channel values, so the size of one channel is not known."""

    thread_id: str
    total_bytes: int
    checkpoints: StoredView
    channel_values: ChannelsView
    pending_writes: StoredView
    tables: dict[str, SizeView]


class Pruned(BaseModel):
    pruned_count: int


async def json(body: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Serializes large bodies in a thread, so that other requests continue."""
    if is_small(body):
        text = jsonable.dump(body)
    elif has_at_most(body, _MEDIUM_VALUES, _MEDIUM_CHARACTERS):
        text = await fair_threads.beside(jsonable.dump, body)
    else:
        text = await fair_threads.alone(jsonable.dump, body)
    return Response(text, headers=headers, media_type="application/json")


def thread_json(thread: Thread, *, ttl: bool = False) -> Json:
    """A thread without runs has no `interrupts` and no `error`, not even empty ones."""
    state = {"error": thread.error, "interrupts": thread.interrupts or {}} if thread.ran else {}
    config = thread.config or ({"configurable": {}} if thread.ran else {})
    return {
        "thread_id": thread.id,
        "created_at": thread.created_at,
        "updated_at": thread.updated_at,
        "state_updated_at": thread.state_updated_at or thread.created_at,
        "metadata": thread.metadata,
        "status": thread.status.value,
        "config": config,
        "values": thread.values,
        "owner": thread.owner,
        "visibility": thread.visibility.value,
        **state,
        **({"ttl": _ttl(thread)} if ttl and thread.expires_at else {}),
    }


def search_result_json(thread: Thread, select: Collection[str] | None, extract: Mapping[str, Path]) -> Json:
    whole = thread_json(thread)
    selected = {"interrupts": {}, "error": None, **whole} if select else whole
    shown = {name: value for name, value in selected.items() if not select or name in select}
    return shown | {"extracted": {alias: path.find(whole) for alias, path in extract.items()}} if extract else shown


def storage_json(thread_id: str, sizes: Mapping[str, Size]) -> Json:
    tables = {name: size._asdict() for name, size in sizes.items()}
    stored = {
        name: {"count": sizes[table].rows, "bytes": sizes[table].bytes}
        for name, table in (("checkpoints", "checkpoints"), ("pending_writes", "checkpoint_writes"))
    }
    shared = sizes["checkpoint_parts"]
    total = sum(size["bytes"] for size in stored.values()) + shared.bytes
    values = {"channel_values": {"count": shared.rows, "bytes": shared.bytes, "by_channel": {}}}
    return {"thread_id": thread_id, "total_bytes": total, **stored, **values, "tables": tables}


def _ttl(thread: Thread) -> Json:
    return {"strategy": thread.ttl_strategy, "ttl_minutes": thread.ttl_minutes, "expires_at": thread.expires_at}
