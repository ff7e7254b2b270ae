"""`assent dev` and a project that changes while it is served, as real processes."""

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from assent.surfaces.cli.server.reload import Sources
from assent.threads.model.assistants import own_id
from tests.servers import ServerProcess, running
from tests.waiting import wait_until

AGENT = """
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt


class State(TypedDict):
    text: str


def ask(state: State) -> State:
    return {"text": f"{interrupt('which?')} by SAID"}


graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask")
"""

STEPS = """
import asyncio
from pathlib import Path
from typing import TypedDict

from langgraph.graph import START, StateGraph

HERE = Path(__file__).parent


class State(TypedDict):
    text: str


def first(state: State) -> State:
    with (HERE / "first.log").open("a") as log:
        log.write("done\\n")
    return {"text": "first"}


async def second(state: State) -> State:
    (HERE / "second.log").write_text("begun")
    while not (HERE / "release").exists():
        await asyncio.sleep(0.01)
    return {"text": "SAID"}


graph = StateGraph(State).add_sequence([first, second]).add_edge(START, "first")
"""

GUARD = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def who(authorization: str) -> str:
    if authorization != "Bearer open":
        raise Auth.exceptions.HTTPException(status_code=401)
    return "ana"
"""

BEGUN = r"^reloaded after (.+) changed$"
FAILED = r"^(\S+) failed to load: (.+)$"


class Author:
    """Writes the project's files and watches what the server says to that."""

    def __init__(self, folder: Path, *options: str, **environment: str) -> None:
        self.folder, self.open = folder, ExitStack()
        command = [sys.executable, "-m", "assent", "dev", "--port", "0", "--config", str(folder / "langgraph.json")]
        self.server = ServerProcess([*command, *options], environment)

    def write(self, name: str, text: str) -> None:
        """All at once, as editors do it."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name("new~")
        new.write_text(text)
        new.replace(file)

    def configure(self, **sections: Any) -> None:
        self.write("langgraph.json", json.dumps({"graphs": {"agent": "./agent.py:graph"}} | sections))

    def told(self, pattern: str) -> list[Any]:
        return re.findall(pattern, self.server.output, re.MULTILINE)

    def await_told(self, pattern: str, times: int = 1) -> Any:
        wait_until(lambda: len(self.told(pattern)) >= times, f"not said: {pattern}\n{self.server.output}")
        return self.told(pattern)[-1]

    def client(self) -> SyncLangGraphClient:
        return self.open.enter_context(get_sync_client(url=self.server.url))

    def get(self, path: str, **headers: str) -> httpx.Response:
        return httpx.get(f"{self.server.url}{path}", headers=headers, timeout=60, trust_env=False)


@pytest.fixture
def author(tmp_path: Path) -> Iterator[Author]:
    author = Author(tmp_path, ASSENT_RUN_PATIENCE="1s")
    author.configure()
    author.write("agent.py", AGENT)
    with author.open:
        yield author
        if author.server.process.poll() is None:
            author.server.kill()


@pytest.mark.promise("DROP-07")
def test_a_changed_graph_answers_an_old_question_on_the_same_port_with_the_same_keys(author: Author) -> None:
    author.server.start()
    reviewer, sign_in = author.server.printed("reviewer key"), author.server.printed("sign in")
    client = author.client()
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, "agent", input={"text": ""})
    author.write("agent.py", AGENT.replace("SAID", "the changed graph"))
    assert author.await_told(BEGUN) == "agent.py"
    answered = client.runs.wait(thread, "agent", command={"resume": "this"})
    assert answered == {"text": "this by the changed graph"}
    assert author.get("/api/me", **{"x-api-key": reviewer}).json()["name"] == "local"
    token = sign_in.partition("#")[2]
    assert httpx.post(f"{author.server.url}/api/session", json={"credential": token}).json()["name"] == "local"
    assert len(author.told("^Assent dev$")) == 1


@pytest.mark.promise("DROP-07")
def test_a_file_that_fails_to_load_is_named_in_terminal_and_inbox_until_it_is_corrected(author: Author) -> None:
    author.server.start()
    token = author.server.printed("sign in").partition("#")[2]
    with httpx.Client(base_url=author.server.url, timeout=60, trust_env=False) as browser:
        browser.post("/api/session", json={"credential": token})
        assert "failed to load" not in browser.get("/inbox").text
        author.write("agent.py", AGENT.replace("def ask(state: State) -> State:", "def ask(state: State) -> State"))
        assert author.await_told(FAILED) == ("agent.py:12", "SyntaxError: expected ':'")
        shown = browser.get("/inbox").text
        assert "agent.py:12 failed to load: SyntaxError: expected &#39;:&#39;" in shown
        assert "agent.py:12 加载失败" in browser.get("/inbox", headers={"accept-language": "zh"}).text
        author.write("agent.py", AGENT)
        author.await_told(BEGUN)
        assert "failed to load" not in browser.get("/inbox").text
    assert [assistant["graph_id"] for assistant in author.client().assistants.search()] == ["agent"]


def test_a_run_under_way_goes_on_after_the_reload_from_its_last_step(author: Author) -> None:
    author.write("agent.py", STEPS)
    author.server.start()
    client = author.client()
    thread = client.threads.create()["thread_id"]
    run = client.runs.create(thread, "agent", input={"text": ""})["run_id"]
    wait_until((author.folder / "second.log").exists, "the second step has not begun")
    with httpx.stream("GET", f"{author.server.url}/threads/{thread}/runs/{run}/stream", timeout=60) as following:
        author.write("agent.py", STEPS.replace("SAID", "by the changed graph"))
        author.await_told(BEGUN)
        following.close()
    assert "Traceback" not in author.server.output, "who followed the run was cut off, which is no error"
    author.write("release", "")
    assert client.runs.join(thread, run) == {"text": "by the changed graph"}
    assert client.runs.get(thread, run)["status"] == "success"
    assert (author.folder / "first.log").read_text() == "done\n", "a step that was done is not done again"


def test_a_run_under_way_waits_while_its_graph_fails_to_load_and_goes_on_when_it_is_corrected(author: Author) -> None:
    author.configure(graphs={"agent": "./agent.py:graph", "other": "./other.py:graph"})
    author.write("agent.py", STEPS)
    author.write("other.py", AGENT)
    author.server.environment["ASSENT_RUN_CONCURRENCY"] = "1"
    author.server.start()
    client = author.client()
    thread = client.threads.create()["thread_id"]
    run = client.runs.create(thread, "agent", input={"text": ""})["run_id"]
    wait_until((author.folder / "second.log").exists, "the second step has not begun")
    author.write("agent.py", "def broken(:\n")
    author.await_told(FAILED)
    author.await_told("load graph failed, run is on hold")
    asked: Any = client.runs.wait(client.threads.create()["thread_id"], "other", input={"text": ""})
    assert asked["__interrupt__"], "what waits takes no place from runs of other graphs"
    assert client.runs.get(thread, run)["status"] in ("pending", "running")
    author.write("release", "")
    author.write("agent.py", STEPS.replace("SAID", "by the corrected graph"))
    author.await_told(BEGUN)
    assert client.runs.join(thread, run) == {"text": "by the corrected graph"}
    assert (author.folder / "first.log").read_text() == "done\n"


def test_a_run_that_waits_for_its_graph_to_load_can_be_cancelled(author: Author) -> None:
    author.write("agent.py", STEPS)
    author.server.start()
    client = author.client()
    thread = client.threads.create()["thread_id"]
    run = client.runs.create(thread, "agent", input={"text": ""})["run_id"]
    wait_until((author.folder / "second.log").exists, "the second step has not begun")
    author.write("agent.py", "def broken(:\n")
    author.await_told("load graph failed, run is on hold")
    client.runs.cancel(thread, run, wait=True)
    assert client.runs.get(thread, run)["status"] == "interrupted"


def test_an_answer_to_a_graph_that_fails_to_load_reaches_it_when_it_is_corrected(author: Author) -> None:
    author.server.start()
    client = author.client()
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, "agent", input={"text": ""})
    author.write("agent.py", AGENT + ")")
    author.await_told(FAILED)
    reviewer = {"x-api-key": author.server.printed("reviewer key")}
    [item] = author.get("/api/inbox/items", **reviewer).json()["items"]
    given = {"revision": 1, "hash": item["hash"], "verb": "respond", "message": "this"}
    answer = f"{author.server.url}/api/inbox/items/{item['id']}/decision"
    assert httpx.post(answer, json=given, headers=reviewer, timeout=60).status_code == 200
    author.await_told("load graph failed, run is on hold")
    author.write("agent.py", AGENT)
    author.await_told(BEGUN)
    wait_until(lambda: client.threads.get(thread)["status"] == "idle", "the thread has not gone on")
    assert client.threads.get(thread)["values"] == {"text": "this by SAID"}


def test_call_of_a_graph_that_failed_to_load_gets_the_reason(author: Author) -> None:
    author.write("agent.py", "graph = missing\n")
    author.server.start()
    for sent in ({"assistant_id": "agent", "input": {}}, {"assistant_id": str(own_id("agent")), "input": {}}):
        refused = httpx.post(f"{author.server.url}/runs/wait", json=sent, timeout=60)
        assert (refused.status_code, "name 'missing' is not defined" in refused.text) == (404, True), refused.text


def test_file_that_breaks_several_graphs_is_reported_once(author: Author) -> None:
    author.configure(graphs={"one": "./agent.py:graph", "two": "./agent.py:graph"})
    author.server.start()
    author.write("agent.py", "graph = missing\n")
    author.await_told(FAILED)
    author.write("agent.py", AGENT)
    author.await_told(BEGUN)
    assert len(author.told(FAILED)) == 1


def test_only_source_changes_reload_and_several_are_combined(author: Author) -> None:
    author.configure(graphs={})
    author.server.start()
    author.client().threads.create()  # writes to the database, which lies inside the project
    for name in (".venv/lib/x.py", "node_modules/x.py", "__pycache__/x.py", ".langgraph_api/x.py", "notes.txt"):
        author.write(name, "")
    for number in range(20):
        author.write(f"part{number:02}.py", "")
    assert author.await_told(BEGUN) == "part00.py, part01.py, part02.py and 17 more"
    assert author.get("/ok").status_code == 200
    author.write("agent.py", AGENT.replace("SAID", "the last"))
    assert author.await_told(BEGUN, times=2) == "agent.py", "the rest was one reload, or none"


def test_broken_auth_file_refuses_every_caller_until_it_is_corrected(author: Author) -> None:
    author.configure(auth={"path": "./guard.py:auth"})
    author.write("guard.py", GUARD)
    author.server.start()
    assert (author.get("/info").status_code, author.get("/threads/x").status_code) == (200, 401)
    author.write("guard.py", "auth = missing")
    assert author.await_told(FAILED) == ("guard.py:1", "NameError: name 'missing' is not defined")
    refused = author.get("/threads/x", authorization="Bearer open")
    assert (refused.status_code, refused.json()["code"]) == (503, "not_loaded")
    assert "failed to load guard.py:1" in author.get("/inbox", accept="text/html").text
    assert author.get("/inbox", host="evil.example").status_code == 421
    author.write("guard.py", GUARD)
    author.await_told(BEGUN)
    assert author.get("/threads/x").status_code == 401
    assert author.get("/api/me", authorization="Bearer open").json()["name"] == "ana"


def test_hanging_import_is_abandoned_when_its_file_changes(author: Author) -> None:
    author.server.start()
    hangs = "import threading, pathlib\npathlib.Path(__file__).with_name('hangs').touch()\nthreading.Event().wait()\n"
    author.write("agent.py", hangs)
    wait_until((author.folder / "hangs").exists, "the import has not begun")
    author.write("agent.py", AGENT)
    assert author.await_told(BEGUN) == "agent.py"
    assert author.get("/ok").status_code == 200


def test_ctrl_c_ends_the_server_also_while_it_waits_for_runs(author: Author) -> None:
    author.server.environment["ASSENT_RUN_PATIENCE"] = "300s"
    author.write("agent.py", STEPS)
    author.server.start()
    client = author.client()
    client.runs.create(client.threads.create()["thread_id"], "agent", input={"text": ""})
    wait_until((author.folder / "second.log").exists, "the second step has not begun")
    author.write("agent.py", STEPS + "\n")
    author.await_told("Finished server process")
    author.server.process.send_signal(signal.SIGINT)
    assert author.server.wait() == 0
    assert "Traceback" not in author.server.output
    assert not author.told(BEGUN)


def watches(server: ServerProcess) -> bool:
    opened = Path(f"/proc/{server.process.pid}/fd")
    return any("inotify" in os.readlink(file) for file in opened.iterdir() if file.is_symlink())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux shows what a process watches")
def test_no_reload_option_stops_watching(tmp_path: Path) -> None:
    author = Author(tmp_path)
    author.configure()
    author.write("agent.py", AGENT)
    with running(Author(tmp_path, "--no-reload").server) as server:
        assert not watches(server)
    with running(author.server) as server:
        wait_until(lambda: watches(server), "the project is not watched")


class TestSources:
    """Files that trigger a reload."""

    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        for folder in ("app/agent", "app/env", "shared", "settings"):
            (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "app/env/pyvenv.cfg").touch()
        manifest = {"graphs": {}, "dependencies": [".", "../shared"], "env": "../settings/agent.env"}
        (tmp_path / "app/langgraph.json").write_text(json.dumps(manifest))
        return tmp_path

    @pytest.mark.parametrize(
        "name",
        [
            *("app/x.py", "app/agent/x.py", "app/new/deep/x.py", "shared/x.py"),
            *("app/langgraph.json", "app/.env", "settings/agent.env"),
        ],
    )
    def test_changed_source_is_noticed(self, project: Path, name: str) -> None:
        assert noticed(project, [name]) == {name}

    @pytest.mark.parametrize("name", ["app/env/x.py", "app/.git/x.py", "settings/other.env", "app/.#x.py", "app/x.pyc"])
    def test_change_of_another_file_is_ignored(self, project: Path, name: str) -> None:
        assert noticed(project, [name, "app/agent/last.py"]) == {"app/agent/last.py"}


def noticed(project: Path, names: list[str]) -> set[str]:
    """Which of these files, written again and again until something is noticed, are."""
    found: list[tuple[str, ...]] = []
    sources, over = Sources(project / "app/langgraph.json"), threading.Event()
    watching = threading.Thread(target=lambda: found.append(sources.await_change(over)))
    watching.start()
    while watching.is_alive():
        for name in names:
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text("{}")
        watching.join(0.3)
    return {str((project / "app" / name).resolve().relative_to(project.resolve())) for name in found[0]}
