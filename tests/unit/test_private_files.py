"""Files that Assent makes are for their owner's eyes only, whatever the umask lets others see."""

import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assent import secret_key
from assent.assistant.calendar.database import Database
from assent.gate.inbox import LocalInbox
from assent.kernel import private_file
from assent.kernel.store import migrations
from assent.runs.queues.embedded import _locked
from assent.settings import Mode, Settings
from assent.surfaces.cli import profiles

pytestmark = pytest.mark.promise("P10")


@pytest.fixture(autouse=True)
def permissive() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(file: Path) -> tuple[int, int]:
    return stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "new"


def test_a_new_calendar_is_private(folder: Path) -> None:
    Database(folder / "calendar.db")
    assert modes(folder / "calendar.db") == (0o600, 0o700)


def test_a_new_database_is_private(folder: Path) -> None:
    migrations.upgrade(f"sqlite:///{folder / 'assent.db'}")
    assert modes(folder / "assent.db") == (0o600, 0o700)


def test_a_new_inbox_of_the_library_is_private(folder: Path) -> None:
    LocalInbox(folder / "gate.db").items()
    assert modes(folder / "gate.db") == (0o600, 0o700)


def test_a_new_secret_key_is_private(folder: Path) -> None:
    secret_key.load(Settings(mode=Mode.DEV, database=f"sqlite:///{folder / 'assent.db'}"))
    assert modes(folder / "assent.key") == (0o600, 0o700)


def test_a_new_lock_is_private(folder: Path) -> None:
    with _locked(folder / "assent.db.lock"):
        assert modes(folder / "assent.db.lock") == (0o600, 0o700)


def test_failure_to_replace_leaves_no_draft(folder: Path) -> None:
    taken = folder / "taken"
    taken.mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        private_file.replace(taken, b"new")
    assert list(folder.iterdir()) == [taken]


def test_file_that_exists_is_not_created_again(folder: Path) -> None:
    assert [private_file.create(folder / "key", content) for content in (b"first", b"second")] == [True, False]
    assert [file.read_bytes() for file in folder.iterdir()] == [b"first"]


def test_two_writers_lose_no_profile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    names = [f"profile {number}" for number in range(20)]
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda name: profiles.keep(name, profiles.Stored("http://127.0.0.1", name)), names))
    assert all(profiles.stored(name) for name in names)


def test_control_a_file_made_by_plain_open_is_not_private(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    assert modes(tmp_path / "plain")[0] == 0o666
