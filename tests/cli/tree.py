"""Every command there is, by walking the application."""

from collections.abc import Iterator
from typing import Any

import typer

from assent.cli.main import application


def commands() -> dict[str, Any]:
    """The commands by their full name, `db upgrade`."""
    return dict(_walk(typer.main.get_command(application()), ""))


def _walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command
        return
    for child, found in children.items():
        yield from _walk(found, f"{name} {child}".strip())
