"""The example in TypeScript, served by LangGraph.js's own development server, attached and answered by the commands of
its README."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from langgraph_sdk import get_sync_client

from tests.cli.command import ROOT, Result, execute
from tests.federation.servers import LANGGRAPHJS, langgraphjs
from tests.javascript import printed
from tests.servers import dev_server, running
from tests.waiting import wait_until

EXAMPLE = ROOT / "examples" / "typescript"


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Its folder and its address."""
    with langgraphjs(tmp_path / "typescript", EXAMPLE) as url:
        yield tmp_path / "typescript", url


def commands() -> list[list[str]]:
    """What the README has people type once the server runs."""
    lines = (EXAMPLE / "README.md").read_text(encoding="utf-8").splitlines()
    return [shlex.split(line)[2:] for line in lines if line.startswith(("$ assent deployments", "$ assent inbox"))]


@pytest.mark.promise("INBOX-02", "INBOX-23")
def test_example_in_typescript_is_answered_from_the_inbox(agent: tuple[Path, str], tmp_path: Path) -> None:
    folder, url = agent
    project, database = tmp_path / "langgraph.json", tmp_path / ".assent" / "assent.db"
    database.parent.mkdir()
    shutil.copy(ROOT / "tests" / "graphs_remote" / "asking.py", tmp_path)
    project.write_text('{"dependencies": ["."], "graphs": {"own": "./asking.py:graph"}}')
    with running(dev_server(f"sqlite:///{database}", config=project)) as server:
        here = {"ASSENT_URL": server.url, "ASSENT_API_KEY": server.printed("reviewer key")}

        def assent(*command: str) -> Result:
            result = execute(tmp_path, *command, **here)
            assert result.code == 0, result.err
            return result

        thread_id = printed(LANGGRAPHJS / "node", folder / "ask.mjs", DEPLOYMENT_URL=url).strip()
        add, listing, respond = commands()
        assent(*(url if part == "http://localhost:2123" else part for part in add))
        wait_until(lambda: "send_email" in assent(*listing).out, "the question does not appear")
        [item] = json.loads(assent(*listing, "--json").out)["items"]
        assert item["source"]["remote"]["name"] == "typescript"
        assent(*(item["id"] if len(part) == 36 else part for part in respond))
        with get_sync_client(url=url, api_key=None) as client:
            wait_until(lambda: client.threads.get(thread_id)["status"] == "idle", "the agent does not continue")
            state = client.threads.get_state(thread_id)
        assert state["values"]["messages"][-1]["content"] == "Not today."  # type: ignore[call-overload]


def test_example_has_the_versions_that_are_tested() -> None:
    named = json.loads((EXAMPLE / "package.json").read_text())
    tested = json.loads((ROOT / "tests" / "federation" / "js" / "package.json").read_text())
    assert named["dependencies"].items() <= tested["dependencies"].items()
    assert named["overrides"] == tested["overrides"]
