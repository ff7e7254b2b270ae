"""`assent demo`: a server on SQLite with the assistant and example items."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from assent.app import Engine, Services
from assent.assistant.demo import examples
from assent.assistant.demo.history import history
from assent.extras import require
from assent.identity.model.access import DEFAULT_TENANT
from assent.runs.project.loader import LoadedGraphs
from assent.settings import Mode, Settings
from assent.surfaces.cli.options import Database, Host, Port, settings
from assent.surfaces.cli.server import serve


def demo(host: Host = None, port: Port = None, database: Database = None) -> None:
    """Serve a demo on SQLite with example items. Needs no key and no other service."""
    require("assistant", "the demo")
    serve.start(settings(mode=Mode.DEMO, host=host, port=port, database=database), demonstration=Examples())


class Examples:
    async def prepare(self, services: Services, engine: Engine, settings: Settings) -> None:
        graphs = engine.project.graphs
        if await examples.is_first_start(engine.threads):
            await services.samples.add(DEFAULT_TENANT, history(datetime.now(UTC)))
        await examples.prepare(engine.threads, engine.runs, engine.inbox, graphs=graphs, assistant=settings.assistant)

    def to_try(self, settings: Settings, graphs: LoadedGraphs, url: str) -> dict[str, str]:
        """Commands that create more items: by the assistant, or without it by a run."""
        if settings.assistant and settings.assistant in graphs.graphs:
            body = {"thread_id": "mine", "user_request": examples.WISH}
            return {"try": _curl(f"{url}/run", body), "talk": f"assent chat --url {url} --thread {examples.TALK}"}
        if examples.DRAFTS in graphs.graphs:
            return {"try": _curl(f"{url}/runs", {"assistant_id": examples.DRAFTS, "input": {"to": "you@example.com"}})}
        return {}


def _curl(url: str, body: dict[str, Any]) -> str:
    return f"curl {url} -H 'content-type: application/json' -d '{json.dumps(body)}'"
