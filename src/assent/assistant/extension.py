"""The assistant as an extension: its commands, and its routes if the setting `assistant` names a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from assent.assistant.cli import calendar, chat, demo

if TYPE_CHECKING:
    from fastapi import APIRouter

    from assent.app import Engine, Services
    from assent.settings import Settings


class AssistantExtension:
    def add_commands(self, app: typer.Typer) -> None:
        app.command()(demo.demo)
        calendar.add_to(app)
        chat.add_to(app)

    def routes(self, services: Services, engine: Engine, settings: Settings) -> Iterator[APIRouter]:
        if settings.assistant:
            from assent.assistant import http  # slow to import
            from assent.assistant.models import require_models
            from assent.assistant.talk.service import Assistant
            from assent.settings import read_assistant_settings

            require_models(read_assistant_settings())
            graph_id = settings.assistant
            yield http.routes(
                Assistant(
                    services.store,
                    engine.runs,
                    engine.threads,
                    engine.inbox,
                    graph_id,
                    is_loaded=lambda: graph_id in engine.project.graphs,
                )
            )
