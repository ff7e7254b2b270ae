"""Three commands lead from nothing to a served agent: clone, install, run. The last two are those of the README."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.cli.command import ROOT, environment
from tests.docs.documents import fenced
from tests.install.test_wheel import run
from tests.missing import missing
from tests.servers import ServerProcess, running

EMAIL = {"name": "send_email", "id": "call-1", "args": {"to": "ann@example.org", "subject": "Late", "body": "I am."}}


def readme_commands() -> list[str]:
    [block] = [block for block in fenced(ROOT / "README.md") if "make setup" in block.commands]
    return block.commands.splitlines()


@pytest.mark.promise("INBOX-33")
def test_three_commands_clone_install_and_serve_an_agent(tmp_path: Path) -> None:
    _ = (ROOT / ".git").exists() or missing("a git repository: clone it, instead of unpacking an archive")
    install, serve = readme_commands()
    clone = tmp_path / "assent"
    uv = Path(run("tools/find-uv").splitlines()[-1]).parent
    surroundings = environment(PATH=f"{uv}:{Path(sys.executable).parent}:/usr/bin:/bin", PYTHON=sys.executable)
    for command, folder in ((f"git clone --quiet {ROOT.as_uri()} {clone}", tmp_path), (install, clone)):
        subprocess.run(command.split(), cwd=folder, env=surroundings, check=True, timeout=240)
    program, *arguments = serve.replace("path/to/", f"{clone}/examples/").split()
    database = f"sqlite:///{tmp_path}/assent.db"
    with running(ServerProcess([str(clone / program), *arguments, "--port", "0", "--database", database])) as server:
        assert "examples/langgraph.json" in server.output
        asks_about_an_email(server.url)


def asks_about_an_email(url: str) -> None:
    body = {
        "assistant_id": "agent_inbox",
        "input": {"messages": [{"type": "ai", "content": "", "tool_calls": [EMAIL]}]},
    }
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        thread = http.post("/threads", json={}).json()["thread_id"]
        asked = http.post(f"/threads/{thread}/runs/wait", json=body)
        assert "__interrupt__" in asked.json(), asked.text
        [item] = http.get("/api/inbox/items").json()["items"]
    assert (item["title"], item["status"]) == ("send_email", "PENDING")
