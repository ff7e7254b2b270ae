"""The shell lines of the documentation: run where that is safe, and otherwise checked as far as they can be."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from assent.cli.main import application
from tests.api.house import make_empty_database
from tests.cli.command import environment
from tests.docs.documents import FILES, ROOT, read, shell_lines

STAYING = {"dev", "demo", "serve", "worker"}
LINES = [(file.name, line) for file in FILES for line in shell_lines(file.read_text(encoding="utf-8"))]


def words(line: str) -> list[str]:
    return shlex.split(line, comments=True)


def is_assent(line: str) -> bool:
    return bool(words(line)) and Path(words(line)[0]).name == "assent"


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """The surroundings of someone who has installed Assent and reads along in an empty folder."""
    (tmp_path / ".assent").mkdir()
    shutil.copy(make_empty_database(tmp_path), tmp_path / ".assent" / "assent.db")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "assent").symlink_to(ROOT / ".venv" / "bin" / "assent")
    return environment(PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")


def test_there_is_something_to_check() -> None:
    assert len(LINES) > 20
    assert any(line.startswith("make demo") for _, line in LINES)


def test_the_commands_of_the_reference_work_one_after_another(tmp_path: Path, shell: dict[str, str]) -> None:
    """All of docs/cli.md in its own order, as one script, but for those that stay."""
    lines = [line for line in shell_lines(read("docs/cli.md")) if not (is_assent(line) and words(line)[1] in STAYING)]
    assert len(lines) > 10
    if not (ROOT / ".venv" / "bin" / "assent").exists():
        pytest.skip("Assent is not installed in .venv")
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env=shell,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "backup.db").exists()
    assert (tmp_path / "timeline.jsonl").exists()


@pytest.mark.parametrize(("name", "line"), [one for one in LINES if is_assent(one[1])])
def test_a_command_takes_what_is_written(name: str, line: str) -> None:
    command: Any = typer.main.get_command(application())
    arguments = words(line)[1:]
    while hasattr(command, "commands"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    command.make_context("assent", [one for one in arguments if one not in {"…"}])


@pytest.mark.parametrize(("name", "line"), [one for one in LINES if one[1].startswith("make ")])
def test_a_target_exists(name: str, line: str) -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert words(line)[1] in targets
