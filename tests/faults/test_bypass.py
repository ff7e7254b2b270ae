"""The bypass matrix: every route that changes something × everyone who may not decide, on a thread whose call waits for
a person. Whatever is sent, and however they then try to go on, the call is not made.

The control makes the same attempts on the same agent with LangChain's own middleware instead of the gate: there it is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent.domain.access import Kind, Role
from assent.settings import Mode
from tests.api.house import Builder, House
from tests.api.test_routes import operations, plain
from tests.graphs_gated.attempts import APPROVALS, ATTEMPTS, Sent, Target, script
from tests.graphs_gated.serving import GRAPHS
from tests.scoreboard import Count, RecordScore
from tests.workers import until

ELSEWHERE = "elsewhere"
AGENT = "an agent"
OTHER = "the other tenant's reviewer"
PATIENCE = 0.5
ENDED = {"CANCELLED", "EXPIRED"}


@dataclass
class Arena:
    """A server, the people and programs that call it, and the thread that waits."""

    house: House
    log: Path
    graph: str
    reviewer: httpx.AsyncClient
    attackers: dict[str, httpx.AsyncClient]
    target: Target | None = None
    made: int = 0
    effects: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    answers: Counter[int] = field(default_factory=Counter)

    async def attempt(self, who: str, route: str, sent: Sent) -> None:
        target, attacker = await self.waiting(), self.attackers[who]
        method, path = route.split(" ")
        before = self._lines()
        response = await _request(attacker, method, path.format(**target.ids), **sent)
        self.made += 1
        self.answers[response.status_code if response else 0] += 1
        if response is None or response.status_code < 400:
            for thread_id in await self._reached(who, target, response):
                await self._press_on(attacker, thread_id)
        await self._settle(target)
        self.effects[f"{who}: {route} {sent}"] += self._lines() - before
        await self._look(who, route, target)

    async def _reached(self, who: str, target: Target, response: httpx.Response | None) -> set[str]:
        """The threads to go on with. A thread of the other tenant is theirs to decide about, also by the same id."""
        if who != OTHER:
            return {target.thread_id} | (_threads_in(response) if response else set())
        theirs = await self.attackers[OTHER].get(f"/threads/{target.thread_id}")
        return set() if theirs.status_code == 200 else {target.thread_id}

    async def _press_on(self, attacker: httpx.AsyncClient, thread_id: str) -> None:
        """Whoever got somewhere tries to get the rest of the way."""
        run = {"assistant_id": self.graph}
        state = await attacker.get(f"/threads/{thread_id}/state")
        pending = state.json().get("interrupts", []) if state.status_code == 200 else []
        for question in pending:
            answer = {**run, "command": {"resume": {question["id"]: APPROVALS[0]}}}
            await _request(attacker, "POST", f"/threads/{thread_id}/runs/wait", json=answer)
        await _request(attacker, "POST", f"/threads/{thread_id}/runs/wait", json={**run, "input": None})
        if self.target is not None and thread_id == self.target.thread_id:
            ungated = {"assistant_id": "stock", "input": None}
            await _request(attacker, "POST", f"/threads/{thread_id}/runs/wait", json=ungated)

    async def _settle(self, target: Target) -> None:
        """Until nothing runs any more, on whatever thread."""

        async def at_rest() -> bool:
            busy = await self.reviewer.post("/threads/count", json={"status": "busy"})
            return bool(busy.json() == 0)

        await until(at_rest, "something runs on and on")

    async def _look(self, who: str, route: str, target: Target) -> None:
        """The item waits on, or was properly closed; then the next attempt gets another."""
        item = (await self.reviewer.get(f"/api/inbox/items/{target.item_id}")).json()
        if item["status"] not in ("PENDING", *ENDED):
            self.decided[f"{who}: {route}: {item['status']}"] += 1
        thread = await self.reviewer.get(f"/threads/{target.thread_id}/state")
        asked = [one["id"] for one in thread.json().get("interrupts", [])] if thread.status_code == 200 else []
        queued = await self.reviewer.get(f"/threads/{target.thread_id}/runs", params={"status": "pending"})
        unchanged = item["status"] == "PENDING" and item["hash"] == target.hash and asked == [target.interrupt_id]
        if queued.json() or not unchanged:
            self.target = None

    async def waiting(self) -> Target:
        if self.target is None:
            self.target = await self._new_target()
        return self.target

    async def _new_target(self) -> Target:
        agent, tag = self.attackers[AGENT], f"t{self.made}"
        thread_id = (await agent.post("/threads", json={})).json()["thread_id"]
        body = {"assistant_id": self.graph, "input": script({"log": str(self.log), "tag": tag})}
        run = (await agent.post(f"/threads/{thread_id}/runs", json=body)).json()
        await agent.get(f"/threads/{thread_id}/runs/{run['run_id']}/join")
        past = (await agent.post(f"/threads/{thread_id}/history", json={"limit": 20})).json()
        found = await self.reviewer.get("/api/inbox/items", params={"filter": f"thread:{thread_id}"})
        [item] = found.json()["items"]
        return Target(
            self.graph,
            str(self.log),
            tag,
            thread_id,
            run["run_id"],
            run["assistant_id"],
            item["source"]["interrupt_id"],
            item["id"],
            item["revision"],
            item["hash"],
            past[0]["values"]["messages"][-1],
            tuple(one["checkpoint"]["checkpoint_id"] for one in past),
        )

    def _lines(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


async def _request(caller: httpx.AsyncClient, method: str, path: str, **sent: Any) -> httpx.Response | None:
    """None where it would wait for what never comes: a run in line behind the open question."""
    try:
        return await asyncio.wait_for(caller.request(method, path, **sent), PATIENCE)
    except TimeoutError:
        return None


def _threads_in(response: httpx.Response) -> set[str]:
    try:
        told = response.json()
    except ValueError:
        told = None
    found = told if isinstance(told, list) else [told]
    known = {one["thread_id"] for one in found if isinstance(one, dict) and isinstance(one.get("thread_id"), str)}
    location = response.headers.get("content-location", "").split("/")
    return known | ({location[2]} if location[1:2] == ["threads"] else set())


@pytest.fixture
async def build(folder: Path, migrated_file: Path) -> AsyncIterator[Builder]:
    async with AsyncExitStack() as stack:
        yield Builder(folder, migrated_file, stack)


async def open_arena(build: Builder, folder: Path, mode: Mode, graph: str) -> Arena:
    house = await build(mode, config=GRAPHS)
    reviewer = house.client(await house.person("ana"))
    viewer, elsewhere = await house.person("val", Role.VIEWER), await house.person("eve", Role.ADMIN, tenant=ELSEWHERE)
    await house.person("nat")
    attackers = {
        AGENT: house.client(await house.key()),
        "a service": house.client(await house.key(Kind.SERVICE)),
        "a viewer": house.client(viewer),
        "a reviewer's key without decide": house.client(await house.key_of("nat", "runs:write", "items:read")),
        OTHER: house.client(elsewhere),
    }
    if mode is Mode.DEV:
        attackers["nobody, on loopback"] = house.client()
    return Arena(house, folder / "effects", graph, reviewer, attackers)


def routes(house: House) -> set[str]:
    found = {(method, plain(path)) for method, path in operations(house.app)}
    return {f"{method} {path}" for method, path in found if method not in ("GET", "HEAD", "OPTIONS")}


async def test_every_route_that_changes_something_is_attempted(build: Builder) -> None:
    house = await build(Mode.SERVE, config=GRAPHS)
    assert routes(house) == ATTEMPTS.keys()


@pytest.mark.scoreboard
@pytest.mark.promise("P1")
@pytest.mark.promise("P6")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", [Mode.DEV, Mode.SERVE])
async def test_nothing_runs_without_a_decision(
    build: Builder, folder: Path, mode: Mode, count: Count, record_score: RecordScore
) -> None:
    arena = await open_arena(build, folder, mode, "gated")
    await _attempt_everything(arena, thin=count(full=1, quick=12))
    record_score(
        f"the bypass matrix: {len(ATTEMPTS)} routes × {len(arena.attackers)} callers without the right, {mode} mode",
        "0 effects, 0 decisions",
        f"{arena.made} attempts: {arena.effects.total()} effects, {arena.decided.total()} decisions",
    )
    assert not +arena.effects
    assert not +arena.decided
    assert arena.answers.keys() & {403, 404, 409}
    assert not any(status >= 500 for status in arena.answers if status != 501), arena.answers


@pytest.mark.scoreboard
@pytest.mark.timeout(1800)
async def test_without_the_gate_it_runs(build: Builder, folder: Path, count: Count, record_score: RecordScore) -> None:
    """The control: an agent without our gate, whose questions are advice."""
    arena = await open_arena(build, folder, Mode.DEV, "stock")
    arena.attackers = {AGENT: arena.attackers[AGENT]}
    await _attempt_everything(arena, thin=count(full=1, quick=12))
    record_score(
        "the bypass matrix: by an agent, on a graph without the gate (the control)",
        "more than 0 effects",
        f"{arena.made} attempts: {arena.effects.total()} effects",
    )
    assert arena.effects.total() > 0


async def _attempt_everything(arena: Arena, *, thin: int) -> None:
    """`thin`: only every so many-th body of a route, and not by everyone: by an agent, and by one of the others."""
    others = [who for who in arena.attackers if who != AGENT]
    for number, (route, bodies) in enumerate(ATTEMPTS.items()):
        some = [others[number % len(others)]] if others and thin > 1 else others
        for who in (AGENT, *some):
            count = len(list(bodies(await arena.waiting())))
            for index in range(number % min(thin, count), count, thin):
                sent = list(bodies(await arena.waiting()))[index]
                await arena.attempt(who, route, sent)
