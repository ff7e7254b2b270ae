"""A run that waited does not begin in the name of a person who was disabled or demoted since, or of a program whose
keys were revoked since: not after a delay, nor behind another run, nor with an answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import update

from assent.identity.model.access import Kind, Role, operator
from assent.identity.rows import actors
from assent.kernel.store import tables
from assent.kernel.store.tables import TENANT
from assent.kernel.store.transaction import Tx
from assent.threads.rows import runs
from tests.faults.arena import Arena, Json
from tests.waiting import until

pytestmark = pytest.mark.promise("P6")

SOON = 600
"""Seconds of a delay that is over when the test says so."""


@dataclass
class Actor:
    client: httpx.AsyncClient
    dismiss: Callable[[], Awaitable[None]]
    reason: str


async def person(arena: Arena, **change: object) -> Actor:
    name = f"pat-{uuid4().hex[:8]}"
    client = arena.house.client(await arena.house.person(name))

    async def dismiss() -> None:
        await arena.house.services.users.change(operator(), name, **change)  # type: ignore[arg-type]
        arena.house.forget()

    return Actor(client, dismiss, "was disabled" if "disabled" in change else "may no longer start runs")


async def program(arena: Arena, kind: Kind) -> Actor:
    keys = arena.house.services.keys
    made = await keys.create(operator(), kind=kind, name=f"bot-{uuid4().hex[:8]}")

    async def dismiss() -> None:
        await keys.revoke(operator(), made.key.id)
        arena.house.forget()

    return Actor(arena.house.client(made.secret), dismiss, "were revoked")


ACTORS: dict[str, Callable[[Arena], Awaitable[Actor]]] = {
    "disabled person": lambda arena: person(arena, disabled=True),
    "demoted person": lambda arena: person(arena, role=Role.VIEWER),
    "revoked agent": lambda arena: program(arena, Kind.AGENT),
    "revoked service": lambda arena: program(arena, Kind.SERVICE),
}


async def behind(arena: Arena, actor: Actor, thread: str, **more: object) -> str:
    """A run that pays when its turn comes."""
    body = {"input": {"log": str(arena.log), "tag": "paid"}, **more}
    made = await arena.run(thread, "free", actor.client, how="", **body)
    assert made.status_code == 200, made.text
    return str(made.json()["run_id"])


async def delayed(arena: Arena, actor: Actor) -> tuple[str, str]:
    thread = await arena.thread(actor.client)
    run = await behind(arena, actor, thread, after_seconds=SOON)
    await actor.dismiss()
    await arena.house.services.store.write("default", _wake, run)
    return thread, run


def _wake(tx: Tx, run_id: str) -> None:
    this = update(tables.runs).where(tables.runs.c.tenant_id == TENANT, tables.runs.c.run_id == run_id)
    tx.change(this.values(wake_at=tx.now()))
    runs.wake(tx, run_id)


async def hold_thread(arena: Arena, thread: str, hold: Path) -> None:
    """A run of another person that goes on until the file `<hold>.go` is there."""
    given = {"hold": str(hold), "log": str(arena.log), "tag": "first"}
    first = await arena.run(thread, "free", arena.ana, how="", input=given)
    assert first.status_code == 200, first.text

    async def started() -> bool:
        return Path(f"{hold}.started").exists()

    await until(started, "the first run does not begin")


async def enqueued(arena: Arena, actor: Actor) -> tuple[str, str]:
    thread, hold = await arena.thread(actor.client, visibility="shared"), Path(f"{arena.log}.{uuid4().hex[:6]}")
    await hold_thread(arena, thread, hold)
    run = await behind(arena, actor, thread, multitask_strategy="enqueue")
    await actor.dismiss()
    Path(f"{hold}.go").touch()
    return thread, run


WAYS = {"delayed": delayed, "enqueued": enqueued}


async def ended(arena: Arena, thread: str, run: str) -> Json:
    await arena.rests(thread)
    body: Json = (await arena.ana.get(f"/threads/{thread}/runs/{run}")).json()
    return body


async def refusals(arena: Arena, thread: str) -> list[Json]:
    events = await arena.house.services.audit.search(operator(), subject=f"thread:{thread}", kind="run.refused")
    return [json.loads(payload or "{}") for _, payload in events.items]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", ACTORS)
async def test_waiting_run_of_a_dismissed_actor_does_not_begin(arena: Arena, who: str, way: str) -> None:
    actor = await ACTORS[who](arena)
    thread, run = await WAYS[way](arena, actor)
    state = await ended(arena, thread, run)
    assert state["status"] == "error"
    assert "paid" not in arena.effects
    [told] = await refusals(arena, thread)
    assert told["run"] == run
    assert actor.reason in told["reason"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", ["disabled person", "revoked agent"])
async def test_control_without_the_check_the_run_of_a_dismissed_actor_begins(
    arena: Arena, who: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actors, "why_dismissed", lambda *_: None)
    thread, run = await WAYS[way](arena, await ACTORS[who](arena))
    assert (await ended(arena, thread, run))["status"] == "success"
    assert "paid" in arena.effects


async def test_caller_who_waits_for_the_refused_run_is_told_why(arena: Arena) -> None:
    thread, run = await delayed(arena, await person(arena, disabled=True))
    await arena.rests(thread)
    joined = await arena.ana.get(f"/threads/{thread}/runs/{run}/join")
    assert "its person was disabled" in joined.json()["__error__"]["message"]


async def test_next_run_in_line_begins_after_the_refused_one(arena: Arena) -> None:
    actor = await ACTORS["revoked agent"](arena)
    thread, hold = await arena.thread(actor.client, visibility="shared"), Path(f"{arena.log}.{uuid4().hex[:6]}")
    await hold_thread(arena, thread, hold)
    refused = await behind(arena, actor, thread, multitask_strategy="enqueue")
    last = await arena.run(
        thread, "free", arena.ben, how="", input={"log": str(arena.log), "tag": "ben"}, multitask_strategy="enqueue"
    )
    await actor.dismiss()
    Path(f"{hold}.go").touch()
    assert (await ended(arena, thread, refused))["status"] == "error"
    assert (await ended(arena, thread, last.json()["run_id"]))["status"] == "success"
    assert arena.effects == ["first", "ben"]


async def test_approved_question_of_a_dismissed_agent_is_asked_again(arena: Arena) -> None:
    """The act would be made in the agent's name, so the approval takes no effect, and the thread does not get stuck."""
    actor = await ACTORS["revoked agent"](arena)
    thread = await arena.stopped(client=actor.client)
    item = await arena.item(thread)
    await actor.dismiss()
    assert (await arena.decide(item, "approve")).status_code == 200
    await arena.rests(thread)
    assert arena.effects == []
    again = await arena.item(thread)
    assert (again["id"] != item["id"], again["gated"]) == (True, True)


async def test_agent_with_another_key_goes_on_after_one_was_revoked(arena: Arena) -> None:
    keys = arena.house.services.keys
    first = await keys.create(operator(), kind=Kind.AGENT, name=f"bot-{uuid4().hex[:8]}")
    await keys.create(operator(), kind=Kind.AGENT, agent=first.key.principal_id)

    async def dismiss() -> None:
        await keys.revoke(operator(), first.key.id)

    actor = Actor(arena.house.client(first.secret), dismiss, "")
    thread, run = await delayed(arena, actor)
    assert (await ended(arena, thread, run))["status"] == "success"
    assert arena.effects == ["paid"]
