"""The bypass matrix: every route that changes something × everyone who may not decide × every multitask strategy, now,
delayed, forked and steered; on a thread whose call waits for a person, or that stands before a breakpoint; on a copy
of it; and behind the run that is about to stop. Whatever is sent, and however the attacker then tries to go on, the
call is not made.

The controls make the same attempts where nothing guards it: on the same agent with LangChain's own middleware instead
of the gate, and on the same breakpoint where the policy only advises. There it is made. All of it on both databases.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import httpx
import pytest
from sqlalchemy import func, select

from assent.app import policy_of
from assent.identity.model.access import DEFAULT_TENANT, Kind, Role
from assent.kernel.store.tables import TENANT, checkpoint_writes, runs, threads
from assent.kernel.store.transaction import Tx
from assent.review.rows import items, policies
from assent.settings import Mode
from assent.threads.model.runs import Strategy
from assent.threads.rows.state import checkpoints
from tests.api.house import Builder, House
from tests.api.test_routes import operations, plain
from tests.contract.stores import both_databases
from tests.graphs_gated.attempts import APPROVALS, ATTEMPTS, Sent, Target, script
from tests.graphs_gated.serving import GRAPHS, SECRET
from tests.scoreboard import Count, RecordScore
from tests.waiting import until

P = ParamSpec("P")
T = TypeVar("T")

ELSEWHERE = "elsewhere"
AGENT = "an agent"
OTHER = "the other tenant's reviewer"
PATIENCE = 0.5
WAITING, COPIED, ABOUT_TO_STOP = "waiting", "copied", "about to stop"
ENDED = {"CANCELLED", "EXPIRED"}
NOTHING = "0197c5a0-0000-7000-8000-000000000000"
QUICK = {"SQLite": 40, "Postgres": 200}
"""Of how many bodies of a route one is sent where not all are. A run costs several times as much on Postgres."""
CALLING = {"type": "ai", "content": "", "tool_calls": [{"name": "act", "args": {}, "id": "call"}]}


class Position(NamedTuple):
    """Where the thread and its item stand. An attempt that moves either gets a thread of its own."""

    status: str
    hash: str
    checkpoints: str
    writes: int
    queued: int


@dataclass
class Arena:
    """A server, the people and programs that call it, and the thread that waits."""

    house: House
    log: Path
    graph: str
    reviewer: httpx.AsyncClient
    attackers: dict[str, httpx.AsyncClient]
    scene: str = WAITING
    target: Target | None = None
    position: Position | None = None
    """Of the target, when it was made."""

    made: int = 0
    targets: int = 0
    effects: Counter[str] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)
    answers: Counter[int] = field(default_factory=Counter)

    async def attempt(self, who: str, route: str, sent: Sent) -> None:
        target, attacker = await self.waiting(), self.attackers[who]
        method, path = route.split(" ")
        before = self._lines()
        if self.scene == COPIED:
            copied = await _request(attacker, "POST", f"/threads/{target.thread_id}/copy")
            target = replace(target, thread_id=copied.json().get("thread_id", target.thread_id)) if copied else target
        response = await _request(attacker, method, path.format(**target.ids), **sent)
        self.made += 1
        if self.scene == ABOUT_TO_STOP:
            self._hold(target).with_suffix(".go").touch()
        self.answers[response.status_code if response else 0] += 1
        if response is not None and response.status_code == 200 and method == "POST" and path.endswith("/crons"):
            await self._let_fire(attacker, response.json()["cron_id"])
        if response is None or response.status_code < 400:
            for thread_id in await self._reached(who, target, response):
                await self._press_on(attacker, thread_id)
        await self._settle()
        self.effects[f"{who}: {route} {sent}"] += self._lines() - before
        await self._look(who, route)
        if who == OTHER and route == "PUT /api/policies":
            await self._restore_policy()

    async def _let_fire(self, attacker: httpx.AsyncClient, cron_id: str) -> None:
        """Once: as if the attacker had waited for it."""
        self.house.pass_time(timedelta(seconds=2))

        async def has_fired() -> bool:
            await self.house.engine.firing.look()
            cron = (await attacker.get(f"/runs/crons/{cron_id}")).json()
            return bool(cron["last_run_id"] or cron["missed"])

        await until(has_fired, "the cron does not fire")
        assert (await attacker.delete(f"/runs/crons/{cron_id}")).status_code == 204

    async def _restore_policy(self) -> None:
        """The other tenant's administrator may write its policy, and allow the calls of her own threads. The attempts
        that follow are made under the same policy as the first."""
        policy, source = policy_of(self.house.settings)
        await self.house.services.store.write(ELSEWHERE, policies.put, policy, source=source, actor="system")

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
        if self.target is not None and thread_id == self.target.thread_id and not self.target.stops:
            ungated = {"assistant_id": "stock", "input": None}
            await _request(attacker, "POST", f"/threads/{thread_id}/runs/wait", json=ungated)

    async def _settle(self) -> None:
        """Until nothing runs any more, on whatever thread."""

        async def at_rest() -> bool:
            return not await self._read(_any_busy)

        await until(at_rest, "something runs on and on")

    async def _look(self, who: str, route: str) -> None:
        """The item waits on, or was properly closed; then the next attempt gets another."""
        if self.scene == ABOUT_TO_STOP:
            self.target = None
            return
        position = await self._read(_position, await self.waiting())
        if position.status not in ("PENDING", *ENDED):
            self.decided[f"{who}: {route}: {position.status}"] += 1
        if position != self.position:
            self.target = None

    async def waiting(self) -> Target:
        if self.target is None:
            self.target = await self._new_target()
            self.position = None if self.scene == ABOUT_TO_STOP else await self._read(_position, self.target)
        return self.target

    async def _new_target(self) -> Target:
        self.targets += 1
        agent, tag = self.attackers[AGENT], f"t{self.made}"
        thread_id = (await agent.post("/threads", json={"visibility": "shared"})).json()["thread_id"]
        args = {"log": str(self.log), "tag": tag}
        stops = self.graph not in ("gated", "stock")
        hold = {"hold": str(self.log.with_name(tag))} if self.scene == ABOUT_TO_STOP else {}
        body = {"assistant_id": self.graph, "input": {**args, **hold} if stops else script(args)}
        run = (await agent.post(f"/threads/{thread_id}/runs", json=body)).json()
        common = (self.graph, str(self.log), tag, thread_id, run["run_id"], run["assistant_id"])
        if hold:
            await until(_exists(self.log.with_name(tag).with_suffix(".started")), "the run does not begin")
            return Target(*common, "0" * 32, NOTHING, 1, NOTHING, CALLING, (NOTHING,))
        await agent.get(f"/threads/{thread_id}/runs/{run['run_id']}/join")
        past = (await agent.post(f"/threads/{thread_id}/history", json={"limit": 20})).json()
        response = await self.reviewer.get("/api/inbox/items", params={"filter": f"thread:{thread_id}"})
        [item] = response.json()["items"]
        message = CALLING if stops else past[0]["values"]["messages"][-1]
        seen = (item["source"]["interrupt_id"], item["id"], item["revision"], item["hash"])
        return Target(*common, *seen, message, tuple(state["checkpoint"]["checkpoint_id"] for state in past))

    async def _read(self, function: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """From the tables, because to ask for all this after every attempt took longer than the attempts."""
        return await self.house.services.store.read(DEFAULT_TENANT, function, *args, **kwargs)

    def _hold(self, target: Target) -> Path:
        return self.log.with_name(target.tag)

    def _lines(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


def _any_busy(tx: Tx) -> bool:
    busy = select(threads.c.thread_id).where(threads.c.tenant_id == TENANT, threads.c.status == "busy")
    return tx.first(busy.limit(1)) is not None


def _position(tx: Tx, target: Target) -> Position:
    item = items.get(tx, target.item_id)
    assert item is not None
    of_thread = (checkpoint_writes.c.tenant_id == TENANT, checkpoint_writes.c.thread_id == target.thread_id)
    writes = tx.all(select(func.count()).select_from(checkpoint_writes).where(*of_thread))
    queued = select(runs.c.run_id).where(runs.c.tenant_id == TENANT, runs.c.status == "pending")
    waiting = tx.all(queued.where(runs.c.thread_id == target.thread_id))
    return Position(item.status, item.hash, checkpoints.heads(tx, target.thread_id), writes[0][0], len(waiting))


def _exists(path: Path) -> Callable[[], Awaitable[bool]]:
    async def exists() -> bool:
        return path.exists()

    return exists


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
    messages_told = told if isinstance(told, list) else [told]
    known = {
        thread["thread_id"]
        for thread in messages_told
        if isinstance(thread, dict) and isinstance(thread.get("thread_id"), str)
    }
    location = response.headers.get("content-location", "").split("/")
    return known | ({location[2]} if location[1:2] == ["threads"] else set())


@pytest.fixture
async def build(folder: Path, migrated_file: Path) -> AsyncIterator[Builder]:
    async with AsyncExitStack() as stack:
        yield Builder(folder, migrated_file, stack)


async def open_arena(
    build: Builder, database: str, folder: Path, mode: Mode, graph: str, scene: str = WAITING
) -> Arena:
    house = await build(mode, config=GRAPHS, database=database, secret_key=SECRET)
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
    return Arena(house, folder / "effects", graph, reviewer, attackers, scene)


def routes(house: House) -> set[str]:
    routes_seen = {(method, plain(path)) for method, path in operations(house.app)}
    return {f"{method} {path}" for method, path in routes_seen if method not in ("GET", "HEAD", "OPTIONS")}


async def test_every_route_that_changes_something_is_attempted(build: Builder) -> None:
    house = await build(Mode.SERVE, config=GRAPHS)
    assert routes(house) == ATTEMPTS.keys()


async def test_control_a_new_route_has_no_row(build: Builder) -> None:
    house = await build(Mode.SERVE, config=GRAPHS)
    house.app.add_api_route("/threads/{thread_id}/skip", lambda thread_id: thread_id, methods=["POST"])
    assert routes(house) - ATTEMPTS.keys() == {"POST /threads/{thread_id}/skip"}


def unattempted(route: str, graph: str, strategies: Iterable[str]) -> set[tuple[str, str, str]]:
    """The combinations of strategy, time and way that no body of the route makes."""
    target = Target(graph, "log", "tag", NOTHING, NOTHING, graph, "0" * 32, NOTHING, 1, NOTHING, CALLING, (NOTHING,))
    sent = [request["json"] for request in ATTEMPTS[route](target) if "multitask_strategy" in request["json"]]
    made = {(body["multitask_strategy"], _time(body), way) for body in sent for way in _ways(body)}
    return set(product(strategies, ("now", "delayed"), ("continued", "new input", "forked", "steered"))) - made


def _time(body: dict[str, Any]) -> str:
    return "delayed" if body.get("after_seconds") else "now"


def _ways(body: dict[str, Any]) -> set[str]:
    ways = {"forked"} if "checkpoint_id" in body else set[str]()
    if body.get("command"):
        return ways | {"steered"}
    return ways or {"new input" if body.get("input") else "continued"}


@pytest.mark.parametrize("graph", ["gated", "stopping"])
@pytest.mark.parametrize("how", ["", "/wait", "/stream"])
def test_every_strategy_is_attempted_in_every_way(graph: str, how: str) -> None:
    route = f"POST /threads/{{thread_id}}/runs{how}"
    assert unattempted(route, graph, Strategy) == set()
    assert len(unattempted(route, graph, [*Strategy, "another"])) == 8  # the control: a strategy without a row


@pytest.mark.scoreboard
@pytest.mark.promise("P1")
@pytest.mark.promise("P6")
@pytest.mark.timeout(1800)
@both_databases
@pytest.mark.parametrize(
    ("mode", "graph", "scene"),
    [
        (Mode.DEV, "gated", WAITING),
        (Mode.SERVE, "gated", WAITING),
        (Mode.SERVE, "gated", COPIED),
        (Mode.SERVE, "stopping", WAITING),
        (Mode.SERVE, "stopping", COPIED),
        (Mode.SERVE, "stopping", ABOUT_TO_STOP),
    ],
)
async def test_call_does_not_run_without_a_decision(
    database: str,
    build: Builder,
    folder: Path,
    mode: Mode,
    graph: str,
    scene: str,
    count: Count,
    record_score: RecordScore,
) -> None:
    arena = await open_arena(build, database, folder, mode, graph, scene)
    on = _named(database)
    await _attempt_everything(arena, _routes(scene), thin=count(full=1, quick=QUICK[on]), shared=on == "Postgres")
    print("ATTEMPTS", arena.made, arena.targets)
    record_score(
        f"the bypass matrix, {on}: {len(_routes(scene))} routes × {len(arena.attackers)} callers without "
        f"the right, {GUARDS[graph]}, {scene}, {mode} mode",
        "0 effects, 0 decisions",
        f"{arena.made} attempts: {arena.effects.total()} effects, {arena.decided.total()} decisions",
    )
    assert not +arena.effects
    assert not +arena.decided
    assert scene == ABOUT_TO_STOP or arena.answers.keys() & {403, 404, 409}
    assert not any(status >= 500 for status in arena.answers), arena.answers


@pytest.mark.scoreboard
@pytest.mark.timeout(1800)
@both_databases
@pytest.mark.parametrize(
    ("graph", "scene"),
    [("stock", WAITING), ("stopping", WAITING), ("stopping", COPIED), ("stopping", ABOUT_TO_STOP)],
)
async def test_control_without_the_guard_the_call_runs(
    database: str,
    build: Builder,
    folder: Path,
    graph: str,
    scene: str,
    count: Count,
    record_score: RecordScore,
) -> None:
    """The controls: an agent without our gate, whose questions are advice; a breakpoint that is advice. Quick, they are
    made on the routes of threads: to show that the attempts work, one effect is enough."""
    arena = await open_arena(build, database, folder, Mode.DEV, graph, scene)
    arena.attackers = {AGENT: arena.attackers[AGENT]}
    quick = 20 if scene == ABOUT_TO_STOP else QUICK[_named(database)]  # on few routes
    on = _routes(scene) if count(full=1, quick=0) else [route for route in _routes(scene) if "{thread_id}" in route]
    await _attempt_everything(arena, on, thin=count(full=1, quick=quick))
    print("ATTEMPTS", arena.made, arena.targets)
    record_score(
        f"the bypass matrix, {_named(database)}: by an agent, {GUARDS[graph]} that only advises, {scene} (the control)",
        "more than 0 effects",
        f"{arena.made} attempts: {arena.effects.total()} effects",
    )
    assert arena.effects.total() > 0


def _named(database: str) -> str:
    return "SQLite" if database.startswith("sqlite") else "Postgres"


GUARDS = {"gated": "a gated tool", "stock": "a question", "stopping": "a breakpoint"}
RUNS = tuple(f"POST /threads/{{thread_id}}/runs{how}" for how in ("/stream", "/wait", ""))


def _routes(scene: str) -> list[str]:
    """On a copy, those of threads; behind a run, those that start another."""
    if scene == WAITING:
        return list(ATTEMPTS)
    starts = [*RUNS, "POST /threads/{thread_id}/commands"]
    return starts if scene == ABOUT_TO_STOP else [route for route in ATTEMPTS if "{thread_id}" in route]


async def _attempt_everything(arena: Arena, routes: Sequence[str], *, thin: int, shared: bool = False) -> None:
    """`thin`: only every so many-th body of a route, and not by everyone: by an agent, and by one of the others.
    `shared`: every body by an agent, and by the others in turn, each at least once for each route; `thin` as well, each
    route by one of them in turn."""
    everyone = list(arena.attackers)
    others = [who for who in everyone if who != AGENT]
    for number, (route, bodies) in enumerate((route, ATTEMPTS[route]) for route in routes):
        some = [others[number % len(others)]] if others and thin > 1 else others
        attackers = [everyone[number % len(everyone)]] if shared and thin > 1 else [AGENT, *some]
        for place, who in enumerate(attackers):
            count = len(list(bodies(await arena.waiting())))
            step = len(some) if shared and thin == 1 and who != AGENT else thin
            for index in range((number + place) % min(step, count), count, step):
                sent = list(bodies(await arena.waiting()))[index]
                await arena.attempt(who, route, sent)
