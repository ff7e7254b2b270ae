"""The LangGraph API's runs: in the background, streamed or awaited; on a thread or stateless."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Body, Header, Query, Response
from fastapi.responses import JSONResponse, StreamingResponse

from assent.errors import Invalid
from assent.identity.model.access import Principal
from assent.kernel.limits import MOST_LISTED
from assent.runs.engine.stream import MODES
from assent.runs.runs import Runs
from assent.surfaces.api.langgraph import streams, thread_views
from assent.surfaces.api.langgraph.routing import DirectRoute, router
from assent.surfaces.api.langgraph.runbody import CancelBody, RunBody, RunField
from assent.surfaces.http import routing
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.limits.execution import Executing, Execution
from assent.threads.bus import Subscription
from assent.threads.model.frames import STATE_UPDATE, position_of, seq_of
from assent.threads.model.runs import Cancel, Run, RunStatus, run_view
from assent.threads.model.threads import require_thread_id
from assent.threads.run_requests import RunRequest

Modes = Annotated[list[str] | None, Query(max_length=MOST_LISTED)]
LastEvent = Annotated[str | None, Header(alias="last-event-id")]
Limit = Annotated[int, Query(ge=1, le=1000)]
Offset = Annotated[int, Query(ge=0, le=2**31 - 1)]

_STOPPING_SECONDS = 5.0
_THREAD_MODES = ("run_modes", "lifecycle", STATE_UPDATE)


def routes(runs: Runs) -> APIRouter:
    api, starts = router("", "runs"), router("", "runs", DirectRoute)
    _add_starts(starts, runs)
    routing.add(api, starts)
    _add_batches(api, runs)
    _add_joins(api, runs)
    _add_rows(api, runs)
    return api


def _add_starts(api: APIRouter, runs: Runs) -> None:
    """The six ways to start a run: three on a thread, three without one."""

    @api.post("/threads/{thread_id}/runs/stream")
    async def stream_run(caller: Caller, thread_id: str, body: RunBody) -> Response:
        return await _streamed(runs, caller, thread_id, body)

    @api.post("/threads/{thread_id}/runs/wait")
    async def wait_for_run(caller: Caller, executing: Executing, thread_id: str, body: RunBody) -> Response:
        return await _waited(runs, caller, executing, thread_id, body)

    @api.post("/threads/{thread_id}/runs")
    async def create_run(caller: Caller, thread_id: str, body: RunBody) -> Response:
        return await _created(runs, caller, thread_id, body)

    @api.post("/runs/stream")
    async def stream_stateless_run(caller: Caller, body: RunBody) -> Response:
        return await _streamed(runs, caller, None, body)

    @api.post("/runs/wait")
    async def wait_for_stateless_run(caller: Caller, executing: Executing, body: RunBody) -> Response:
        return await _waited(runs, caller, executing, None, body)

    @api.post("/runs")
    async def create_stateless_run(caller: Caller, body: RunBody) -> Response:
        return await _created(runs, caller, None, body)


Batch = Annotated[list[RunBody], Body(min_length=1, max_length=MOST_LISTED)]


def _add_batches(api: APIRouter, runs: Runs) -> None:
    @api.post("/runs/batch")
    async def create_runs(caller: Caller, body: Batch) -> Response:
        created = await runs.create_all(caller, [run.request() for run in body])
        return await thread_views.json([run_view(run) for run in created])

    @api.post("/runs/cancel", status_code=204)
    async def cancel_runs(caller: Caller, body: CancelBody, action: Cancel = Cancel.INTERRUPT) -> None:
        by_ids = body.thread_id is not None and body.run_ids is not None
        if by_ids == (body.status is not None):
            raise Invalid("set either status, or thread_id and run_ids")
        await runs.cancel_many(
            caller, action, thread_id=body.thread_id, run_ids=body.run_ids or (), statuses=body.statuses
        )


def _add_joins(api: APIRouter, runs: Runs) -> None:
    @api.get("/threads/{thread_id}/runs/{run_id}/join")
    async def join_run(caller: Caller, thread_id: str, run_id: str, cancel_on_disconnect: bool = False) -> Response:
        return await _joined(runs, caller, await runs.get(caller, thread_id, run_id), cancel_on_disconnect)

    @api.get("/runs/{run_id}/join")
    async def join_stateless_run(caller: Caller, run_id: str, cancel_on_disconnect: bool = False) -> Response:
        return await _joined(runs, caller, await runs.find(caller, run_id), cancel_on_disconnect)

    @api.get("/threads/{thread_id}/runs/{run_id}/stream")
    async def join_run_stream(
        caller: Caller,
        thread_id: str,
        run_id: str,
        stream_mode: Modes = None,
        cancel_on_disconnect: bool = False,
        last_event_id: LastEvent = None,
    ) -> Response:
        run = await runs.get(caller, thread_id, run_id)
        return await _rejoined(runs, caller, run, _modes(stream_mode), last_event_id, cancel_on_disconnect)

    @api.get("/runs/{run_id}/stream")
    async def join_stateless_run_stream(
        caller: Caller,
        run_id: str,
        stream_mode: Modes = None,
        cancel_on_disconnect: bool = False,
        last_event_id: LastEvent = None,
    ) -> Response:
        run = await runs.find(caller, run_id)
        return await _rejoined(runs, caller, run, _modes(stream_mode), last_event_id, cancel_on_disconnect)

    @api.get("/threads/{thread_id}/stream")
    async def follow_thread(
        caller: Caller,
        thread_id: str,
        stream_mode: Modes = None,
        stream_modes: Modes = None,
        last_event_id: LastEvent = None,
    ) -> Response:
        modes = _modes(stream_modes or stream_mode, _THREAD_MODES) or {"run_modes"}
        position = _position(last_event_id) if last_event_id else None
        subscription = await runs.follow_thread(caller, thread_id)
        missed = await runs.missed_frames(caller, thread_id, position) if position else []
        return streams.sse(streams.of_thread(subscription, modes, missed), f"/threads/{thread_id}")


def _add_rows(api: APIRouter, runs: Runs) -> None:
    @api.get("/threads/{thread_id}/runs")
    async def list_runs(
        caller: Caller,
        thread_id: str,
        limit: Limit = 10,
        offset: Offset = 0,
        status: RunStatus | None = None,
        select: Annotated[list[RunField] | None, Query(max_length=MOST_LISTED)] = None,
    ) -> Response:
        listed = await runs.of_thread(caller, thread_id, status=status, limit=limit, offset=offset)
        view = await runs.view(caller, thread_id)
        rows = [await view.run(run) for run in listed]
        return await thread_views.json([{name: row[name] for name in select} for row in rows] if select else rows)

    @api.get("/threads/{thread_id}/runs/{run_id}")
    async def get_run(caller: Caller, thread_id: str, run_id: str) -> Response:
        run = await runs.get(caller, thread_id, run_id)
        return await thread_views.json(await (await runs.view(caller, thread_id)).run(run))

    @api.delete("/threads/{thread_id}/runs/{run_id}", status_code=204)
    async def delete_run(caller: Caller, executing: Executing, thread_id: str, run_id: str) -> None:
        """One that is under way is gone when this returns, unless it cannot be stopped at once."""
        subscription = await runs.follow_now(caller, run_id)
        try:
            if await runs.delete(caller, thread_id, run_id):
                executing.end()
                with suppress(TimeoutError):
                    await asyncio.wait_for(subscription.end(), _STOPPING_SECONDS)
        finally:
            subscription.close()

    @api.post("/threads/{thread_id}/runs/{run_id}/cancel")
    async def cancel_run(
        caller: Caller,
        executing: Executing,
        thread_id: str,
        run_id: str,
        wait: bool = False,
        action: Cancel = Cancel.INTERRUPT,
    ) -> Response:
        subscription = await runs.follow_now(caller, run_id)
        try:
            run = await runs.cancel(caller, thread_id, run_id, action)
            if wait and run.status is RunStatus.RUNNING:
                executing.end()
                await subscription.end()
        finally:
            subscription.close()
        headers = streams.locations(f"/threads/{thread_id}/runs/{run_id}", "join")
        return JSONResponse({}, headers=headers) if wait else Response(status_code=202)


async def _created(runs: Runs, caller: Principal, thread_id: str | None, body: RunBody) -> Response:
    run = await runs.create(caller, thread_id, _request(body, thread_id))
    shown = await (await runs.view(caller, thread_id)).run(run) if thread_id else run_view(run)
    return await thread_views.json(shown, headers={"Content-Location": _location(run, thread_id)})


async def _streamed(runs: Runs, caller: Principal, thread_id: str | None, body: RunBody) -> Response:
    run, subscription = await runs.begin(caller, thread_id, _request(body, thread_id))
    gone = _canceller(runs, caller, run) if body.on_disconnect == "cancel" else None
    frames = streams.live(subscription, with_id=body.stream_resumable, on_gone=gone)
    return streams.sse(frames, _location(run, thread_id))


async def _waited(
    runs: Runs, caller: Principal, executing: Execution, thread_id: str | None, body: RunBody
) -> Response:
    run, subscription = await runs.begin(caller, thread_id, _request(body, thread_id), only_end=True)
    executing.end()
    location = _location(run, run.thread_id)
    if (done := await streams.soon(subscription)) is not None:
        return Response(done, media_type="application/json", headers=streams.locations(location, "join"))
    gone = _canceller(runs, caller, run) if body.on_disconnect == "cancel" else None
    return _document(streams.result(subscription, on_gone=gone), location)


def _request(body: RunBody, thread_id: str | None) -> RunRequest:
    """The id of a thread that the run creates must be a UUID."""
    if body.if_not_exists == "create" and thread_id is not None:
        require_thread_id(thread_id)
    return body.request()


async def _joined(runs: Runs, caller: Principal, run: Run, cancel: bool) -> Response:
    subscription = await runs.follow_now(caller, run.id)
    current = await _current(runs, caller, run, subscription)
    location = _location(run, run.thread_id)
    if not current.status.active:
        subscription.close()
        result = await runs.result(caller, run.thread_id, run.id)
        return await thread_views.json(result, headers=streams.locations(location, "join"))
    gone = _canceller(runs, caller, run) if cancel else None
    subscription = await runs.shown(subscription, caller, run.thread_id)
    return _document(streams.result(subscription, on_gone=gone), location)


async def _rejoined(
    runs: Runs, caller: Principal, run: Run, modes: Collection[str] | None, last_event: str | None, cancel: bool
) -> Response:
    """Streams future frames; with `Last-Event-ID`, first the frames after it."""
    after = seq_of(last_event) if last_event and run.kwargs.get("resumable") else None
    if after is None:
        subscription = await runs.follow_now(caller, run.id)
    else:
        subscription = runs.follow(caller, run.id, after=after)
    current = await _current(runs, caller, run, subscription)
    kept = await runs.kept_frames(caller, run, after=after) if after is not None else []
    subscription = await runs.shown(subscription, caller, run.thread_id)
    gone = _canceller(runs, caller, run) if cancel else None

    async def frames() -> AsyncIterator[bytes]:
        last = after or 0
        for frame in kept:
            last = frame.seq
            if streams.wanted(frame, modes):
                yield streams.encode(frame, with_id=True)
        if not current.status.active:
            subscription.close()
            return
        resumable = bool(run.kwargs.get("resumable"))
        async for part in streams.live(subscription, with_id=resumable, after=last, modes=modes, on_gone=gone):
            yield part

    return streams.sse(frames(), _location(run, run.thread_id))


async def _current(runs: Runs, caller: Principal, run: Run, subscription: Subscription) -> Run:
    """Reads the run again after subscribing: it may have ended before."""
    try:
        return await runs.get(caller, run.thread_id, run.id)
    except BaseException:
        subscription.close()
        raise


def _canceller(runs: Runs, caller: Principal, run: Run) -> streams.OnGone:
    async def cancel() -> None:
        await runs.cancel_if_active(caller, run.thread_id, run.id)

    return cancel


def _document(parts: AsyncIterator[bytes], location: str) -> Response:
    return StreamingResponse(parts, media_type="application/json", headers=streams.locations(location, "join"))


def _location(run: Run, thread_id: str | None) -> str:
    return f"/threads/{run.thread_id}/runs/{run.id}" if thread_id else f"/runs/{run.id}"


def _modes(params: list[str] | None, known: Collection[str] = MODES) -> Collection[str] | None:
    """Accepts the forms of all clients: repeated, comma-separated, or a JSON array."""
    if not params:
        return None
    listed = [mode for text in params for mode in (_listed(text) if text.startswith("[") else text.split(","))]
    modes = [mode for mode in listed if mode]  # the Python SDK sends an empty one by default
    if unknown := [mode for mode in modes if mode not in known]:
        raise Invalid(f"stream_mode: unknown mode {unknown[0]!r}", hint=f"one of: {', '.join(known)}")
    return {"messages" if mode == "messages-tuple" else mode for mode in modes} or None


def _listed(text: str) -> list[Any]:
    try:
        array = json.loads(text)
    except ValueError:
        raise Invalid("stream_mode: not a JSON array") from None
    return [mode if isinstance(mode, str) else repr(mode) for mode in array]


def _position(last_event: str) -> tuple[int, int]:
    position = position_of(last_event)
    if position is None:
        raise Invalid("last-event-id: not the id of an event")
    return position
