"""Groups of commands. A command builds its own group only: to examine the parameters of all commands took longer than
most commands do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group


def add(app: typer.Typer, name: str, commands: Callable[[], typer.Typer], *, help: str) -> None:
    """Adds the commands under a name."""
    app.add_typer(typer.Typer(no_args_is_help=True), name=name, help=help, cls=_deferred(commands))


def _deferred(commands: Callable[[], typer.Typer]) -> type[TyperGroup]:
    class Group(TyperGroup):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            del self.commands

        def __getattr__(self, name: str) -> Any:
            """Called for what is not there yet."""
            if name != "commands":
                raise AttributeError(name)
            self.commands = get_group(commands()).commands
            return self.commands

    return Group
