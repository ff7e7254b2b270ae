"""`assent config` and `assent version`, and that a wrong setting stops every command with one line."""

import json
from pathlib import Path

import pytest

from assent.settings import Settings
from tests.cli.command import execute
from tests.cli.conftest import Assent


def test_config_shows_every_setting_with_its_origin(
    assent: Assent, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "assent.toml").write_text("log_level = 'warning'")
    monkeypatch.setenv("ASSENT_PORT", "9000")
    rows = {row["setting"]: row for row in assent("config", "--database", "sqlite:///x.db", "--json").json}
    assert {name for name in rows if name in Settings.model_fields} == Settings.model_fields.keys()
    assert {"ASSISTANT_MODEL", "ASSISTANT_MCP_URL", "OPENAI_API_KEY"} <= rows.keys()
    assert (rows["log_level"]["value"], rows["log_level"]["from"]) == ("warning", "assent.toml")
    assert (rows["port"]["value"], rows["port"]["from"]) == (9000, "ASSENT_PORT")
    assert (rows["database"]["value"], rows["database"]["from"]) == ("sqlite:///x.db", "command line")
    assert rows["host"]["from"] == "default"
    assert "ASSENT_PORT" in assent("config").out


def test_env_file_of_the_folder_is_read_and_the_environment_comes_first(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ASSENT_PORT=9001\nASSENT_LOG_LEVEL=warning\nASSISTANT_MODEL=openai:gpt-5\n")
    rows = {row["setting"]: row for row in execute(tmp_path, "config", "--json", ASSENT_LOG_LEVEL="error").json}
    assert rows["port"]["value"] == 9001
    assert rows["log_level"]["value"] == "error"
    assert (rows["ASSISTANT_MODEL"]["value"], rows["ASSISTANT_MODEL"]["from"]) == ("openai:gpt-5", "ASSISTANT_MODEL")
    assert rows["ASSISTANT_CALENDAR"]["from"] == "default"


def test_config_hides_the_secrets_of_the_assistant(assent: Assent, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = {"mcpServers": {"files": {"command": "x", "env": {"KEY": "hunter1"}}}}
    for name, value in {
        "OPENAI_API_KEY": "hunter2",
        "ASSISTANT_MCP_URL": "https://ana:hunter3@mcp.example/mcp?key=hunter4",
        "ASSISTANT_MCP_COMMAND": "serve --key hunter5",
        "ASSISTANT_MCP_HEADERS": json.dumps({"Authorization": "Bearer hunter6"}),
        "ASSISTANT_MCP_SERVERS": json.dumps(servers),
    }.items():
        monkeypatch.setenv(name, value)
    result = assent("config", "--json")
    assert result.code == 0
    assert "hunter" not in result.out
    shown = {row["setting"]: row["value"] for row in result.json}
    assert shown["ASSISTANT_MCP_URL"] == "https://mcp.example/mcp"
    assert shown["ASSISTANT_MCP_COMMAND"] == "serve"
    assert shown["ASSISTANT_MCP_SERVERS"] == ["files"]


def test_wrong_setting_of_the_assistant_is_named(assent: Assent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSISTANT_MAX_TOOL_CALLS", "many")
    result = assent("config")
    assert (result.code, "ASSISTANT_MAX_TOOL_CALLS" in result.err) == (3, True)


@pytest.mark.promise("P10")
def test_config_hides_passwords_and_secrets(assent: Assent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_SECRET_KEY", "swordfish" * 4)
    for arguments in ((), ("--json",)):
        result = assent("config", "--database", "postgresql://ana:hunter2@db/assent", *arguments)
        assert "postgresql://ana:***@db/assent" in result.out
        assert "secret_key" in result.out
        assert "hunter2" not in result.out
        assert "swordfish" not in result.out


@pytest.mark.parametrize("command", [("config",), ("keys", "list"), ("serve",), ("dev",), ("db", "upgrade")])
def test_a_wrong_setting_stops_any_command_with_a_line_that_names_it(
    assent: Assent, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("ASSENT_PORT", "eighty")
    result = assent(*command)
    assert (result.code, result.out) == (3, "")
    first, hint = result.err.splitlines()
    assert first.startswith("assent: port (from ASSENT_PORT): ")
    assert hint == "  see docs/settings.md"


def test_misspelt_variable_stops_and_unknown_variable_is_reported(
    assent: Assent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_SERVICE_HOST", "10.0.0.1")
    result = assent("config")
    assert result.code == 0
    assert "ASSENT_SERVICE_HOST is not a setting and has no effect" in result.err
    monkeypatch.setenv("ASSENT_DATABSE", "postgresql://db/assent")
    result = assent("config")
    assert (result.code, result.err) == (
        3,
        "assent: ASSENT_DATABSE is not a setting\n  did you mean ASSENT_DATABASE?\n",
    )


def test_version_lists_the_versions_of_the_main_packages(assent: Assent) -> None:
    assert assent("version", "--json").json.keys() == {
        "assent",
        "langgraph",
        "langgraph-sdk",
        "fastapi",
        "sqlalchemy",
        "python",
    }
    assert assent("version").out.startswith("assent ")
