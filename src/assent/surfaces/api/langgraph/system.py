"""REST: the server's info and metrics. The flags of `/info` tell clients what is served."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from assent.runs.metrics import Metrics, Snapshot
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.public import public
from assent.surfaces.http.routing import router

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_SERVED = ("assistants", "crons", "store", "event_streaming", "mcp", "a2a", "strict_resume")


def routes(metrics: Metrics, off: Collection[str] = ()) -> APIRouter:
    """`off`: the parts of the API that are not served."""
    api = router("", "system")
    document = _info(off)

    @api.get("/info")
    @public
    async def info() -> dict[str, Any]:
        return document

    @api.get("/metrics", response_model=None)
    async def show_metrics(caller: Caller, format: str = "prometheus") -> Response | dict[str, Any]:
        """In Prometheus' text format, or as JSON with `format=json`."""
        snapshot = await metrics.snapshot(caller)
        return _json(snapshot) if format == "json" else PlainTextResponse(_text(snapshot), media_type=_PROMETHEUS)

    return api


def _info(off: Collection[str]) -> dict[str, Any]:
    tracing = dict.fromkeys(("langsmith", "langsmith_tracing_replicas", "langsmith_tracing_session_on_runs"), False)
    served = {name: name not in off for name in _SERVED}
    nothing = {"project_id": None, "host_revision_id": None, "revision_id": None, "tenant_id": None}
    return {
        "version": version("assent"),
        "langgraph_py_version": version("langgraph"),
        "flags": {**served, **tracing},
        "host": {"kind": "self-hosted", **nothing},
    }


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
    if snapshot.followed:
        body["deployments"] = [
            {"id": followed.id, "up": followed.up, "lag_seconds": followed.lag} for followed in snapshot.followed
        ]
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
    return "\n".join([*lines, *_followed(snapshot)]) + "\n"


def _followed(snapshot: Snapshot) -> Iterator[str]:
    """The deployments by their ids: their names belong to tenants."""
    for metric in ("up", "lag_seconds") if snapshot.followed else ():
        yield f"# TYPE assent_deployment_{metric} gauge"
        for followed in snapshot.followed:
            value = int(followed.up) if metric == "up" else followed.lag
            if value is not None:
                yield f'assent_deployment_{metric}{{deployment="{followed.id}"}} {value}'


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
