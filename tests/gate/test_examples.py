"""The examples work as they are."""

from __future__ import annotations

import copy
import uuid
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from assent.gate import places
from assent.gate.graphs import is_gated
from assent.runs.project.loader import load_graphs
from assent.runs.project.manifest import read_manifest
from examples import agent_inbox, mail_agent, payments
from tests.gate.desk import CONFIG, THREAD, Desk, asked, ids, script
from tests.graphs.agents import ScriptedModel

EXAMPLES = Path(__file__).parents[2] / "examples"
EMAIL = {"to": "ann@example.org", "subject": "Late", "body": "I am."}


def test_example_graphs_load() -> None:
    loaded = load_graphs(read_manifest(EXAMPLES / "langgraph.json"))
    assert not loaded.failures
    assert set(loaded.graphs) == {"agent_inbox", "payments"}


def kept(graph: Any) -> Any:
    """With a checkpointer, as a server gives it one."""
    bound = copy.copy(graph)
    bound.checkpointer = InMemorySaver()
    return bound


def called(name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{uuid.uuid4()}"}])]}


@pytest.mark.promise("INBOX-22")
@pytest.mark.promise("INBOX-09")
@pytest.mark.parametrize(
    ("answer", "heard"),
    [
        ({"type": "response", "args": "Tell her tomorrow"}, "Tell her tomorrow"),
        ({"type": "ignore", "args": None}, "The person has ignored this email."),
    ],
)
def test_agent_inbox_example_works(answer: dict[str, Any], heard: str) -> None:
    graph = kept(agent_inbox.graph)
    result = graph.invoke(called("send_email", EMAIL), CONFIG)
    [request] = asked(result)
    assert request["description"].startswith("# Late\n\n**To**: ann@example.org")
    done = graph.invoke(Command(resume={ids(result)[0]: [answer]}), CONFIG)
    assert done["messages"][-1].content == heard


def test_mail_agent_example_works(desk: Desk) -> None:
    mail_agent.outbox.clear()
    agent = mail_agent.make_agent(ScriptedModel(), desk.inbox)
    result = agent.invoke(script(("find_address", {"name": "Ann"}), ("send_email", EMAIL)), CONFIG)
    assert [question["name"] for question in asked(result)] == ["send_email"]
    assert mail_agent.outbox == []
    item = desk.decide()
    desk.go_on(agent)
    [grant] = desk.grants(item.id)
    assert mail_agent.outbox == [{**EMAIL, "key": grant.id}]


@pytest.mark.parametrize("said", ["y", "n"])
def test_mail_agent_example_works_in_a_terminal(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mail_agent.outbox.clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        mail_agent, "create_agent", lambda model, *args, **kwargs: create_agent(ScriptedModel(), *args, **kwargs)
    )
    monkeypatch.setattr("builtins.input", lambda prompt: said)
    request: Any = script(("send_email", EMAIL))["messages"][0][1]
    mail_agent.main(request)
    assert len(mail_agent.outbox) == (said == "y")
    assert "send_email" in capsys.readouterr().out
    assert (tmp_path / ".assent" / "gate.db").exists()


def test_payments_example_works(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "default_keeper", lambda: desk.inbox)
    payments.payments.clear()
    graph = kept(payments.graph)
    assert is_gated(graph)
    [question] = asked(graph.invoke(called("pay", {"account": "DE1", "cents": 1250}), CONFIG))
    assert question["args"] == {"account": "DE1", "cents": 1250}
    assert payments.payments == {}
    desk.decide()
    done = graph.invoke(desk.inbox.command(THREAD), CONFIG)
    assert done["messages"][-1].content == "Paid 12.50 to DE1."
    assert list(payments.payments.values()) == [("DE1", 1250)]
