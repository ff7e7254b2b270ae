"""The snippets of docs/gate.md run as they stand, with a model and tools put in."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assent.client import Inbox
from assent.gate.graphs import is_gated
from tests.gate.desk import script
from tests.graphs.agents import ScriptedModel, look_up
from tests.servers import dev_server, running
from tests.waiting import wait_until

DOCUMENT = Path(__file__).parents[2] / "docs" / "gate.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


class Bank:
    def order(self, account: str, cents: int, key: str) -> str:
        return f"{account} {cents} {key}"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    monkeypatch.chdir(tmp_path)
    return []


def run(snippet: str, ran: list[str]) -> dict[str, Any]:
    def send_email(to: str) -> str:
        """Sends an email."""
        ran.append(to)
        return f"sent to {to}"

    request = script(("send_email", {"to": "bob"}))["messages"][0][1]
    names = {"model": ScriptedModel(), "send_email": send_email, "look_up": look_up, "bank": Bank(), "request": request}
    exec(compile(snippet, str(DOCUMENT), "exec"), names)  # noqa: S102 - our own documentation
    return names


def test_page_has_six_snippets() -> None:
    assert len(SNIPPETS) == 6


@pytest.mark.parametrize("snippet", SNIPPETS[:3])
def test_snippets_of_agents_are_gated(snippet: str, ran: list[str]) -> None:
    assert is_gated(run(snippet, ran)["agent"])


def test_snippet_of_a_tool_runs(ran: list[str]) -> None:
    assert run(SNIPPETS[3], ran)["pay"].name == "pay"


def test_snippet_of_another_process_works(ran: list[str], tmp_path: Path) -> None:
    with running(dev_server(f"sqlite:///{tmp_path}/assent.db")) as server:
        person = Inbox(server.url, server.printed("reviewer key"))
        snippet = SNIPPETS[4].replace("http://127.0.0.1:2024", server.url)
        with person, ThreadPoolExecutor() as pool:
            approving = pool.submit(_approve_next, person)
            names = run(snippet.replace("asnt_agent_…", server.printed("agent key")), ran)
            approving.result()
            names["inbox"].close()
    assert (ran, names["result"]["messages"][-1].text) == (["bob"], "done: sent to bob")


def _approve_next(person: Inbox) -> None:
    wait_until(lambda: list(person.list("is:pending")), "nothing is asked")
    [item] = person.list("is:pending")
    person.approve(item)


def test_snippet_of_library_mode_works(ran: list[str]) -> None:
    result = run(SNIPPETS[5], ran)["result"]
    assert ran == ["bob"]
    assert result["messages"][-1].text == "done: sent to bob"
