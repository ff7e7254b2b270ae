"""The gate's contract, wherever it keeps its records: in the store of the server that runs the graph, in a local file,
in a Postgres database without a server, and on a server elsewhere."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from assent import LocalInbox
from assent.gate.keeper import using_keeper
from assent.gate.stored import Book
from assent.identity.model.access import DEFAULT_TENANT, Kind, Principal, Scope
from assent.kernel.canonical import Json
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.decisions import doubts
from assent.review.decisions.decide import Proposal, decide
from assent.review.model.grants import Call
from assent.review.model.items import Item
from assent.review.model.questions import Verb, Verdict
from assent.review.rows import gate, items
from assent.runs.checkpoints import saver
from assent.runs.project.gate_keeper import ServerKeeper
from tests.contract.stores import AnyStore, migrated_database, opened
from tests.gate.desk import asked, script
from tests.gate.scenes import SEND, LocalScene, RemoteScene, Scene, raw
from tests.graphs.agents import ScriptedModel
from tests.servers import ServerProcess, dev_server, running

ANA = Principal(Kind.REVIEWER, "ana", "ana", DEFAULT_TENANT, frozenset({Scope.DECIDE}))
ASKED_LIKE: Any = {"send": {"allowed_decisions": ["approve", "edit", "reject"], "description": "Send this?"}}
PLACES = ("server", "file", "postgres", "elsewhere")


class _AnswersOfRuns(Book):
    """A run records the answers that it was started with; here they are still in the outbox."""

    def answer(self, tx: Tx, call: Call, interrupt_id: str) -> Json:
        return gate.decided_answer(tx, call.thread_id, interrupt_id)


class ServerScene(Scene):
    """The store of a server that runs the graph: it creates items when a run has stopped."""

    keeper: ServerKeeper

    def __init__(self, store: AnyStore, **gate: Any) -> None:
        self.store = store
        self.scope = saver.Scope(DEFAULT_TENANT)
        super().__init__(ServerKeeper(store, self.scope), "thread-1", **gate)
        self.keeper.book = _AnswersOfRuns()

    async def invoke(self, input: Any) -> Any:
        with saver.within(self.scope), using_keeper(self.keeper):
            result = await super().invoke(input)
        pending = [asdict(raised) for raised in result.get("__interrupt__", ())]
        waiting = thread_items.Waiting(self.thread_id, pending, gated=True)
        await self.store.write(DEFAULT_TENANT, thread_items.follow, waiting)
        return result

    async def latest(self) -> Item:
        listed = await self.store.read(DEFAULT_TENANT, items.of_thread, self.thread_id)
        return max(listed, key=lambda item: item.created_at)

    async def decide(self, verb: Any = "approve", **said: Any) -> None:
        item = await self.latest()
        verdict = Verdict("0", Verb(verb), args=said.get("args"), message=said.get("message"))
        proposal = Proposal(item.revision, item.hash, verdicts=(verdict,))
        await self.store.write(DEFAULT_TENANT, decide, ANA, item.id, proposal)

    async def settle(self, outcome: str) -> None:
        item = await self.latest()
        await self.store.write(DEFAULT_TENANT, doubts.settle, ANA, item.id, outcome, None, via="test")

    async def execution(self) -> str | None:
        listed = await self.store.read(DEFAULT_TENANT, items.of_thread, self.thread_id)
        return next((item.execution for item in listed if item.execution is not None), None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    database = f"sqlite:///{tmp_path_factory.mktemp('elsewhere')}/assent.db"
    with running(dev_server(database, ASSENT_GATE_PATIENCE="1s")) as server:
        yield server


@asynccontextmanager
async def _opened(place: str, request: pytest.FixtureRequest, **gate: Any) -> AsyncIterator[Scene]:
    folder: Path = request.getfixturevalue("folder")
    if place == "file":
        yield LocalScene(LocalInbox(folder / "gate.db"), "thread-1", **gate)
    elif place == "elsewhere":
        server = request.getfixturevalue("server")
        keys = server.printed("agent key"), server.printed("reviewer key")
        with closing(RemoteScene(server.url, *keys, uuid.uuid4().hex, **gate)) as scene:
            yield scene
    elif place == "postgres":
        with migrated_database(request.getfixturevalue("postgres")) as url:
            yield LocalScene(LocalInbox(url), "thread-1", **gate)
    else:
        shutil.copy(request.getfixturevalue("migrated_file"), folder / "assent.db")
        async with opened(f"sqlite:///{folder}/assent.db") as store:
            yield ServerScene(store, **gate)


@pytest.fixture(params=PLACES)
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    async with _opened(request.param, request) as scene:
        yield scene


@pytest.fixture(params=PLACES)
async def idempotent(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    async with _opened(request.param, request, idempotent=["send"]) as scene:
        yield scene


@pytest.fixture(params=PLACES)
async def hitl(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    async with _opened(request.param, request, as_hitl_request=True, interrupt_on=ASKED_LIKE) as scene:
        yield scene


@pytest.mark.promise("P1")
async def test_question_for_front_ends_of_langchains_middleware_is_the_same(hitl: Scene) -> None:
    stock: Any = HumanInTheLoopMiddleware(ASKED_LIKE)
    theirs: Any = create_agent(ScriptedModel(), [hitl.send], middleware=[stock], checkpointer=InMemorySaver())
    paused = await hitl.ask()
    assert asked(paused) == asked(await theirs.ainvoke(script(SEND), hitl.config))
    decisions = {"decisions": [{"type": "approve"}]}
    for resume in (decisions, {paused["__interrupt__"][0].id: decisions}):
        again = await hitl.invoke(Command(resume=resume))  # by nobody
        assert asked(again) == asked(paused)
    assert hitl.ran == []
    await hitl.decide()
    assert await hitl.said() == "sent to bob"
    assert hitl.effects == ["bob"]


@pytest.mark.promise("P1", "DROP-09")
async def test_approved_call_runs_once_under_its_grant(scene: Scene) -> None:
    await scene.ask()
    assert scene.ran == []
    await scene.decide()
    assert await scene.said() == "sent to bob"
    [(to, grant)] = scene.ran
    assert (to, bool(grant), await scene.execution()) == ("bob", True, "done")


@pytest.mark.promise("P1")
async def test_answer_of_nobody_makes_no_call_and_the_gate_asks_again(scene: Scene) -> None:
    first = await scene.ask()
    again = await scene.invoke(raw(first))
    assert [value["name"] for value in asked(again)] == ["send"]
    assert (await scene.invoke(None))["__interrupt__"] == again["__interrupt__"]
    assert scene.ran == []


@pytest.mark.parametrize(
    ("verb", "said", "heard", "effects"),
    [
        ("reject", {"message": "not to bob"}, "with reason: not to bob", []),
        ("respond", {"message": "I wrote to him"}, "I wrote to him", []),
        ("edit", {"args": {"to": "eve"}}, "Tool response:\nsent to eve", ["eve"]),
    ],
)
async def test_verdict_of_a_person_arrives(scene: Scene, verb: str, said: Any, heard: str, effects: list[str]) -> None:
    await scene.ask()
    await scene.decide(verb, **said)
    assert heard in await scene.said()
    assert scene.effects == effects


@pytest.mark.promise("P1")
async def test_other_arguments_than_the_approved_ones_are_asked_about(scene: Scene) -> None:
    await scene.ask()
    await scene.decide()
    state = await scene.agent.aget_state(scene.config)
    message = state.values["messages"][-1]
    message.tool_calls[0]["args"] = {"to": "eve"}
    forged = await scene.agent.aupdate_state(scene.config, {"messages": [message]}, as_node="model")
    result = await scene.agent.ainvoke(None, forged) if not isinstance(scene, ServerScene) else await scene.invoke(None)
    assert [value["args"] for value in asked(result)] == [{"to": "eve"}]
    assert scene.ran == []


@pytest.mark.promise("P2")
@pytest.mark.parametrize(("outcome", "heard", "made"), [("done", "carried out", 1), ("run_again", "sent to bob", 2)])
async def test_interrupted_call_is_in_doubt_until_a_person_settles_it(
    scene: Scene, outcome: str, heard: str, made: int
) -> None:
    await scene.ask()
    await scene.decide()
    scene.crashes = True
    await scene.crash(None)
    [question] = asked(await scene.invoke(None))
    assert question["kind"] == "assent.in_doubt"
    assert (len(scene.ran), await scene.execution()) == (1, "in_doubt")
    await scene.settle(outcome)
    assert heard in await scene.said()
    assert len(scene.ran) == made


@pytest.mark.promise("P2")
async def test_recorded_result_is_repeated_without_another_call(scene: Scene) -> None:
    await scene.ask()
    await scene.decide()
    scene.crashes_after = True
    await scene.crash(None)
    assert await scene.said() == "sent to bob"
    assert len(scene.ran) == 1


@pytest.mark.promise("P2")
async def test_interrupted_idempotent_call_is_repeated_under_the_same_grant(idempotent: Scene) -> None:
    await idempotent.ask()
    await idempotent.decide()
    idempotent.crashes = True
    await idempotent.crash(None)
    assert await idempotent.said() == "sent to bob"
    assert len(idempotent.ran) == 2
    assert len(set(idempotent.ran)) == 1, "the receiver gets the same key"


async def test_call_with_a_question_of_its_own_continues_with_the_answer(scene: Scene) -> None:
    await scene.ask(("book", {"what": "train"}))
    await scene.decide()
    paused = await scene.invoke(None)
    assert asked(paused) == ["which seat?"]
    await scene.invoke(Command(resume={paused["__interrupt__"][0].id: "12A"}))
    assert (scene.ran, await scene.execution()) == (["train 12A"], "done")
