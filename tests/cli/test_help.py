"""Every command says what it does and what it takes."""

import pytest
import typer

from assent.surfaces.cli.inbox import inbox
from tests.cli.conftest import Assent
from tests.docs.surface import commands

COMMANDS = commands()


def test_walk_covers_all_commands() -> None:
    assert {"dev", "demo", "serve", "worker", "config", "version", "erase", "db upgrade", "keys create"} <= set(
        COMMANDS
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_help_describes_every_command_and_option(assent: Assent, name: str) -> None:
    result = assent(*name.split(), "--help")
    assert (result.code, result.err) == (0, "")
    first_sentence = (COMMANDS[name].help or "").split(".")[0]
    assert first_sentence
    assert " ".join(first_sentence.split()[:5]) in " ".join(result.out.split())
    for parameter in COMMANDS[name].params:
        if getattr(parameter, "hidden", False):
            continue
        if parameter.param_type_name == "option":
            assert parameter.opts[0] in result.out
        assert parameter.name == "help" or getattr(parameter, "help", None), (
            f"{name} does not say what {parameter.name} is"
        )


@pytest.mark.parametrize("arguments", [(), ("db",), ("keys",), ("users",), ("audit",)])
def test_a_group_alone_lists_its_commands(assent: Assent, arguments: tuple[str, ...]) -> None:
    result = assent(*arguments)
    assert "Commands" in result.out + result.err


def test_command_builds_its_own_group_only(assent: Assent, monkeypatch: pytest.MonkeyPatch) -> None:
    def build() -> typer.Typer:
        raise ZeroDivisionError

    monkeypatch.setattr(inbox, "commands", build)
    assert assent("keys", "list", "--help").code == 0
    with pytest.raises(ZeroDivisionError):
        assent("inbox", "list", "--help")


@pytest.mark.parametrize(
    "arguments", [("keyz",), ("keys", "create"), ("keys", "create", "x", "--kind", "robot"), ("dev", "--port", "x")]
)
def test_invalid_arguments_exit_with_2(assent: Assent, arguments: tuple[str, ...]) -> None:
    result = assent(*arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err
