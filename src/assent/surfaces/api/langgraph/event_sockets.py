"""Event streaming over a web socket: commands and events of one thread on one connection.

The handshake is authenticated like any request, with a cookie only from a page of ours. The credential is looked up
again for every command, since a socket outlives the rights that it was opened with.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.kernel import jsonable
from assent.runs.events.commands import Commands
from assent.runs.events.model import commands as protocol
from assent.runs.events.model.channels import BadSelection, Selection, counted, selection
from assent.runs.events.model.commands import Command, CommandError, command_in, failure, success
from assent.runs.events.model.events import Event
from assent.runs.events.streams import EventStreams, ThreadEvents
from assent.surfaces.api.langgraph.routing import parsed
from assent.surfaces.http.limits.admission import Admission

_REFUSED = 4000
"""A socket is closed with this plus the status of the error: browsers cannot read the status of a refused handshake."""
_LONGEST_REASON = 100
_MOST_SUBSCRIPTIONS = 256


@dataclass(slots=True)
class _Subscription:
    wanted: Selection
    position: int
    """The number of the last event that the client has got for it."""

    def lacks(self, event: Event) -> bool:
        return event.seq > self.position and self.wanted.matches(event)


class EventSocket:
    def __init__(self, socket: WebSocket, caller: Principal, thread_id: str, admission: Admission) -> None:
        self._socket = socket
        self._caller = caller
        self._thread_id = thread_id
        self._admission = admission
        self._subscriptions: dict[str, _Subscription] = {}
        self._renewed = asyncio.Event()
        self._source: ThreadEvents | None = None
        self._sent = 0

    async def serve(self, commands: Commands, events: EventStreams) -> None:
        """Until the client disconnects or may no longer read the thread."""
        await self._socket.accept()
        receiving = asyncio.create_task(self._receive(commands, events))
        sending = asyncio.create_task(self._send_events(events))
        try:
            await asyncio.wait({receiving, sending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (receiving, sending):
                task.cancel()
            ended = await asyncio.gather(receiving, sending, return_exceptions=True)
            await self._close(next((each for each in ended if isinstance(each, AssentError)), None))
        for each in ended:
            if isinstance(each, Exception) and not isinstance(each, AssentError | WebSocketDisconnect):
                raise each

    async def _close(self, error: AssentError | None) -> None:
        if self._socket.application_state is not WebSocketState.CONNECTED:
            return
        with suppress(RuntimeError, WebSocketDisconnect):  # the client may have gone at the same moment
            if error is not None:
                await self._socket.close(_REFUSED + error.status, error.message[:_LONGEST_REASON])

    # Commands

    async def _receive(self, commands: Commands, events: EventStreams) -> None:
        while True:
            text = await self._text()
            self._caller = await events.current(self._caller)
            await self._send(await self._answer(commands, text))

    async def _text(self) -> bytes:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"])
        text: str | None = message.get("text")
        return text.encode() if text is not None else message.get("bytes") or b""

    async def _answer(self, commands: Commands, text: bytes) -> dict[str, Any]:
        number: Any = None
        try:
            async with self._admission.turn(self._caller):
                sent = await parsed(text, self._socket.app.state.max_body_values)
                number = sent.get("id") if isinstance(sent, dict) else None
                command = command_in(sent)
                if command.method in (protocol.SUBSCRIBE, protocol.RECONNECT, protocol.UNSUBSCRIBE, protocol.TREE):
                    return success(command, self._result(command), self._sent)
                return await commands.execute(self._caller, self._thread_id, command)
        except CommandError as error:
            return failure(number, error)
        except AssentError as error:
            facts = {"status": error.status, "code": error.code}
            return failure(number, CommandError(protocol.INVALID, error.message, facts))

    def _result(self, command: Command) -> dict[str, Any]:
        if command.method == protocol.UNSUBSCRIBE:
            return self._unsubscribe(command.params.get("subscription_id"))
        if command.method == protocol.TREE:
            tree = self._source.tree() if self._source is not None else None
            if tree is None:
                raise CommandError(protocol.NO_RUN, "No active run is bound to this thread.")
            return {"tree": tree}
        return self._subscribe(command)

    def _subscribe(self, command: Command) -> dict[str, Any]:
        """Events before it are sent too; with `since`, those after that number."""
        params = command.params
        try:
            wanted = selection(params)
        except BadSelection as error:
            raise CommandError(protocol.INVALID, f"{command.method}: {error}") from None
        since = counted(params.get("since"))
        if command.method == protocol.RECONNECT and since is None:
            raise CommandError(protocol.INVALID, f"{command.method} requires a non-negative integer since.")
        if len(self._subscriptions) >= _MOST_SUBSCRIPTIONS:
            raise CommandError(protocol.INVALID, f"{command.method}: at most {_MOST_SUBSCRIPTIONS} subscriptions.")
        named = params.get("subscription_id") if command.method == protocol.RECONNECT else None
        subscription_id = named[:_LONGEST_REASON] if isinstance(named, str) and named else str(uuid4())
        self._subscriptions[subscription_id] = _Subscription(wanted, since or 0)
        self._renewed.set()
        return {"subscription_id": subscription_id, "replayed_events": 0}

    def _unsubscribe(self, subscription_id: Any) -> dict[str, Any]:
        if not isinstance(subscription_id, str):
            raise CommandError(protocol.INVALID, "subscription.unsubscribe requires a subscription_id.")
        if self._subscriptions.pop(subscription_id, None) is None:
            raise CommandError(protocol.NO_SUBSCRIPTION, f"Unknown subscription: {subscription_id[:_LONGEST_REASON]}")
        return {}

    # Events

    async def _send_events(self, events: EventStreams) -> None:
        """Reads the thread again for every new subscription, from the earliest position."""
        while True:
            await self._renewed.wait()
            self._renewed.clear()
            since = min((each.position for each in self._subscriptions.values()), default=0)
            self._source = events.open(self._caller, self._thread_id, self._is_wanted, since=since)
            source = aiter(self._source)
            async for event in self._until_renewed(source):
                await self._send(event.view())
                self._passed(event)

    async def _until_renewed(self, source: AsyncIterator[Event | None]) -> AsyncIterator[Event]:
        renewed = asyncio.create_task(self._renewed.wait())
        following: asyncio.Future[Event | None] | None = None
        try:
            while not renewed.done():
                following = asyncio.ensure_future(anext(source))
                await asyncio.wait({following, renewed}, return_when=asyncio.FIRST_COMPLETED)
                if following.done() and (event := following.result()) is not None:
                    yield event
        finally:
            renewed.cancel()
            if following is not None and not following.done():
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)

    def _is_wanted(self, event: Event) -> bool:
        return any(subscription.lacks(event) for subscription in self._subscriptions.values())

    def _passed(self, event: Event) -> None:
        self._sent = max(self._sent, event.seq)
        for subscription in self._subscriptions.values():
            if subscription.lacks(event):
                subscription.position = event.seq

    async def _send(self, message: dict[str, Any]) -> None:
        await self._socket.send_text(jsonable.dump(message).decode())
