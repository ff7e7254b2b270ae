"""Settings: their layers, where each value comes from, and what is said about a wrong one."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from assent.errors import ConfigError, Invalid
from assent.settings import Loaded, Mode, Settings, is_loopback, load, parse_duration

SECRET = "hunter2"


def loaded(
    folder: Path,
    toml: str | None = None,
    environment: Mapping[str, str] | None = None,
    **options: Any,
) -> Loaded:
    if toml is not None:
        (folder / "assent.toml").write_text(toml)
    return load(options, environment or {}, folder=folder)


class TestLayers:
    def test_defaults_are_safe(self, tmp_path: Path) -> None:
        loaded_settings = loaded(tmp_path)
        assert loaded_settings.settings.host == "127.0.0.1"
        assert loaded_settings.settings.on_loopback
        assert loaded_settings.settings.cors_origins == ()
        assert set(loaded_settings.origins.values()) == {"default"}

    def test_each_layer_wins_over_the_one_below(self, tmp_path: Path) -> None:
        toml, environment = "port = 1\nlog_level = 'debug'\nhost = 'file'", {"ASSENT_PORT": "2", "ASSENT_HOST": "env"}
        loaded_settings = loaded(tmp_path, toml, environment, port=3)
        assert (loaded_settings.settings.port, loaded_settings.settings.host, loaded_settings.settings.log_level) == (
            3,
            "env",
            "debug",
        )
        assert loaded_settings.origins["port"] == "command line"
        assert loaded_settings.origins["host"] == "ASSENT_HOST"
        assert loaded_settings.origins["log_level"] == "assent.toml"
        assert loaded_settings.origins["mode"] == "default"

    def test_absent_option_does_not_override_lower_layers(self, tmp_path: Path) -> None:
        assert loaded(tmp_path, "port = 1", port=None).settings.port == 1

    def test_every_setting_has_an_origin(self, tmp_path: Path) -> None:
        assert loaded(tmp_path).origins.keys() == Settings.model_fields.keys()

    def test_lists_are_separated_by_commas_in_the_environment(self, tmp_path: Path) -> None:
        loaded_settings = loaded(tmp_path, environment={"ASSENT_ALLOWED_HOSTS": " a.example, b.example ,"})
        assert loaded_settings.settings.allowed_hosts == ("a.example", "b.example")
        assert loaded(tmp_path, 'allowed_hosts = ["a.example"]').settings.allowed_hosts == ("a.example",)

    def test_another_file_can_be_named(self, tmp_path: Path) -> None:
        (tmp_path / "other.toml").write_text("port = 7")
        loaded_settings = loaded(tmp_path, "port = 1", {"ASSENT_SETTINGS": "other.toml"})
        assert (loaded_settings.settings.port, loaded_settings.origins["port"]) == (7, "other.toml")

    def test_settings_are_immutable(self) -> None:
        with pytest.raises(ValidationError):
            Settings().port = 1


class TestDerivedDefaults:
    def test_default_database_is_beside_the_graphs(self, tmp_path: Path) -> None:
        assert loaded(tmp_path).settings.database == "sqlite:///.assent/assent.db"
        loaded_settings = loaded(tmp_path, config=Path("/srv/agents/langgraph.json"))
        assert loaded_settings.settings.database == "sqlite:////srv/agents/.assent/assent.db"

    def test_the_demo_has_its_own_port_and_file(self, tmp_path: Path) -> None:
        loaded_settings = loaded(tmp_path, mode=Mode.DEMO)
        assert (loaded_settings.settings.port, loaded_settings.settings.database) == (8002, "sqlite:///.assent/demo.db")

    def test_explicit_settings_apply_to_the_demo(self, tmp_path: Path) -> None:
        loaded_settings = loaded(
            tmp_path, environment={"ASSENT_PORT": "9000", "ASSENT_DATABASE": "sqlite:///x.db"}, mode=Mode.DEMO
        )
        assert (loaded_settings.settings.port, loaded_settings.settings.database) == (9000, "sqlite:///x.db")
        assert loaded_settings.origins["port"] == "ASSENT_PORT"


WRONG = {
    "mode": "production",
    "port": "eighty",
    "host": "",
    "database": f"mysql://root:{SECRET}@db/assent",
    "database_connections": "0",
    "max_body_bytes": "12",
    "session_lifetime": "a week",
    "secret_key": SECRET,
    "outbound_allow": "not a network/99",
    "default_multitask_strategy": SECRET,
    "log_level": SECRET,
    "log_format": SECRET,
    "retention_event_payloads": "-1s",
}


class TestWrongValues:
    @pytest.mark.parametrize(("name", "value"), WRONG.items())
    def test_wrong_value_is_named_with_its_origin_and_not_shown(self, tmp_path: Path, name: str, value: str) -> None:
        variable = f"ASSENT_{name.upper()}"
        with pytest.raises(ConfigError) as caught:
            loaded(tmp_path, environment={variable: value})
        assert caught.value.message.startswith(f"{name} (from {variable}): ")
        assert SECRET not in caught.value.message
        assert "\n" not in caught.value.message
        assert caught.value.hint

    def test_all_wrong_values_are_named_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            loaded(tmp_path, "log_level = 'loud'", {"ASSENT_PORT": "x"}, host="")
        for told in ("log_level (from assent.toml)", "port (from ASSENT_PORT)", "host (from command line)"):
            assert told in caught.value.message

    @pytest.mark.parametrize("value", ["nonsense", "", "sqlite", f"mysql://u:{SECRET}@h/d", f"://{SECRET}"])
    def test_invalid_database_url_error_explains_the_format(self, tmp_path: Path, value: str) -> None:
        with pytest.raises(ConfigError, match="sqlite:///path or postgresql") as caught:
            loaded(tmp_path, database=value)
        assert SECRET not in caught.value.message

    @pytest.mark.parametrize("value", ["0s", "-5s", "9999999999999999d", "36501d", "1 day 2", "", "d", "P1000000000D"])
    def test_invalid_duration_is_refused(self, tmp_path: Path, value: str) -> None:
        with pytest.raises(ConfigError, match="session_lifetime"):
            loaded(tmp_path, environment={"ASSENT_SESSION_LIFETIME": value})
        with pytest.raises(Invalid):
            parse_duration(value)

    @pytest.mark.parametrize("value", ["-1s", "301s", "6m", "soon"])
    def test_undo_window_outside_its_bounds_is_refused(self, tmp_path: Path, value: str) -> None:
        with pytest.raises(ConfigError, match="undo_window"):
            loaded(tmp_path, environment={"ASSENT_UNDO_WINDOW": value})

    @pytest.mark.parametrize(("value", "seconds"), [("0s", 0), ("15s", 15), ("5m", 300)])
    def test_undo_window_is_read_as_a_duration(self, tmp_path: Path, value: str, seconds: int) -> None:
        loaded_settings = loaded(tmp_path, environment={"ASSENT_UNDO_WINDOW": value})
        assert loaded_settings.settings.undo_window.total_seconds() == seconds

    @pytest.mark.parametrize(
        ("value", "seconds"), [("90s", 90), ("15m", 900), ("12h", 43200), ("7d", 604800), (" 1s ", 1), ("PT1H", 3600)]
    )
    def test_duration_is_parsed(self, tmp_path: Path, value: str, seconds: int) -> None:
        loaded_settings = loaded(tmp_path, environment={"ASSENT_SESSION_LIFETIME": value})
        assert loaded_settings.settings.session_lifetime == timedelta(seconds=seconds)

    @pytest.mark.parametrize(
        ("toml", "told"),
        [
            ("prot = 80", "prot (from assent.toml): is not a setting; did you mean port?"),
            ("[server]\nport = 80", "server (from assent.toml): is not a setting"),
            ("port = ", "assent.toml is not valid TOML"),
        ],
    )
    def test_invalid_settings_file_reports_its_problem(self, tmp_path: Path, toml: str, told: str) -> None:
        with pytest.raises(ConfigError, match=r"assent\.toml") as caught:
            loaded(tmp_path, toml)
        assert told in caught.value.message

    def test_unreadable_settings_file_is_reported(self, tmp_path: Path) -> None:
        (tmp_path / "folder.toml").mkdir()
        (tmp_path / "latin.toml").write_bytes(b"host = '\xe9'")
        for name in ("folder.toml", "latin.toml", "absent.toml"):
            with pytest.raises(ConfigError, match=name):
                loaded(tmp_path, environment={"ASSENT_SETTINGS": name})


class TestVariablesThatAreNoSettings:
    @pytest.mark.parametrize(
        ("variable", "meant"),
        [
            ("ASSENT_DATABSE", "ASSENT_DATABASE"),
            ("ASSENT_ALLOWED_HOST", "ASSENT_ALLOWED_HOSTS"),
            ("ASSENT_CORS_ORIGIN", "ASSENT_CORS_ORIGINS"),
            ("ASSENT_PROT", "ASSENT_PORT"),
        ],
    )
    def test_misspelt_variable_stops_the_start(self, tmp_path: Path, variable: str, meant: str) -> None:
        with pytest.raises(ConfigError, match=variable) as caught:
            loaded(tmp_path, environment={variable: SECRET})
        assert caught.value.hint == f"did you mean {meant}?"
        assert SECRET not in f"{caught.value.message}{caught.value.hint}"

    def test_unknown_variables_are_reported_and_have_no_effect(self, tmp_path: Path) -> None:
        """Such as those that Kubernetes makes for a service of that name."""
        environment = {"ASSENT_SERVICE_HOST": "10.0.0.1", "ASSENT_PORT_80_TCP": "tcp://10.0.0.1:80", "PATH": "/bin"}
        loaded_settings = loaded(tmp_path, environment=environment)
        assert loaded_settings.settings == loaded(tmp_path).settings
        assert [remark.split()[0] for remark in loaded_settings.remarks] == [
            "ASSENT_PORT_80_TCP",
            "ASSENT_SERVICE_HOST",
        ]

    def test_known_variables_are_not_reported(self, tmp_path: Path) -> None:
        assert loaded(tmp_path, environment={"ASSENT_PORT": "1"}).remarks == ()


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - compared, not bound
        ("::", False),
        ("127.0.0.1.evil.example", False),
        ("localhost.evil.example", False),
        ("", False),
    ],
)
def test_loopback_hosts_are_recognised(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
