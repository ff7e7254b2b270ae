"""Everything there is to document, found by walking the code: commands and errors."""

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

import assent
from assent.errors import AssentError
from assent.surfaces.cli.main import application


@cache
def commands() -> dict[str, Any]:
    """The commands by their full name, `db upgrade`."""
    return dict(_walk(typer.main.get_command(application()), ""))


@cache
def errors() -> tuple[type[AssentError], ...]:
    """Every class of error in the whole package."""
    importlib.import_module("assent.app")  # first, because it sees to it that LangGraph is imported safely
    for module in pkgutil.walk_packages(assent.__path__, "assent."):
        if "revisions" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return tuple(kind for kind in _descendants(AssentError) if kind.__module__.startswith("assent."))


def _walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command
        return
    if command.invoke_without_command and name:  # a group that does something by itself
        yield name, command
    for child, found in children.items():
        yield from _walk(found, f"{name} {child}".strip())


def _descendants(kind: type[AssentError]) -> Iterator[type[AssentError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _descendants(child)
