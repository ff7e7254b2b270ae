"""The wheel that users install, with the runtime requirements only, in an empty environment, on both databases.

The environment of the other tests has what development needs, and would hide a requirement that is missing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.cli.command import ROOT, environment
from tests.once import once
from tests.postgres import Cluster
from tests.servers import ServerProcess, running
from tests.waiting import wait_until

KEY = "0123456789abcdef0123456789abcdef"
PROGRAM = Path("env/bin/assent")


def run(*command: object, **changes: str) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=ROOT, env=environment(**changes), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `assent` program of an environment with nothing but the wheel and what it requires."""
    folder = once(tmp_path_factory, "installed", lambda folder: install(folder, "requirements/runtime.txt", with_pip))
    return folder / PROGRAM


def with_pip(python: Path) -> list[object]:
    """By the commands of docs/operations.md, with the pip that Python brings."""
    return [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def with_uv(python: Path) -> list[object]:
    """As `make extras` installs, in a tenth of the time."""
    return [run("tools/find-uv").splitlines()[-1], "pip", "install", "--quiet", "--python", python]


def install(folder: Path, pinned: str, installer: Callable[[Path], list[object]]) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "dist")
    run(sys.executable, "-m", "venv", folder / "env")
    python = folder / "env" / "bin" / "python"
    command = installer(python)
    run(*command, "--require-hashes", "--requirement", pinned, "--constraint", pinned)
    [wheel] = (folder / "dist").glob("*.whl")
    run(*command, "--no-deps", wheel)
    return folder / PROGRAM


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copy(Path(__file__).parent / "agent.py", tmp_path)
    (tmp_path / "langgraph.json").write_text(
        json.dumps({"dependencies": ["."], "graphs": {"agent": "./agent.py:agent"}})
    )
    return tmp_path


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/assent.db"
        return
    cluster: Cluster = request.getfixturevalue("postgres")
    with cluster.database() as url:
        yield url


def started(installed: Path, *arguments: object, **changes: str) -> ServerProcess:
    clean = {name: "" for name in os.environ if name.startswith("ASSENT_")}
    return ServerProcess([str(installed), *map(str, arguments)], {**clean, **changes})


def ask(http: httpx.Client) -> None:
    thread = http.post("/threads", json={}).json()["thread_id"]
    body = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "write to Ana"}]}}
    asked = http.post(f"/threads/{thread}/runs/wait", json=body, timeout=60)
    assert "__interrupt__" in asked.json(), asked.text


def approve(installed: Path, url: str, key: str, sent: Path) -> None:
    """By the commands of the README."""
    access = {"ASSENT_URL": url, "ASSENT_API_KEY": key}
    [item] = json.loads(run(installed, "inbox", "list", "--json", **access))["items"]
    run(installed, "inbox", "approve", item["id"], **access)
    wait_until(lambda: sent.exists(), "the approved email was not sent")
    assert sent.read_text() == "ana@example.com\n"


@pytest.mark.promise("DROP-01")
def test_dev_from_the_wheel_runs_an_approved_call(installed: Path, project: Path, database: str) -> None:
    sent = project / "sent"
    arguments = ("dev", "--port", "0", "--config", project / "langgraph.json", "--database", database)
    with running(started(installed, *arguments, SENT=str(sent))) as server:
        with httpx.Client(base_url=server.url, trust_env=False) as http:
            ask(http)
        approve(installed, server.url, server.printed("reviewer key"), sent)


@pytest.mark.promise("DROP-01", "HITL-14")
def test_serve_with_a_worker_runs_an_approved_call(installed: Path, project: Path, postgres_url: str) -> None:
    sent = project / "sent"
    settings = {"ASSENT_DATABASE": postgres_url, "ASSENT_SECRET_KEY": KEY, "ASSENT_RUN_IN_SERVER": "false"}
    run(installed, "users", "create", "ana", "--role", "admin", **settings)
    person = json.loads(
        run(installed, "keys", "create", "ana's", "--kind", "reviewer", "--user", "ana", "--json", **settings)
    )
    program = json.loads(run(installed, "keys", "create", "the app", "--kind", "agent", "--json", **settings))
    config = ("--config", project / "langgraph.json")
    worker = started(installed, "worker", *config, SENT=str(sent), **settings)
    with running(started(installed, "serve", "--port", "0", *config, **settings)) as server:
        worker.launch()
        try:
            headers = {"x-api-key": program["secret"]}
            with httpx.Client(base_url=server.url, headers=headers, trust_env=False) as http:
                ask(http)
            approve(installed, server.url, person["secret"], sent)
        finally:
            worker.kill()


def test_graphql_without_its_extra_is_501_that_names_it(installed: Path, project: Path, tmp_path: Path) -> None:
    arguments = (
        "dev",
        "--port",
        "0",
        "--config",
        project / "langgraph.json",
        "--database",
        f"sqlite:///{tmp_path}/a.db",
    )
    with running(started(installed, *arguments)) as server, httpx.Client(base_url=server.url, trust_env=False) as http:
        for asked in (http.post("/graphql", json={"query": "{ __typename }"}), http.get("/graphql")):
            assert asked.status_code == 501
            assert "pip install 'assent[graphql]'" in asked.json()["hint"]
        with pytest.raises(InvalidStatus) as refused:
            connect(f"{server.url.replace('http', 'ws', 1)}/graphql", proxy=None)
        assert refused.value.response.status_code == 501
        assert b"assent[graphql]" in (refused.value.response.body or b"")


def test_demo_from_the_wheel_with_extras_starts_with_pending_items(tmp_path: Path) -> None:
    installed = install(tmp_path, "requirements/extras.txt", with_uv)
    server = started(installed, "demo", "--port", "0", "--database", f"sqlite:///{tmp_path}/demo.db")
    with running(server), httpx.Client(base_url=server.url, trust_env=False) as http:
        assert http.get("/health-check").status_code == 200
        assert "/login#" in server.printed("sign in")


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["demo", "--database", "nothing://"], "assistant"),
        (["calendar", "--stdio", "--login", "on"], "assistant"),
        (["import", "threads.db", "--graph", "agent"], "import"),
        (["inbox", "triage", "--profile", "missing"], "triage"),
    ],
)
def test_a_command_without_its_extra_names_it(installed: Path, project: Path, arguments: list[str], extra: str) -> None:
    """In the environment of the tests, which has all extras, each fails for another reason."""
    told = [
        subprocess.run(
            [program, *arguments], cwd=project, env=environment(), capture_output=True, text=True, timeout=120
        )
        for program in (installed, Path(sys.executable).parent / "assent")
    ]
    expected = f"needs the extra '{extra}', which is not installed\n  pip install 'assent[{extra}]', or"
    assert told[0].returncode != 0
    assert [expected in done.stderr for done in told] == [True, False]
