"""`assent agents` on the database, and the agents of `assent.toml`."""

from pathlib import Path

import pytest

from assent.app import open_engine, open_services
from assent.errors import ConfigError
from assent.identity.model.access import Role, operator
from assent.identity.model.agents import RegisteredAgent
from assent.runs.project.loader import LoadedGraphs
from assent.settings import Settings, load
from tests.cli.conftest import Assent

HERE = ("--database", "sqlite:///.assent/assent.db")


def test_agents_are_added_changed_and_removed(assent: Assent) -> None:
    assent("users", "create", "ana")
    assert assent("agents", "list", *HERE).out.startswith("No agents yet.")
    lead = assent("agents", "add", "lead", "--human", "ana", "--source", "system", *HERE, "--json").json
    assert (lead["human"], lead["source"]) == ("ana", "system")
    assert assent("agents", "add", "writer", "--parent", "lead", *HERE).code == 0
    changed = assent("agents", "change", "writer", "--no-parent", "--human", "ana", *HERE, "--json").json
    assert (changed["parent"], changed["human"]) == (None, "ana")
    assert [row["name"] for row in assent("agents", "list", *HERE, "--json").json] == ["lead", "writer"]
    assert "writer" in assent("agents", "show", "writer", *HERE).out
    assert assent("agents", "remove", "writer", *HERE).out.startswith("removed writer")
    assert assent("agents", "show", "writer", *HERE).code == 5


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["add", "x", "--parent", "nobody"], 2, "no agent 'nobody'"),
        (["add", "x", "--human", "nobody"], 2, "no user 'nobody'"),
        (["add", "known"], 6, "already"),
        (["change", "known"], 2, "nothing to change"),
        (["change", "known", "--parent", "a", "--no-parent"], 2, "not both"),
        (["remove", "nobody"], 5, "no agent"),
    ],
)
def test_wrong_call_exits_with_the_reason(assent: Assent, arguments: list[str], code: int, why: str) -> None:
    assent("keys", "create", "known")
    refused = assent("agents", *arguments, *HERE)
    assert refused.code == code
    assert why in refused.err


def _settings(folder: Path, agents: str) -> Settings:
    (folder / "assent.toml").write_text(agents, encoding="utf-8")
    return load({"database": f"sqlite:///{folder}/assent.db"}, {}, folder=folder).settings


async def _started(folder: Path, text: str) -> RegisteredAgent:
    """The agent `writer` after a start with these settings."""
    settings = _settings(folder, text)
    async with open_services(settings) as services:
        if await services.users.find(operator(), "ana") is None:
            await services.users.create(operator(), name="ana", role=Role.REVIEWER)
        async with open_engine(services.store, LoadedGraphs({}, {}), settings):
            assert (await services.agents.get(operator(), "lead")).human == "ana"
            return await services.agents.get(operator(), "writer")


async def test_agents_of_the_settings_are_created_and_changed_at_the_start(tmp_path: Path) -> None:
    first = '[[agents]]\nname = "writer"\nparent = "lead"\n[[agents]]\nname = "lead"\nhuman = "ana"\n'
    agent = await _started(tmp_path, first)
    assert (agent.parent, agent.human, agent.source) == ("lead", None, "user")
    assert await _started(tmp_path, first) == agent, "an unchanged start changes nothing"
    changed = await _started(tmp_path, '[[agents]]\nname = "writer"\nsource = "system"\n')
    assert (changed.id, changed.parent, changed.source) == (agent.id, None, "system"), "and lead stays"


async def test_agent_of_the_settings_with_an_unknown_person_prevents_the_start(tmp_path: Path) -> None:
    settings = _settings(tmp_path, '[[agents]]\nname = "writer"\nhuman = "nobody"\n')
    async with open_services(settings) as services:
        with pytest.raises(ConfigError, match="nobody"):
            async with open_engine(services.store, LoadedGraphs({}, {}), settings):
                pass


@pytest.mark.parametrize("text", ['[[agents]]\nhuman = "ana"\n', '[[agents]]\nname = "x"\ncolour = "red"\n'])
def test_wrong_agent_in_the_settings_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="agents"):
        _settings(tmp_path, text)
