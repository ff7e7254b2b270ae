"""The shell lines of the documentation: run where that is safe, and otherwise checked as far as they can be."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from assent.cli.main import application
from tests.cli.conftest import Assent
from tests.docs.documents import FILES, ROOT, read, shell_lines

STAYING = {"dev", "demo", "serve", "worker"}
LINES = [(file.name, line) for file in FILES for line in shell_lines(file.read_text(encoding="utf-8"))]


def words(line: str) -> list[str]:
    return shlex.split(line, comments=True)


def is_assent(line: str) -> bool:
    return bool(words(line)) and Path(words(line)[0]).name == "assent"


def test_there_is_something_to_check() -> None:
    assert len(LINES) > 20
    assert any(line.startswith("make demo") for _, line in LINES)


def test_the_commands_of_the_reference_work_one_after_another(assent: Assent, folder: Path) -> None:
    """Those of docs/cli.md in its own order, in an empty project, but for the ones that stay."""
    calls = [words(line)[1:] for line in shell_lines(read("docs/cli.md")) if is_assent(line)]
    calls = [call for call in calls if call[0] not in STAYING]
    assert len(calls) > 10
    for call in calls:
        result = assent(*call)
        assert result.code == 0, (call, result.err)
    assert (folder / "backup.db").exists()
    assert (folder / "timeline.jsonl").exists()


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
