"""`assent assistant`: the reference assistant on a server of its own, without the demo's examples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assent.settings import DEMO_PORT, Mode
from assent.surfaces.cli.options import Database, Host, Port, settings
from assent.surfaces.cli.server import serve

PROJECT = Path(__file__).parents[1] / "project" / "langgraph.json"
GRAPH = "assistant"
FILE = "sqlite:///.assent/assistant.db"

Production = Annotated[bool, typer.Option("--production", help="Require a credential for every call.")]


def assistant(
    context: typer.Context,
    host: Host = None,
    port: Port = DEMO_PORT,
    database: Database = FILE,
    production: Production = False,
) -> None:
    """Serve the assistant: web inbox, HTTP and the LangGraph API. ASSISTANT_… variables configure it."""
    if context.invoked_subcommand is not None:
        return
    mode = Mode.SERVE if production else Mode.DEV
    serve.start(settings(mode=mode, config=PROJECT, host=host, port=port, database=database, assistant=GRAPH))
