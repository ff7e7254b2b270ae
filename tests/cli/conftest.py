"""`assent(…)` runs a command in an empty folder of the test's own and gives back what it said."""

import logging
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assent.surfaces.cli.main import main
from tests.cli.command import Result

Assent = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, migrated_file: Path) -> Path:
    """An empty project, whose database is there and up to date."""
    (tmp_path / ".assent").mkdir()
    shutil.copy(migrated_file, tmp_path / ".assent" / "assent.db")
    return tmp_path


@pytest.fixture
def assent(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Assent:
    monkeypatch.chdir(folder)
    for name, value in {"COLUMNS": "200", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in [name for name in os.environ if name.startswith("ASSENT_")]:
        monkeypatch.delenv(name)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", root.handlers)
    monkeypatch.setattr(root, "level", root.level)
    capsys.readouterr()

    def run(*arguments: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["assent", *arguments])
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        else:
            code = 0
        out, err = capsys.readouterr()
        return Result(code if isinstance(code, int) else 0 if code is None else 1, out, err)

    return run
