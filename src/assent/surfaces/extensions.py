"""Extensions: packages that add routes, commands and pages, found by entry point so that nothing here imports them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

if TYPE_CHECKING:
    from fastapi import APIRouter

    from assent.app import Engine, Services
    from assent.settings import Settings
    from assent.surfaces.web.views.shell import Shell

GROUP = "assent.extensions"


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation. `label` is translated."""

    name: str
    path: str
    label: str
    icon: str


class Extension(Protocol):
    """Inherit from it: what is not overridden adds nothing."""

    web: Path | None = None
    """The folder of its pages: `templates`, `static` and `locales`, beside those of the inbox."""

    def add_commands(self, app: typer.Typer) -> None:
        return

    def check(self, settings: Settings) -> None:
        """Raises `ConfigError` for its own settings, before the start opens or shows anything."""
        return

    def prepare(self, services: Services, settings: Settings) -> None:
        """Sets up what its graphs need, in every process that serves or executes runs."""
        return

    def routes(self, services: Services, engine: Engine, settings: Settings) -> Iterable[APIRouter]:
        """Additional routes, behind the same authentication."""
        return ()

    def pages(self, services: Services, engine: Engine, settings: Settings, shell: Shell) -> Iterable[APIRouter]:
        """Additional pages: below `/inbox/` in the frame that `shell` draws, and public ones at addresses of their own,
        without it."""
        return ()

    def places(self, settings: Settings) -> Iterable[Place]:
        """Where the navigation leads to its pages."""
        return ()

    async def close(self) -> None:
        """Ends what it has opened in the running event loop. Called once no run is active any more."""
        return


@cache
def installed() -> list[Extension]:
    return [point.load()() for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)]


def check(settings: Settings) -> None:
    for extension in installed():
        extension.check(settings)


def prepare(services: Services, settings: Settings) -> None:
    for extension in installed():
        extension.prepare(services, settings)


async def close() -> None:
    for extension in installed():
        await extension.close()


def folders(part: str) -> list[Path]:
    """The folders of all extensions with `templates`, `static` or `locales`."""
    return [extension.web / part for extension in installed() if extension.web is not None]
