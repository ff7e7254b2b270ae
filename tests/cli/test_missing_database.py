"""A mistyped database is told as such; it is not taken for a fresh start and reported as in order."""

import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Assent


@pytest.mark.parametrize(
    "command", [("audit", "verify"), ("db", "backup", "copy.db"), ("users", "list"), ("db", "prune")]
)
def test_reading_command_does_not_create_a_missing_database(
    assent: Assent, folder: Path, command: tuple[str, ...]
) -> None:
    result = assent(*command, "--database", "sqlite:///typo.db")
    assert result.code == 5
    assert "database not found: typo.db" in result.err
    assert not (folder / "typo.db").exists()


def test_first_writing_command_creates_a_private_database(assent: Assent, folder: Path) -> None:
    assert assent("users", "create", "ana", "--database", "sqlite:///data/new.db").code == 0
    assert stat.S_IMODE((folder / "data" / "new.db").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "data").stat().st_mode) == 0o700


def test_password_in_a_database_url_is_not_printed(assent: Assent) -> None:
    result = assent("config", "--database", "postgresql://u:hidden@h/x?password=swordfish")
    assert "hidden" not in result.out
    assert "swordfish" not in result.out
