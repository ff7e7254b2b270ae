"""Another deployment, as hostile as a test wants it: its threads ask what the test says, and answers are recorded."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.faults.arena import Arena, Json
from tests.waiting import until


@dataclass
class Far:
    """`then` are the next questions of a thread, one for each answer that it gets."""

    url: str = ""
    asked: dict[str, Json | None] = field(default_factory=dict)
    then: list[Json] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    facts: dict[str, Json] = field(default_factory=dict)
    """What threads say about themselves, instead of the usual."""
    state: bytes | None = None
    """The response with the state of every thread, in place of the true one."""

    def ask(self, value: Any) -> str:
        """A new thread that asks this."""
        thread_id = str(uuid4())
        self.asked[thread_id] = {"id": uuid4().hex, "value": value}
        return thread_id

    async def item(self, arena: Arena, thread_id: str) -> Json:
        """The pending item of the thread's present question."""

        async def listed() -> list[Json]:
            page = (await arena.ana.get("/api/inbox/items", params={"filter": "is:pending"})).json()["items"]
            return [item for item in page if self._asks(item, thread_id)]

        async def appeared() -> bool:
            return bool(await listed())

        await until(appeared, "the question does not appear")
        [item] = await listed()
        shown: Json = (await arena.ana.get(f"/api/inbox/items/{item['id']}")).json()
        return shown

    def _asks(self, item: Json, thread_id: str) -> bool:
        remote, question = item["source"]["remote"], self.asked[thread_id]
        return bool(remote and question) and item["source"]["interrupt_id"] == (question or {})["id"]

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/info", self._info),
                Route("/threads/search", self._search, methods=["POST"]),
                Route("/threads/{id}", self._thread),
                Route("/threads/{id}/state", self._state),
                Route("/threads/{id}/runs", self._runs, methods=["GET"]),
                Route("/threads/{id}/runs", self._start, methods=["POST"]),
            ]
        )

    async def _info(self, request: Request) -> Response:
        return JSONResponse({"version": "1", "flags": {}})

    async def _search(self, request: Request) -> Response:
        body = await request.json()
        rows = [self._row(id) for id in self.asked]
        return JSONResponse([row for row in rows if row["status"] == body["status"]][body["offset"] :])

    async def _thread(self, request: Request) -> Response:
        id = request.path_params["id"]
        return JSONResponse(self._row(id)) if id in self.asked else JSONResponse({}, 404)

    async def _state(self, request: Request) -> Response:
        if self.state is not None:
            return Response(self.state)
        question = self.asked[request.path_params["id"]]
        return JSONResponse({"values": {}, "tasks": [{"id": "t", "interrupts": [question] if question else []}]})

    async def _runs(self, request: Request) -> Response:
        runs = [{"run_id": str(n), "status": "success", **run} for n, run in enumerate(self.answers)]
        return JSONResponse(runs[::-1])

    async def _start(self, request: Request) -> Response:
        run = await request.json()
        self.answers.append({"metadata": run["metadata"], "kwargs": run})
        follows = self.then.pop(0) if self.then else None
        self.asked[request.path_params["id"]] = {"id": uuid4().hex, "value": follows} if follows else None
        return JSONResponse({"run_id": "run"})

    def _row(self, id: str) -> Json:
        question, status = self.asked[id], "interrupted" if self.asked[id] else "idle"
        row = {"thread_id": id, "status": status, "updated_at": question["id"] if question else "", "metadata": GRAPH}
        row |= self.facts.get(id, {})
        return row if self.state is not None else {**row, "interrupts": {"t": [question]} if question else {}}


def call(name: str, **args: Any) -> Json:
    """The question whether an agent may make this call."""
    configs = [{"action_name": name, "allowed_decisions": ["approve", "edit", "reject"]}]
    return {"action_requests": [{"name": name, "args": args}], "review_configs": configs}


PAY = call("pay", amount=5, password="4711")
GRAPH = {"graph_id": "gated"}
"""It has the name of a graph of the arena."""


@asynccontextmanager
async def serving() -> AsyncIterator[Far]:
    far, listening = Far(), socket.socket()
    listening.bind(("127.0.0.1", 0))
    far.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(far.app(), log_level="warning", lifespan="off"))
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield far
    finally:
        server.should_exit = True
        await task
