"""A gate in a process elsewhere: what the server refuses it, and what happens when either of them is gone."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from assent import ApprovalMiddleware, RemoteInbox, gated
from assent.app import open_services
from assent.errors import ConfigError, Conflict, Forbidden, NotFound, Unavailable
from assent.gate import places
from assent.gate.inbox import LocalInbox
from assent.identity.model.access import DEFAULT_TENANT
from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.review.rows import gate, policies
from assent.settings import Settings
from tests.cli.command import execute
from tests.gate.desk import asked
from tests.gate.scenes import RemoteScene
from tests.gate.test_crashes import FORKS, KILLED
from tests.scoreboard import Count, RecordScore
from tests.servers import ServerProcess, dev_server, running
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('elsewhere')}/assent.db"


@pytest.fixture(scope="module")
def server(database: str) -> Iterator[ServerProcess]:
    with running(dev_server(database, ASSENT_GATE_PATIENCE="2s")) as server:
        yield server


@pytest.fixture
def scene(server: ServerProcess) -> Iterator[RemoteScene]:
    keys = server.printed("agent key"), server.printed("reviewer key")
    with closing(RemoteScene(server.url, *keys, uuid.uuid4().hex)) as scene:
        yield scene


def new_key(database: str, name: str, *options: str) -> str:
    """The secret of another key."""
    return str(execute(Path.cwd(), "keys", "create", name, "--database", database, "--json", *options).json["secret"])


class Attempts:
    """The requests of a process, without its graph."""

    def __init__(self, scene: RemoteScene, key: str | None = None, deployment: str = "scene") -> None:
        self.headers = {"x-api-key": key or scene.keeper._given[1] or ""}
        self.url = f"{scene.url}/api/gate"
        self.deployment = deployment

    def post(self, path: str, **body: Any) -> httpx.Response:
        return httpx.post(f"{self.url}{path}", json=body, headers=self.headers, timeout=30)

    def take(self, call: Any, attempt: str) -> dict[str, Any]:
        response = self.post("/grants", call={**call, "deployment": self.deployment}, attempt=attempt)
        assert response.status_code == 200, response.text
        passage: dict[str, Any] = response.json()["passage"]
        return passage

    def report(self, grant_id: str, kind: str, **facts: Any) -> int:
        return self.post(f"/grants/{grant_id}/reports", kind=kind, **facts).status_code


async def approved_call(scene: RemoteScene) -> dict[str, Any]:
    """The call that a person has approved, as the process describes it."""
    taken: list[Any] = []
    [question] = asked(await scene.ask())
    await scene.decide()
    records = scene.keeper._connected().records
    post = records.post

    def lost(path: str, body: Any) -> Any:
        """Instead of the request that consumes the grant."""
        if path != "/grants":
            return post(path, body)
        taken.append(body)
        raise NotFound("lost")

    records.post = lost
    try:
        with pytest.raises(NotFound):
            await scene.invoke(None)
    finally:
        records.post = post
    assert question["tool_call_id"] == taken[0]["call"]["call_id"]
    call: dict[str, Any] = taken[0]["call"]
    return call


@pytest.mark.promise("P2")
async def test_repeated_request_of_an_attempt_gets_its_grant_and_another_attempt_does_not(scene: RemoteScene) -> None:
    call, attempts = await approved_call(scene), Attempts(scene)
    first = attempts.take(call, "a")
    assert first["passing"] == "go"
    assert attempts.take(call, "a")["grant"]["id"] == first["grant"]["id"]
    assert attempts.take(call, "a")["passing"] == "go"
    assert attempts.report(first["grant"]["id"], "alive", attempt="a") == 204
    assert attempts.take(call, "b")["passing"] == "busy"
    assert attempts.report(first["grant"]["id"], "done", attempt="b", result={"value": 1}) == 409
    assert attempts.report(first["grant"]["id"], "done", attempt="a", result={"value": 1}) == 204
    assert attempts.take(call, "c")["passing"] == "repeat"


@pytest.mark.promise("P10")
async def test_key_of_another_agent_or_tenant_cannot_use_the_grant(scene: RemoteScene, database: str) -> None:
    call = await approved_call(scene)
    other = Attempts(scene, new_key(database, "other"))
    stranger = Attempts(scene, new_key(database, "stranger", "--tenant", "elsewhere"))
    assert other.take(call, "a")["passing"] == "ask"
    assert stranger.take(call, "a")["passing"] == "ask"
    assert other.post("/look", call={**call, "deployment": "scene"}).json()["questions"]["exist"] is False
    assert Attempts(scene, deployment="another").take(call, "a")["passing"] == "ask"
    passage = Attempts(scene).take(call, "a")
    assert passage["passing"] == "go", "the control: the agent itself"
    for intruder in (other, stranger):
        assert intruder.report(passage["grant"]["id"], "returned", attempt="a") == 404
        assert intruder.report(passage["grant"]["id"], "alive", attempt="a") == 404


@pytest.mark.promise("P1")
@pytest.mark.parametrize("change", [{"args": {"to": "eve"}}, {"tool": "pay"}, {"call_id": "x"}, {"thread_id": "x"}])
async def test_changed_call_cannot_use_the_grant(scene: RemoteScene, change: dict[str, Any]) -> None:
    call = await approved_call(scene)
    assert Attempts(scene).take({**call, **change}, "a")["passing"] == "ask"


@pytest.mark.promise("P1")
async def test_standing_approval_of_a_graph_here_covers_no_call_elsewhere(scene: RemoteScene, database: str) -> None:
    """A process may give its graph the name of one here."""

    def allowed(tx: Tx) -> bool:
        lasting = {"item_id": None, "expires_at": tx.now() + timedelta(hours=1), "uses_left": None}
        scope = {"tool": "send", "graph": "mail", "agent": None, "condition": None, "args_hash": None}
        policies.insert_approval(tx, approval_id=new_id(), actor="reviewer:ana", **scope, **lasting)
        return gate.stands_approved(tx, "send", {"to": "bob"}, "mail", None)

    async with open_services(Settings(database=database)) as services:
        assert await services.store.write(DEFAULT_TENANT, allowed), "the control: a call of the graph here"
    scene.config["configurable"]["graph_id"] = "mail"
    assert asked(await scene.ask())
    assert scene.ran == []


@pytest.mark.promise("P6")
async def test_key_of_a_person_is_refused(server: ServerProcess) -> None:
    key = server.printed("reviewer key")
    with closing(RemoteScene(server.url, key, key, uuid.uuid4().hex)) as scene, pytest.raises(Forbidden, match="agent"):
        await scene.ask()


@pytest.mark.promise("P2")
async def test_call_whose_heartbeats_stop_is_in_doubt_and_its_late_end_is_told(scene: RemoteScene) -> None:
    call, attempts = await approved_call(scene), Attempts(scene)
    grant = attempts.take(call, "a")["grant"]["id"]
    wait_until(lambda: scene.item()["execution"] == "in_doubt", "the call is not in doubt")
    assert attempts.report(grant, "alive", attempt="a") == 204
    assert attempts.take(call, "b")["passing"] == "in_doubt", "a late heartbeat revives nobody"
    assert attempts.take(call, "a")["passing"] == "in_doubt", "a person may settle it now as not made"
    assert attempts.report(grant, "done", attempt="a", result={"value": 1}) == 204
    assert scene.item()["execution"] == "done"


async def test_control_with_heartbeats_the_call_is_not_in_doubt(scene: RemoteScene) -> None:
    call, attempts = await approved_call(scene), Attempts(scene)
    grant = attempts.take(call, "a")["grant"]["id"]
    beats = iter(range(8))

    def beaten() -> bool:
        assert attempts.report(grant, "alive", attempt="a") == 204
        return next(beats, None) is None

    wait_until(beaten, "it ends")
    assert attempts.take(call, "b")["passing"] == "busy"
    assert attempts.take(call, "a")["passing"] == "go"
    assert scene.item()["execution"] == "started"


async def test_comment_of_a_person_follows_the_result(scene: RemoteScene) -> None:
    await scene.ask()
    scene.person.post(f"/api/inbox/items/{scene.items[-1]}/comments", json={"text": "greet him"})
    await scene.decide()
    assert "greet him" in await scene.said()


async def test_item_shows_the_thread_of_the_process(scene: RemoteScene) -> None:
    await scene.ask()
    item = scene.item()
    assert item["source"]["elsewhere"] == {"deployment": "scene", "thread_id": scene.thread_id}
    page = scene.person.get(f"/inbox/{item['id']}", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert scene.thread_id in page.text
    assert f"/inbox/threads/{item['source']['thread_id']}" not in page.text


async def test_wait_returns_the_command_that_resumes_the_graph(scene: RemoteScene) -> None:
    paused = await scene.ask()
    await scene.decide()
    assert await scene.said(scene.keeper.wait(paused, timeout=30)) == "sent to bob"


async def test_wait_for_nothing_and_for_nobody(scene: RemoteScene) -> None:
    with pytest.raises(Conflict, match="no question"):
        scene.keeper.wait({})
    paused = await scene.ask()
    with pytest.raises(TimeoutError):
        scene.keeper.wait(paused, timeout=0.05)


@pytest.mark.promise("P7")
async def test_without_the_server_the_call_is_not_made_and_a_later_resume_makes_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assent.client.connection._PAUSES_SECONDS", (0.01,))
    server = dev_server(f"sqlite:///{folder}/assent.db")
    with running(server):
        keys = server.printed("agent key"), server.printed("reviewer key")
        scene = RemoteScene(server.url, *keys, "thread")
        await scene.ask()
        await scene.decide()
        server.stop()
        with pytest.raises(Unavailable, match="does not answer"):
            await scene.invoke(None)
        assert scene.ran == []
        server.command[server.command.index("--port") + 1] = server.url.rsplit(":", 1)[1]
        server.start()
        assert await scene.said() == "sent to bob"
        scene.close()


@pytest.mark.parametrize("url", ["http://assent.example.com", "ftp://assent.example.com", "https://", "assent"])
def test_address_that_would_show_the_key_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="https://"):
        RemoteInbox(url)


def test_author_may_name_the_place_by_its_address(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert isinstance(places._named("https://assent.example.com"), RemoteInbox)
    assert isinstance(places._named("postgresql://host/db"), LocalInbox)
    with pytest.raises(ConfigError):
        ApprovalMiddleware(inbox="http://assent.example.com")
    with pytest.raises(ConfigError):
        gated(inbox="http://assent.example.com")(lambda: None)


def test_settings_name_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    default = places.default_keeper.__wrapped__
    monkeypatch.delenv("ASSENT_API_KEY", raising=False)
    assert isinstance(default(), LocalInbox)
    monkeypatch.setenv("ASSENT_URL", "https://assent.example.com")
    keeper = default()
    assert isinstance(keeper, RemoteInbox)
    with pytest.raises(ConfigError, match="no API key"):
        keeper.perform(lambda records: None)
    monkeypatch.setenv("ASSENT_API_KEY", "asnt_agent_x")
    monkeypatch.setenv("ASSENT_GATE_DEPLOYMENT", "billing")
    assert keeper._resolved() == ("https://assent.example.com", "asnt_agent_x", "billing")


AROUND_THE_CALL = ["before", "after"]
DEATHS = [*AROUND_THE_CALL, *(f"{way} {number}" for number in range(1, 5) for way in ("send", "reply"))]


class Murder:
    """Processes of one agent that are killed, and the person who answers whatever is asked."""

    def __init__(self, folder: Path, scene: RemoteScene, *, gate: bool) -> None:
        self.folder, self.scene, self.gate = folder, scene, gate
        folder.mkdir()

    def run(self, die: str | None, patience: float | None = None) -> dict[str, Any] | None:
        """What the process told at its end; None if it was killed: at that point, or after so many seconds."""
        url, key, _ = self.scene.keeper._resolved()
        facts = {"die": die, "gate": self.gate, "server": (url, key)}
        process = FORKS.Process(target=_quiet_main, args=(str(self.folder), "on"), kwargs=facts)
        process.start()
        process.join(patience or 60)
        if process.is_alive():
            process.kill()
            process.join()
        if process.exitcode == KILLED:
            return None
        assert process.exitcode == 0
        told: dict[str, Any] = json.loads((self.folder / "told").read_text())
        return told

    def answer(self) -> None:
        for item in self.scene.person.get("/api/inbox/items", params={"filter": "is:in-doubt"}).json()["items"]:
            self.scene.person.post(f"/api/inbox/items/{item['id']}/in-doubt", json={"outcome": "done"})
        for item in self.scene.person.get("/api/inbox/items", params={"filter": "is:pending"}).json()["items"]:
            seen = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
            self.scene.person.post(f"/api/inbox/items/{item['id']}/decision", json=seen)

    def finished(self) -> bool:
        """Whether the agent comes to its end."""
        for _ in range(6):
            if self.gate:
                self.answer()
            told = self.run(None)
            if told and not told["asked"] and told["said"][-1].startswith("done:"):
                return True
        return False

    @property
    def effects(self) -> int:
        file = self.folder / "effects"
        return len(file.read_text().splitlines()) if file.exists() else 0


def _quiet_main(folder: str, go_on: str, **options: Any) -> None:
    from tests.gate.crashing import main

    main(folder, go_on, **options)


def _killed(folder: Path, scene: RemoteScene, kills: int, *, gate: bool) -> tuple[int, int, int]:
    """The kills, the doubled effects, and the threads that did not come to their end."""
    dice, killed, doubled, stuck, trial = random.Random(20), 0, 0, 0, 0
    while killed < kills:
        murder = Murder(folder / f"{gate} {trial}", scene, gate=gate)
        trial += 1
        if dice.random() < 0.75:  # mostly around the call, else around the question
            murder.run(None)
            if gate:
                murder.answer()
        points = DEATHS if gate else AROUND_THE_CALL
        die, patience = (dice.choice(points), None) if dice.random() < 0.5 else (None, dice.uniform(0.02, 0.6))
        killed += murder.run(die, patience) is None
        stuck += not murder.finished()
        doubled += murder.effects > 1
    return killed, doubled, stuck


@pytest.mark.scoreboard
@pytest.mark.promise("P2", "DROP-09")
@pytest.mark.timeout(3600)
def test_kill_of_a_process_with_a_gate_elsewhere_doubles_no_effect(
    folder: Path, scene: RemoteScene, count: Count, record_score: RecordScore
) -> None:
    killed, doubled, stuck = _killed(folder, scene, count(full=200, quick=20), gate=True)
    result = f"{killed} kills: {doubled} doubled, {stuck} stuck"
    record_score("kill -9 of an agent's process with a gate elsewhere", "0 doubled effects, 0 stuck", result)
    assert (doubled, stuck) == (0, 0)


@pytest.mark.scoreboard
@pytest.mark.timeout(3600)
def test_control_kill_of_a_process_without_the_gate_doubles_effects(
    folder: Path, scene: RemoteScene, count: Count, record_score: RecordScore
) -> None:
    killed, doubled, _ = _killed(folder, scene, count(full=60, quick=8), gate=False)
    result = f"{killed} kills: {doubled} doubled"
    record_score("kill -9 of an agent's process, LangChain's own middleware (the control)", "some doubled", result)
    assert doubled > 0
