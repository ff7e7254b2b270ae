"""Event streaming, protocol v2 and v3: commands to a thread, and the events of all its runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Body, Response, WebSocket
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import ValidationError

from assent.errors import AssentError, BadRequest, InvalidJson
from assent.kernel import jsonable
from assent.runs.events.commands import Commands
from assent.runs.events.model.channels import BadSelection, counted, selection
from assent.runs.events.model.commands import CommandError, command_in, failure
from assent.runs.events.model.events import Event
from assent.runs.events.streams import EventStreams, ThreadEvents
from assent.runs.runs import Runs
from assent.surfaces.api.langgraph import streams
from assent.surfaces.api.langgraph.event_sockets import EventSocket
from assent.surfaces.api.langgraph.routing import BodyRequest, LangGraphRoute, router
from assent.surfaces.api.langgraph.runbody import RunBody
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.errors import invalid
from assent.threads.run_requests import RunRequest

_Responses = dict[int | str, dict[str, Any]]
_EVENTS: _Responses = {
    200: {"description": "Events, until the client disconnects.", "content": {"text/event-stream": {"schema": {}}}}
}
_COMMANDED: _Responses = {200: {"description": "The answer to the command: its result, or an error with its code."}}


class _EventRequest(BodyRequest):
    """The protocol answers a body that is not JSON as any other body that is no command."""

    async def json(self) -> Any:
        try:
            return await super().json()
        except InvalidJson as error:
            raise BadRequest(error.message, hint=error.hint) from None


class _EventRoute(LangGraphRoute):
    request_class = _EventRequest


def routes(runs: Runs, events: EventStreams) -> APIRouter:
    api = router("", "events", _EventRoute)
    commands = Commands(runs, _run_request)

    @api.post("/threads/{thread_id}/commands", responses=_COMMANDED)
    async def execute_command(caller: Caller, thread_id: str, body: Annotated[Any, Body()]) -> Response:
        """Starts a run (`run.start`) or answers questions (`input.respond`). A refusal is an answer of type `error`."""
        try:
            command = command_in(body)
        except CommandError as error:
            number = body.get("id") if isinstance(body, dict) else None
            return JSONResponse(failure(number, error), 400)
        return JSONResponse(await commands.execute(caller, thread_id, command))

    @api.post("/threads/{thread_id}/stream/events", responses=_EVENTS)
    async def stream_events(caller: Caller, thread_id: str, body: Annotated[Any, Body()]) -> Response:
        """The events of all runs of the thread in the selected channels, with those before; with `since`, those after
        that number. The stream stays open."""
        asked = body if isinstance(body, dict) else {}
        try:
            wanted = selection(asked)
        except BadSelection as error:
            raise BadRequest(str(error)) from None
        await events.require(caller, thread_id)
        opened = events.open(caller, thread_id, wanted.matches, since=counted(asked.get("since")) or 0)
        return StreamingResponse(sent(events, opened), media_type="text/event-stream", headers=streams.UNBUFFERED)

    @api.websocket("/threads/{thread_id}/stream/events")
    async def event_socket(socket: WebSocket, thread_id: str) -> None:
        opened = EventSocket(socket, socket.state.principal, thread_id, socket.app.state.admission)
        with events.serving():
            await opened.serve(commands, events)

    return api


def _run_request(fields: dict[str, Any]) -> RunRequest:
    try:
        return RunBody.model_validate(fields).request()
    except ValidationError as error:
        raise invalid(error) from None


async def sent(events: EventStreams, opened: ThreadEvents) -> AsyncIterator[bytes]:
    """The bytes of the stream. The reason comes last if the reader may not read on."""
    try:
        with events.serving():
            async for event in opened:
                yield streams.HEARTBEAT if event is None else _encoded(event)
    except AssentError as error:
        closing = {"type": "error", "id": None, "error": error.code, "message": error.message}
        yield b"event: error\r\ndata: " + jsonable.dump(closing) + b"\r\n\r\n"


def _encoded(event: Event) -> bytes:
    data = jsonable.dump(event.view())
    return b"event: " + event.method.encode() + b"\r\ndata: " + data + b"\r\nid: %d\r\n\r\n" % event.seq
