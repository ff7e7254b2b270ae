"""REST: the server's info and metrics, and the parts of the LangGraph API that are not served yet.

Those answer 501 with a text and a code, and are false in the flags of `/info`, so that a client can check first.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from assent.errors import NotServed
from assent.runs.metrics import Metrics, Snapshot
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.public import public
from assent.surfaces.http.routing import router

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Missing(NamedTuple):
    """A part of the API that is not served yet: its flag in `/info`, its name, its routes."""

    flag: str
    title: str
    routes: tuple[tuple[str, str], ...]


MISSING = (
    Missing(
        "crons",
        "Crons",
        (
            ("POST", "/runs/crons"),
            ("POST", "/runs/crons/search"),
            ("POST", "/runs/crons/count"),
            ("GET PATCH DELETE", "/runs/crons/{cron_id}"),
            ("POST", "/threads/{thread_id}/runs/crons"),
        ),
    ),
    Missing(
        "store",
        "The store API",
        (
            ("GET PUT DELETE", "/store/items"),
            ("POST", "/store/items/search"),
            ("POST", "/store/namespaces"),
        ),
    ),
    Missing(
        "event_streaming",
        "Event streaming (protocol v2 and v3)",
        (("POST", "/threads/{thread_id}/commands"), ("POST", "/threads/{thread_id}/stream/events")),
    ),
)


def routes(metrics: Metrics) -> APIRouter:
    api = router("", "system")
    document = _info()

    @api.get("/info")
    @public
    async def info() -> dict[str, Any]:
        return document

    @api.get("/metrics", response_model=None)
    async def show_metrics(caller: Caller, format: str = "prometheus") -> Response | dict[str, Any]:
        """In Prometheus' text format, or as JSON with `format=json`."""
        snapshot = await metrics.snapshot(caller)
        return _json(snapshot) if format == "json" else PlainTextResponse(_text(snapshot), media_type=_PROMETHEUS)

    for part in MISSING:
        for methods, path in part.routes:
            api.add_api_route(path, _refusal(part), methods=methods.split(), include_in_schema=False)
    return api


def _info() -> dict[str, Any]:
    tracing = dict.fromkeys(("langsmith", "langsmith_tracing_replicas", "langsmith_tracing_session_on_runs"), False)
    flags = {"assistants": True, "strict_resume": True, "mcp": True, "a2a": True, **tracing}
    nothing = {"project_id": None, "host_revision_id": None, "revision_id": None, "tenant_id": None}
    return {
        "version": version("assent"),
        "langgraph_py_version": version("langgraph"),
        "flags": flags | {part.flag: False for part in MISSING},
        "host": {"kind": "self-hosted", **nothing},
    }


def _refusal(part: Missing) -> Callable[[], Coroutine[Any, Any, None]]:
    async def refuse() -> None:
        raise NotServed(f"{part.title}: not served by this version of Assent yet.", feature=part.flag)

    return refuse


def _json(snapshot: Snapshot) -> dict[str, Any]:
    queue, workers = snapshot.queue, snapshot.workers
    body: dict[str, Any] = {
        "queue": {
            "n_pending": queue.pending,
            "n_running": queue.running,
            "pending_runs_wait_time_max_secs": queue.longest_wait,
            "pending_runs_wait_time_med_secs": queue.median_wait,
            "pending_unblocked_runs_wait_time_max_secs": queue.longest_unblocked_wait,
        },
        "api": {
            "http_requests_total": [
                {"method": kind.method, "path": kind.path, "status": kind.status, "count": count}
                for kind, count in snapshot.answered.items()
            ]
        },
    }
    if workers is not None:
        body["workers"] = {
            "max": workers.most,
            "active": workers.active,
            "available": max(workers.most - workers.active, 0),
        }
    return body


def _text(snapshot: Snapshot) -> str:
    """Uses the metric names of the reference server, for existing dashboards."""
    lines: list[str] = []
    for name, value in _gauges(snapshot):
        lines += [f"# TYPE lg_api_{name} gauge", f"lg_api_{name} {value}"]
    lines.append("# TYPE lg_api_http_requests_total counter")
    for kind, count in snapshot.answered.items():
        labels = f'method="{kind.method}",path="{kind.path}",status="{kind.status}"'
        lines.append(f"lg_api_http_requests_total{{{labels}}} {count}")
    return "\n".join(lines) + "\n"


def _gauges(snapshot: Snapshot) -> Iterator[tuple[str, float]]:
    queue, workers = snapshot.queue, snapshot.workers
    yield "num_pending_runs", queue.pending
    yield "num_running_runs", queue.running
    yield "pending_runs_wait_time_max_seconds", queue.longest_wait or 0
    yield "pending_runs_wait_time_med_seconds", queue.median_wait or 0
    yield "pending_unblocked_runs_wait_time_max_seconds", queue.longest_unblocked_wait or 0
    if workers is not None:
        yield "workers_max", workers.most
        yield "workers_active", workers.active
        yield "workers_available", max(workers.most - workers.active, 0)
