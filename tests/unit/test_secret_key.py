"""The installation's secret: set in production, made once for a developer, and readable by nobody else."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from assent import secret_key
from assent.errors import ConfigError, UnsafeStart
from assent.settings import Mode, Settings, load

GIVEN = "0123456789abcdef0123456789abcdef"


def local(folder: Path, mode: Mode = Mode.DEV) -> Settings:
    return Settings(mode=mode, database=f"sqlite:///{folder}/assent.db")


def test_configured_key_is_used_and_no_file_is_written(tmp_path: Path) -> None:
    for mode in Mode:
        settings = Settings(mode=mode, database=f"sqlite:///{tmp_path}/assent.db", secret_key=SecretStr(GIVEN))
        assert secret_key.load(settings) == GIVEN.encode()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.promise("P7")
def test_production_without_a_key_fails_and_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(UnsafeStart) as refused:
        secret_key.load(local(tmp_path, Mode.SERVE))
    assert "ASSENT_SECRET_KEY" in str(refused.value.hint)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [Mode.DEV, Mode.DEMO])
def test_key_is_generated_once_beside_the_database_in_dev(tmp_path: Path, mode: Mode) -> None:
    made = secret_key.load(local(tmp_path, mode))
    (file,) = tmp_path.iterdir()
    assert file == secret_key.path(local(tmp_path))
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(made) >= 32
    assert secret_key.load(local(tmp_path, mode)) == made


def test_each_database_has_its_own_key(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert secret_key.load(local(tmp_path / "a")) != secret_key.load(local(tmp_path / "b"))


@pytest.mark.parametrize("database", ["sqlite://", "postgresql://db.example/assent"])
def test_without_a_database_file_the_key_is_beside_the_configuration(tmp_path: Path, database: str) -> None:
    settings = Settings(database=database, config=tmp_path / "langgraph.json")
    assert secret_key.path(settings) == tmp_path / ".assent" / "assent.key"
    assert secret_key.load(settings) == secret_key.load(settings)


def test_processes_that_start_at_once_share_the_key(tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def begin(_: int) -> bytes:
        start.wait()
        return secret_key.load(local(tmp_path))

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(begin, range(8)))) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["assent.key"]


def test_file_with_a_short_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "assent.key").write_text("short\n")
    with pytest.raises(ConfigError):
        secret_key.load(local(tmp_path))


@pytest.mark.promise("P10")
def test_key_is_never_shown(tmp_path: Path) -> None:
    settings = load({}, {"ASSENT_SECRET_KEY": GIVEN}, folder=tmp_path).settings
    assert GIVEN not in repr(settings)
    assert GIVEN not in str(settings.model_dump(mode="json"))
    with pytest.raises(ConfigError) as refused:
        load({}, {"ASSENT_SECRET_KEY": GIVEN[:8]}, folder=tmp_path)
    assert GIVEN[:8] not in refused.value.message


@pytest.mark.parametrize(
    ("mode", "host", "loopback"),
    [
        (Mode.DEV, "127.0.0.1", True),
        (Mode.DEMO, "::1", True),
        (Mode.DEV, "0.0.0.0", False),  # noqa: S104 - a setting, not bound
        (Mode.SERVE, "127.0.0.1", False),
    ],
)
def test_loopback_may_be_called_by_default_only_locally(mode: Mode, host: str, loopback: bool) -> None:
    named = [str(network) for network in Settings(mode=mode, host=host).may_call.networks]
    assert named == (["127.0.0.0/8", "::1/128"] if loopback else [])


def test_operator_allows_networks_and_hosts(tmp_path: Path) -> None:
    loaded_settings = load(
        {"mode": Mode.SERVE}, {"ASSENT_OUTBOUND_ALLOW": "10.0.0.0/8, hooks.internal"}, folder=tmp_path
    )
    assert [str(network) for network in loaded_settings.settings.may_call.networks] == ["10.0.0.0/8"]
    assert loaded_settings.settings.may_call.hosts == {"hooks.internal"}
    with pytest.raises(ConfigError, match="neither a network nor a host"):
        load({}, {"ASSENT_OUTBOUND_ALLOW": "http://hooks.internal"}, folder=tmp_path)
