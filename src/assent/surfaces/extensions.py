"""Extensions: packages that add routes and commands, found by entry point so that nothing here imports them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol

import typer

if TYPE_CHECKING:
    from fastapi import APIRouter

    from assent.app import Engine, Services
    from assent.settings import Settings

GROUP = "assent.extensions"


class Extension(Protocol):
    def add_commands(self, app: typer.Typer) -> None: ...

    def routes(self, services: Services, engine: Engine, settings: Settings) -> Iterable[APIRouter]:
        """Additional routes, behind the same authentication."""
        ...


@cache
def installed() -> list[Extension]:
    return [point.load()() for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)]
