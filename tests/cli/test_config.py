"""`assent config` and `assent version`, and that a wrong setting stops every command with one line."""

from pathlib import Path

import pytest

from assent.settings import Settings
from tests.cli.conftest import Assent


def test_config_shows_every_setting_with_its_origin(
    assent: Assent, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "assent.toml").write_text("log_level = 'warning'")
    monkeypatch.setenv("ASSENT_PORT", "9000")
    rows = {row["setting"]: row for row in assent("config", "--database", "sqlite:///x.db", "--json").json}
    assert rows.keys() == Settings.model_fields.keys()
    assert (rows["log_level"]["value"], rows["log_level"]["from"]) == ("warning", "assent.toml")
    assert (rows["port"]["value"], rows["port"]["from"]) == (9000, "ASSENT_PORT")
    assert (rows["database"]["value"], rows["database"]["from"]) == ("sqlite:///x.db", "command line")
    assert rows["host"]["from"] == "default"
    assert "ASSENT_PORT" in assent("config").out


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
