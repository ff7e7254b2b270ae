"""Conversations with a server over plain HTTP, recorded: every request with its status and what was answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx

from tests.waiting import until

Json = dict[str, Any]
Scenario = Callable[["Talk"], Awaitable[None]]
_SECONDS = 120


class Talk:
    """One conversation. `said` has what the server answered, in order."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.said: list[Json] = []

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        sent = {"json": body} if body is not None else {}
        async with asyncio.timeout(_SECONDS):
            response = await self._http.request(method, path, **sent, **options)
        return self._note(f"{method} {path}", response, _body(response))

    async def stream(self, method: str, path: str, body: Any = None, **options: Any) -> list[Any]:
        """The frames of a stream that ends."""
        sent = {"json": body} if body is not None else {}
        async with asyncio.timeout(_SECONDS), self._http.stream(method, path, **sent, **options) as response:
            if response.status_code != 200:
                await response.aread()
                self._note(f"{method} {path}", response, _body(response))
                return []
            frames = [frame async for frame in _frames(response)]
        self._note(f"{method} {path}", response, frames)
        return frames

    async def leave(self, method: str, path: str, body: Any, when: Callable[[], Awaitable[None]]) -> None:
        """The client of this request goes away when something has happened; nothing is recorded."""
        async with httpx.AsyncClient(base_url=self._http.base_url, timeout=_SECONDS) as other:
            asking = asyncio.create_task(other.request(method, path, json=body))
            await when()
            asking.cancel()
            await asyncio.wait([asking])

    async def quietly(self, method: str, path: str) -> None:
        """A request whose answer is not recorded."""
        await self._http.request(method, path)

    async def refusal(self, method: str, path: str) -> None:
        """Only the status and the methods that are allowed instead are recorded."""
        async with asyncio.timeout(_SECONDS), self._http.stream(method, path) as response:
            allowed = response.headers.get("allow", "").replace(" ", "").split(",")
            self.note(f"{method} {path}", status=response.status_code, allow=sorted(allowed))

    async def opened(self, method: str, path: str, **options: Any) -> None:
        """The status of a stream without an end, or the refusal."""
        async with asyncio.timeout(_SECONDS), self._http.stream(method, path, **options) as response:
            refused = response.status_code != 200
            body = _body(response) if refused and await response.aread() is not None else None
            self._note(f"{method} {path}", response, body)

    async def made(self, name: str, path: str, body: str) -> str:
        """The id of something that the conversation needs; not recorded."""
        headers = {"content-type": "application/json"}
        answer = await self._http.post(path, content=body, headers=headers)
        return str(answer.json()[name])

    async def numbers(self, method: str, path: str, **options: Any) -> list[str]:
        """The ids of the frames of a stream that ends."""
        async with asyncio.timeout(_SECONDS), self._http.stream(method, path, **options) as response:
            return [line[3:].strip() async for line in _lines(response) if line.startswith("id:")]

    async def thread(self, **body: Any) -> str:
        thread_id: str = (await self._http.post("/threads", json=body)).json()["thread_id"]
        return thread_id

    async def ended(self, path: str) -> None:
        """Waits for the end of a run, so that what is asked next does not depend on the speed of a server."""
        await self._until(path, ("pending", "running"))

    async def holds(self, thread_id: str) -> str:
        """The id of the thread's run, when its first node has ended."""

        async def has_logged() -> bool:
            state = (await self._http.get(f"/threads/{thread_id}/state")).json()
            return bool((state.get("values") or {}).get("log"))

        await until(has_logged, patience=_SECONDS)
        [*_, first] = (await self._http.get(f"/threads/{thread_id}/runs")).json()
        return str(first["run_id"])

    async def idle(self, thread_id: str) -> Json:
        """The thread, when none of its runs is under way."""
        return await self._until(f"/threads/{thread_id}", ("busy",))

    async def _until(self, path: str, under_way: tuple[str, ...]) -> Json:
        shown: Json = {}

        async def is_over() -> bool:
            shown.update((await self._http.get(path)).json())
            return shown["status"] not in under_way

        await until(is_over, patience=_SECONDS)
        return shown

    async def events(self, thread_id: str, since: int | None = None) -> tuple[list[Json], int]:
        """The protocol events of the run after `since`, until it ended or asks; and the last number."""
        asked: Json = {"channels": ["values", "messages", "lifecycle", "input"]}
        seen: list[Json] = []
        path = f"/threads/{thread_id}/stream/events"
        async with asyncio.timeout(_SECONDS):
            async with self._http.stream(
                "POST", path, json={**asked, **({"since": since} if since else {})}
            ) as response:
                async for frame in _frames(response):
                    seen.append(frame["data"])
                    if _is_end(frame["data"]):
                        break
        begin = next(index for index, event in enumerate(seen) if _is_begin(event))
        return seen[begin:], seen[-1]["seq"]

    def arrange(self, body: Any) -> None:
        """Replaces what was answered last, which has another order on every server, or only its order matters."""
        self.said[-1]["body"] = body

    def note(self, what: str, **said: Any) -> None:
        self.said.append({"call": what, **said})

    def _note(self, call: str, response: httpx.Response, body: Any) -> Any:
        links = {name: response.headers[name] for name in ("location", "content-location") if name in response.headers}
        self.note(call, status=response.status_code, **links, body=body)
        return body


def command(method: str, **params: Any) -> Json:
    return {"id": 1, "method": method, "params": params}


def new_id() -> str:
    return str(uuid4())


def _body(response: httpx.Response) -> Any:
    try:
        return json.loads(response.text) if response.content else None
    except ValueError:
        return response.text


async def _frames(response: httpx.Response) -> AsyncIterator[Json]:
    frame: Json = {}
    async for line in _lines(response):
        name, _, value = line.partition(":")
        if not line and "event" in frame:
            yield frame
            frame = {}
        elif name == "event":
            frame["event"] = value.strip()
        elif name == "data":
            frame["data"] = json.loads(value)


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    """Lines as server-sent events define them; httpx also ends them at U+2028."""
    rest = b""
    async for part in response.aiter_bytes():
        *lines, rest = (rest + part).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            yield line.decode()


def _is_begin(event: Json) -> bool:
    params = event["params"]
    return event["method"] == "lifecycle" and not params["namespace"] and params["data"]["event"] == "running"


def _is_end(event: Json) -> bool:
    params = event["params"]
    ends = ("completed", "failed", "interrupted")
    return event["method"] == "lifecycle" and not params["namespace"] and params["data"]["event"] in ends
