"""A deployment with one thread that asks several questions at once. Like Aegra, it runs two answers at once if it gets
them so, and the first of them is lost. A run goes on until the test ends it. It may have a second thread, whose state
it cannot show, or list other threads without end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import uuid4

from tests.federation.faults import whole_request
from tests.listening import listening

Json = dict[str, Any]
THREAD, BROKEN = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"


class Peer:
    def __init__(self, *questions: str) -> None:
        self.url = ""
        self.waits_as = "interrupted"
        self.has_broken = self.has_graph = self.lists_without_end = False
        self.answers: Json = {}
        self.lost = 0
        self.runs: list[Json] = []
        self.listing = 0
        """How many wait for the list of runs, while it is held back."""
        self.may_list = asyncio.Event()
        self.may_list.set()
        self._questions = questions
        self._begun: Json = {}

    def end_run(self) -> None:
        """Ends the current run, which takes its answers."""
        for run in self.runs:
            run["status"] = "success"
        self.answers |= self._begun
        self._begun = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head, _, body = (await whole_request(reader)).partition(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n")[0].decode().split()
            path = target.partition("?")[0]
            status = "500 Broken" if BROKEN in path else "200 OK"
            answer = json.dumps(await self._answer(method, path, json.loads(body or b"null")))
            length = f"content-length: {len(answer)}"
            writer.write(f"HTTP/1.1 {status}\r\nconnection: close\r\n{length}\r\n\r\n{answer}".encode())
            await writer.drain()

    async def _answer(self, method: str, path: str, body: Any) -> Any:
        match method, path.removeprefix(f"/threads/{THREAD}"):
            case "GET", "/info":
                return {"version": "1"}
            case "POST", "/assistants/search":
                return [{"graph_id": body["graph_id"]}] if self.has_graph else []
            case "POST", "/threads/search" if self.lists_without_end:
                return [{**self._thread(), "thread_id": str(uuid4()), "interrupts": {}} for _ in range(body["limit"])]
            case "POST", "/threads/search":
                return [] if body["offset"] else [row for row in self._threads() if row["status"] == body["status"]]
            case "GET", "":
                return self._thread()
            case "GET", "/state":
                return {"tasks": self._tasks()}
            case "GET", "/runs":
                return await self._listed()
            case "POST", "/runs":
                return self._begin(body)
        return []

    async def _listed(self) -> list[Json]:
        self.listing += 1
        await self.may_list.wait()
        self.listing -= 1
        return self.runs[::-1]

    def _begin(self, body: Json) -> Json:
        self.lost += len(self._begun)
        self._begun = dict(body["command"]["resume"])
        place = len(self.runs)
        self.runs.append(
            {
                "run_id": f"run {place}",
                "status": "running",
                "created_at": f"2026-01-01T00:00:{place:02}Z",
                "metadata": body["metadata"],
            }
        )
        return self.runs[-1]

    def _threads(self) -> list[Json]:
        broken = {**self._thread(), "thread_id": BROKEN, "status": "interrupted"}
        return [broken, self._thread()] if self.has_broken else [self._thread()]

    def _thread(self) -> Json:
        status = "busy" if self._begun else self.waits_as if self._tasks() else "idle"
        version = f"{len(self.runs)} {len(self.answers)}"
        return {"thread_id": THREAD, "status": status, "updated_at": version, "metadata": {"graph_id": "asking"}}

    def _tasks(self) -> list[Json]:
        waiting = [question for question in self._questions if question not in self.answers]
        return [{"id": question, "interrupts": [{"id": question, "value": f"{question}?"}]} for question in waiting]


@asynccontextmanager
async def asking_at_once(*questions: str) -> AsyncIterator[Peer]:
    peer = Peer(*questions)
    async with listening(peer.serve) as port:
        peer.url = f"http://127.0.0.1:{port}"
        try:
            yield peer
        finally:
            peer.may_list.set()
