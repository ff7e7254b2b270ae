"""The assistant as an extension: its commands, and its routes and pages if the setting `assistant` names a graph."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from assent import secret_key
from assent.assistant.cli import assistant, calendar, chat, demo, evaluate
from assent.assistant.mcp import sharing
from assent.assistant.mcp.login import desk
from assent.assistant.mcp.login.desk import Logins
from assent.assistant.mcp.login.records import Records
from assent.assistant.mcp.places import keep_calendar_beside
from assent.assistant.mcp.trust import trust_by_default
from assent.extras import require
from assent.kernel.cipher import Cipher
from assent.settings import OFFLINE, Mode, suggested_models
from assent.surfaces.extensions import Extension, Place

if TYPE_CHECKING:
    from fastapi import APIRouter

    from assent.app import Engine, Services
    from assent.assistant.talk.prompts import Prompts
    from assent.assistant.talk.service import Assistant
    from assent.settings import AssistantSettings, Settings
    from assent.surfaces.web.views.shell import Shell


log = logging.getLogger(__name__)


class AssistantExtension(Extension):
    web = Path(__file__).parent / "web"

    def __init__(self) -> None:
        self._logins: Logins | None = None

    def add_commands(self, app: typer.Typer) -> None:
        app.command()(demo.demo)
        calendar.add_to(app)
        chat.add_to(app)
        app.add_typer(
            evaluate.commands(),
            name="assistant",
            callback=assistant.assistant,
            invoke_without_command=True,
            no_args_is_help=False,
            help=assistant.assistant.__doc__,
        )

    def check(self, settings: Settings) -> None:
        if settings.assistant:
            require("assistant", "the setting assistant")
            from assent.assistant.mcp.configured import require_calendar  # slow to import
            from assent.assistant.models import require_models
            from assent.settings import read_assistant_settings

            configured = read_assistant_settings()
            require_models(configured)
            require_calendar(configured)

    def prepare(self, services: Services, settings: Settings) -> None:
        trust_by_default(settings.mode is not Mode.SERVE)
        cipher = Cipher(lambda: secret_key.load(settings), desk.PURPOSE)
        self._logins = Logins(_address(settings), Records(services.store, cipher)) if settings.assistant else None
        desk.use(self._logins)

    def routes(self, services: Services, engine: Engine, settings: Settings) -> Iterator[APIRouter]:
        if settings.assistant:
            require("assistant", "the setting assistant")
            from assent.assistant import http  # slow to import
            from assent.settings import read_assistant_settings

            _suggest_models(read_assistant_settings())
            keep_calendar_beside(settings.database_file)
            yield http.routes(_assistant(services, engine, settings.assistant), _prompts())

    def pages(self, services: Services, engine: Engine, settings: Settings, shell: Shell) -> Iterator[APIRouter]:
        if settings.assistant:
            from assent.assistant.web import pages, signing_in  # slow to import
            from assent.assistant.web.talk_page import Sources

            assistant = _assistant(services, engine, settings.assistant)
            sources = Sources(engine.threads, engine.inbox, services.store)
            yield pages.routes(assistant, _prompts(), sources, shell)
            assert self._logins is not None
            yield signing_in.routes(self._logins, engine.inbox)

    def places(self, settings: Settings) -> Iterator[Place]:
        if settings.assistant:
            yield Place("assistant", "/inbox/assistant", "Assistant", "talk")

    async def close(self) -> None:
        await sharing.close_all()
        if self._logins is not None:
            desk.leave(self._logins)
            await self._logins.close()


def _suggest_models(configured: AssistantSettings) -> None:
    """A key alone chooses no model: its requests would go to a vendor."""
    for key, model in suggested_models().items() if configured.model == OFFLINE else ():
        log.info("assistant plans offline: to use the model of %s, set ASSISTANT_MODEL=%s", key, model)


def _address(settings: Settings) -> str:
    """To which authorization servers send people back."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return settings.public_url or f"http://{host}:{settings.port}"


def _prompts() -> Prompts:
    from assent.assistant.mcp.configured import shared_servers  # slow to import
    from assent.assistant.talk.prompts import Prompts
    from assent.settings import read_assistant_settings

    return Prompts(lambda: shared_servers(read_assistant_settings()))


def _assistant(services: Services, engine: Engine, graph_id: str) -> Assistant:
    from assent.assistant.talk.service import Assistant  # slow to import

    def is_loaded() -> bool:
        return graph_id in engine.project.graphs

    return Assistant(services.store, engine.runs, engine.threads, engine.inbox, graph_id, is_loaded=is_loaded)
