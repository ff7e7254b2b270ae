"""Server information, metrics, and the answers of routes that are not supported yet."""

from datetime import timedelta
from importlib.metadata import version
from typing import Any

import httpx
import pytest

from assent.kernel.store.transaction import Tx
from assent.threads.model.runs import RunStatus, Strategy
from assent.threads.model.threads import ThreadStatus
from assent.threads.rows import runs, threads
from tests.api.langgraph.server import Server
from tests.contract.stores import AnyStore, both_databases, only_sqlite


@only_sqlite
async def test_info_needs_no_key_and_tells_what_is_served(server: Server) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(server.app), base_url="http://127.0.0.1") as stranger:
        body = (await stranger.get("/info")).json()
    assert body["version"] == version("assent")
    assert body["langgraph_py_version"] == version("langgraph")
    assert body["host"] == {
        "kind": "self-hosted",
        "project_id": None,
        "host_revision_id": None,
        "revision_id": None,
        "tenant_id": None,
    }
    later = {flag for flag, served in body["flags"].items() if not served}
    assert later == {"langsmith", "langsmith_tracing_replicas", "langsmith_tracing_session_on_runs"}
    flags = ("assistants", "store", "crons", "event_streaming", "mcp", "a2a")
    assert all(body["flags"][flag] for flag in flags)


@only_sqlite
async def test_route_without_a_credential_is_401(server: Server) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(server.app), base_url="http://127.0.0.1") as stranger:
        assert {(await stranger.post(path)).status_code for path in ("/mcp", "/a2a/x", "/metrics")} == {401}


@only_sqlite
async def test_idle_server_has_an_empty_queue(client: httpx.AsyncClient) -> None:
    assert (await client.get("/metrics?format=json")).json() == {
        "queue": {
            "n_pending": 0,
            "n_running": 0,
            "pending_runs_wait_time_max_secs": None,
            "pending_runs_wait_time_med_secs": None,
            "pending_unblocked_runs_wait_time_max_secs": None,
        },
        "api": {"http_requests_total": []},
        "workers": {"max": 10, "active": 3, "available": 7},
    }


@only_sqlite
async def test_requests_are_counted_by_route(client: httpx.AsyncClient) -> None:
    for name in ("one", "two"):
        await client.get(f"/assistants/{name}")
    await client.get("/nothing/here")
    counted = (await client.get("/metrics?format=json")).json()["api"]["http_requests_total"]
    assert {"method": "GET", "path": "/assistants/{assistant_id}", "status": 422, "count": 2} in counted
    assert {"method": "GET", "path": "none", "status": 404, "count": 1} in counted
    text = await client.get("/metrics")
    assert text.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'lg_api_http_requests_total{method="GET",path="/assistants/{assistant_id}",status="422"} 2' in text.text
    assert "lg_api_num_pending_runs 0\n" in text.text


@only_sqlite
async def test_metrics_need_a_scope(server: Server) -> None:
    commenter = await server.client("comments:write")
    assert (await commenter.get("/metrics")).status_code == 403


def _enqueue(tx: Tx, thread_id: str, *waits: int, status: ThreadStatus = ThreadStatus.BUSY, **columns: Any) -> None:
    """A thread with pending runs that have waited for so many minutes."""
    threads.insert(tx, thread_id, {})
    threads.set_status(tx, thread_id, status)
    for number, minutes in enumerate(waits):
        runs.insert_pending(
            tx,
            f"{thread_id}-{number}",
            thread_id,
            assistant_id="a",
            graph_id="echo",
            temporary=False,
            multitask_strategy=Strategy.ENQUEUE,
            metadata={},
            kwargs={},
            created_at=tx.now() - timedelta(minutes=minutes),
            **({"answers": False} | columns),
        )


def _work(tx: Tx) -> None:
    _enqueue(tx, "busy", 50, 10)
    assert runs.begin(tx, "busy-0")
    _enqueue(tx, "waits", 40, status=ThreadStatus.INTERRUPTED)
    _enqueue(tx, "ready", 20)
    _enqueue(tx, "delayed", 60, wake_at=tx.now() + timedelta(hours=1))


@both_databases
async def test_the_queue_is_counted_over_all_tenants(store: AnyStore, client: httpx.AsyncClient) -> None:
    await store.write("default", _work)
    await store.write("acme", lambda tx: _enqueue(tx, "theirs", 30))
    queue = (await client.get("/metrics?format=json")).json()["queue"]
    assert (queue["n_pending"], queue["n_running"]) == (5, 1)
    assert queue["pending_runs_wait_time_max_secs"] == pytest.approx(40 * 60, abs=60)
    assert queue["pending_runs_wait_time_med_secs"] == pytest.approx(25 * 60, abs=60)
    assert queue["pending_unblocked_runs_wait_time_max_secs"] == pytest.approx(30 * 60, abs=60)


@both_databases
async def test_control_a_finished_run_is_not_counted_in_the_queue(store: AnyStore, client: httpx.AsyncClient) -> None:
    from assent.threads.rows.state.checkpoints import Attempt

    await store.write("default", lambda tx: _enqueue(tx, "busy", 5))
    run = await store.write("default", runs.begin, "busy-0")
    assert run is not None
    await store.write("default", runs.end, Attempt(run.id, run.attempt), RunStatus.SUCCESS, None)
    queue = (await client.get("/metrics?format=json")).json()["queue"]
    assert (queue["n_pending"], queue["n_running"]) == (0, 0)
