"""A start of `assent dev` imports what every server needs, and the rest where it is used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

GRAPHS = Path(__file__).parents[2] / "bench" / "graphs" / "langgraph.json"
LATE = {
    *("alembic", "cel_expr_python", "cryptography", "fastmcp", "httpcore", "jinja2", "jsonschema", "langchain"),
    *("langchain_core.language_models.chat_models", "langgraph.prebuilt", "markdown_it", "mcp", "nh3"),
    *("procrastinate", "psycopg", "rich.console", "strawberry", "webauthn"),
}
START = f"""
import json, sys
from assent.kernel import model_builds
with model_builds.deferred():
    import assent.surfaces.cli.main
    import assent.surfaces.cli.server.server
    import assent.surfaces.routes
from assent.app import load_project
from assent.settings import Mode, Settings
load_project(Settings(mode=Mode.DEV, config={str(GRAPHS)!r}))
from assent.gate import task
from assent.kernel.store.drivers import sqlite
from assent.outbox import client
from assent.runs.checkpoints import saver
import fastapi.openapi.models
print(json.dumps([fastapi.openapi.models.OpenAPI.__pydantic_complete__, *sys.modules]))
"""


def started() -> tuple[bool, set[str]]:
    """Whether a model that no request has needed is built, and the modules."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ASSENT_", "LANG"))}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    is_built, *modules = json.loads(done.stdout)
    return is_built, set(modules)


def test_start_imports_nothing_that_is_used_later() -> None:
    is_built, modules = started()
    assert {"assent.surfaces.routes", "fastapi", "langgraph.pregel"} <= modules, "the control: what it does import"
    assert not is_built
    assert LATE & modules == set()
