"""The server as the keeper, over every store: what the gate reads and writes is the same on each of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.types import Command, interrupt

from assent import ApprovalMiddleware, current_grant
from assent.gate.keeper import using_keeper
from assent.gate.records import Answered
from assent.identity.model.access import DEFAULT_TENANT, Kind, Principal, Scope
from assent.review import thread_items
from assent.review.decisions import doubts
from assent.review.decisions.decide import Proposal, decide
from assent.review.model.grants import Call, Passing
from assent.review.model.items import Execution, Item
from assent.review.model.questions import Verb
from assent.review.rows import gate, grants, items, policies
from assent.runs.checkpoints import saver
from assent.runs.checkpoints.saver import StoreSaver
from assent.runs.project.gate_keeper import ServerKeeper
from tests.contract.stores import AnyStore, database, opened
from tests.gate.desk import CONFIG, THREAD, asked, script
from tests.graphs.agents import ScriptedModel

__all__ = ["database"]

ANA = Principal(Kind.REVIEWER, "ana", "ana", DEFAULT_TENANT, frozenset({Scope.DECIDE}))
CALL = ("send", {"to": "bob"})


@pytest.fixture
async def store(database: str) -> AsyncIterator[AnyStore]:
    async with opened(database) as store:
        yield store


class Crash(BaseException):
    """Nothing that anybody handles."""


class Room:
    """A graph on a store, and a person who decides what it asks."""

    def __init__(self, store: AnyStore) -> None:
        self.store = store
        self.ran: list[Any] = []
        self.begun = 0
        self.crash = False
        self.waits = asyncio.Event()
        self.agent: Any = create_agent(
            ScriptedModel(),
            [self.send, self.book, self.wait],
            middleware=[ApprovalMiddleware()],
            checkpointer=StoreSaver(store),
        )

    def send(self, to: str) -> str:
        """Sends."""
        grant = current_grant()
        self.ran.append((to, grant and grant.id))
        if self.crash:
            raise Crash
        return f"sent to {to}"

    async def book(self, what: str) -> str:
        """Books."""
        self.begun += 1
        self.ran.append(f"{what} {interrupt('which seat?')}")
        return "booked"

    async def wait(self, what: str) -> str:
        """Never comes to its end."""
        self.ran.append(what)
        self.waits.set()
        await asyncio.Event().wait()
        return "never"

    async def invoke(self, input: Any) -> Any:
        scope = saver.Scope(DEFAULT_TENANT)
        with saver.within(scope), using_keeper(ServerKeeper(self.store, scope)):
            result = await self.agent.ainvoke(input, CONFIG, durability="sync")
        pending = [
            {"id": pending_interrupt.id, "value": pending_interrupt.value}
            for pending_interrupt in result.get("__interrupt__", ())
        ]
        await self.store.write(DEFAULT_TENANT, thread_items.follow, thread_items.Waiting(THREAD, pending, gated=True))
        return result

    async def item(self) -> Item:
        [item_listed] = await self.store.write(DEFAULT_TENANT, items.open_of_thread, THREAD)
        return item_listed

    async def approve(self) -> Item:
        item = await self.item()
        proposal = Proposal(item.revision, item.hash, verb=Verb.APPROVE)
        return await self.store.write(DEFAULT_TENANT, decide, ANA, item.id, proposal)

    async def go_on(self) -> Any:
        answers = await self.store.read(DEFAULT_TENANT, gate.decided_answers, THREAD)
        return await self.invoke(Command(resume=answers))


@pytest.fixture
def room(store: AnyStore) -> Room:
    return Room(store)


@pytest.mark.promise("P1")
async def test_approved_call_consumes_its_grant(room: Room) -> None:
    await room.invoke(script(CALL))
    assert room.ran == []
    item = await room.approve()
    [grant] = await room.store.read(DEFAULT_TENANT, grants.of_item, item.id)
    assert not asked(await room.go_on())
    assert room.ran == [("bob", grant.id)]


async def test_paused_call_continues_with_its_answer(room: Room) -> None:
    await room.invoke(script(("book", {"what": "train"})))
    await room.approve()
    result = await room.go_on()
    assert asked(result) == ["which seat?"]
    await room.invoke(Command(resume={result["__interrupt__"][0].id: "12A"}))
    assert room.ran == ["train 12A"]


@pytest.mark.promise("P2")
async def test_a_paused_call_that_nobody_answered_asks_again_and_is_not_made(room: Room) -> None:
    await room.invoke(script(("book", {"what": "train"})))
    await room.approve()
    paused = await room.go_on()
    for _ in range(3):
        again = await room.invoke(None)
        assert again["__interrupt__"] == paused["__interrupt__"]
    assert room.begun == 1
    await room.invoke(Command(resume={paused["__interrupt__"][0].id: "12A"}))
    assert (room.begun, room.ran) == (2, ["train 12A"])


@pytest.mark.promise("P2")
async def test_control_without_the_question_a_paused_call_is_made_each_time(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Answered, "includes", lambda answered, interrupt_id: True)
    await room.invoke(script(("book", {"what": "train"})))
    await room.approve()
    await room.go_on()
    for _ in range(3):
        await room.invoke(None)
    assert room.begun == 4


@pytest.mark.promise("P2")
async def test_a_started_call_is_in_doubt(room: Room) -> None:
    await room.invoke(script(CALL))
    item = await room.approve()
    room.crash = True
    with pytest.raises(Crash):
        await room.go_on()
    room.crash = False
    [question] = asked(await room.invoke(None))
    assert question["kind"] == "assent.in_doubt"
    assert len(room.ran) == 1
    changed = await room.store.write(DEFAULT_TENANT, doubts.settle, ANA, item.id, "run_again", None, via="test")
    assert changed.execution is Execution.GRANTED
    assert not asked(await room.go_on())
    assert len(room.ran) == 2


@pytest.mark.promise("P2")
async def test_a_cancelled_call_is_in_doubt(room: Room) -> None:
    await room.invoke(script(("wait", {"what": "long"})))
    await room.approve()
    run = asyncio.ensure_future(room.go_on())
    await room.waits.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    [question] = asked(await room.invoke(None))
    assert question["kind"] == "assent.in_doubt"
    assert room.ran == ["long"]


async def test_a_function_that_blocks_is_refused_on_the_loop(store: AnyStore) -> None:
    keeper = ServerKeeper(store, saver.Scope(DEFAULT_TENANT))
    with pytest.raises(RuntimeError, match="make it async"):
        keeper.run(lambda tx: None)
    assert await asyncio.to_thread(keeper.run, lambda tx: tx.tenant) == DEFAULT_TENANT


async def test_a_standing_approval_is_used_up(store: AnyStore) -> None:
    def stand(tx: Any) -> None:
        until = tx.now() + timedelta(hours=1)
        policies.insert_approval(tx, approval_id="a", tool="send", actor="ana", expires_at=until, uses_left=1)

    await store.write(DEFAULT_TENANT, stand)
    use = partial(gate.stands_approved, tool="send", args={"to": "bob"}, graph="g", attempt=None)
    assert await store.write(DEFAULT_TENANT, use)
    assert not await store.write(DEFAULT_TENANT, use)


async def test_unknown_questions_have_no_answers(store: AnyStore) -> None:
    call = Call(THREAD, "c", "send", {}, "tools:1")
    assert await store.read(DEFAULT_TENANT, partial(gate.asked, call=call, interrupt_ids=["1", "2"])) == {}
    consume = partial(gate.consume, call=call, attempt=None, has_answer=lambda interrupt_id: True)
    passage = await store.write(DEFAULT_TENANT, consume)
    assert passage.passing is Passing.ASK
