"""The kinds of servers that an inbox follows, each started from an environment of its own."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.reference import ENVIRONMENT as REFERENCE
from bench.reference import reference
from bench.served import Command, serving
from tests.javascript import INSTALLED
from tests.missing import missing
from tests.servers import ServerProcess, dev_server

TESTS = Path(__file__).parents[1]
GRAPHS, GRAPHS_JS = TESTS / "graphs_remote", TESTS / "graphs_remote_js"
AEGRA = INSTALLED.parent / "aegra"
LANGGRAPHJS = INSTALLED.parent / "langgraphjs"
_LOOPBACK_WEBHOOKS = {"webhooks": {"url": {"disable_loopback": False, "require_https": False}}}
_UUIDS = (
    "SET allow_system_table_mods = on",
    "INSERT INTO pg_extension VALUES (16000, 'uuid-ossp', 10, 2200, true, '1.1', NULL, NULL)",
    "CREATE FUNCTION uuid_generate_v4() RETURNS uuid LANGUAGE sql AS 'SELECT gen_random_uuid()'",
)
"""What Aegra wants of the extension `uuid-ossp`, which the Postgres of the tests comes without."""


def second_assent(folder: Path, **environment: str) -> ServerProcess:
    _copied(GRAPHS, folder)
    return dev_server(f"sqlite:///{folder / 'assent.db'}", config=folder / "langgraph.json", **environment)


@contextmanager
def langgraph_dev(folder: Path) -> Iterator[str]:
    """The address of LangGraph's own development server."""
    if not REFERENCE.exists():
        missing("LangGraph's server: tools/setup reference")

    def command(project: Path, port: int) -> list[str]:
        return ["env", f"PACKAGES={_packages()}", *reference(project, port)]

    config = _copied(GRAPHS, folder) / "langgraph.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **_LOOPBACK_WEBHOOKS}))
    with _served(command, folder) as url:
        yield url


@contextmanager
def aegra(folder: Path, database: str) -> Iterator[str]:
    """The address of an Aegra on an empty database."""
    if not AEGRA.exists():
        missing("Aegra: tools/setup aegra")
    with psycopg.connect(database, autocommit=True) as connection:
        for statement in _UUIDS:
            connection.execute(statement)

    def command(project: Path, port: int) -> list[str]:
        config = project / "langgraph.json"
        environment = [f"DATABASE_URL={database}", f"AEGRA_CONFIG={config}", f"PACKAGES={_packages()}"]
        program = [str(AEGRA / "bin" / "python"), "-m", "uvicorn", "aegra_api.main:app", "--port", str(port)]
        program += ["--timeout-keep-alive", "600"]  # tests on a busy machine may call again after more than its 5 s
        return ["env", *environment, *program]

    with _served(command, _copied(GRAPHS, folder)) as url:
        yield url


@contextmanager
def langgraphjs(folder: Path, project: Path = GRAPHS_JS) -> Iterator[str]:
    """The address of LangGraph.js's own development server with a copy of a project."""
    if not (LANGGRAPHJS / ".stamp").exists():
        missing("LangGraph.js's server: make javascript, which needs Node 20 or PyPI, and npm's registry")
    copied = _copied(project, folder)
    if not (copied / "node_modules").exists():
        (copied / "node_modules").symlink_to(LANGGRAPHJS / "node_modules")

    def command(project: Path, port: int) -> list[str]:
        program = project / "node_modules" / "@langchain" / "langgraph-cli" / "dist" / "cli" / "cli.mjs"
        environment = ["LANGGRAPH_CLI_NO_ANALYTICS=1", "LANGSMITH_TRACING=false"]
        options = ["--host", "127.0.0.1", "--port", str(port), "--no-browser", "--no-reload"]
        return ["env", *environment, str(LANGGRAPHJS / "node"), str(program), "dev", *options]

    with _served(command, copied) as url:
        yield url


@contextmanager
def _served(command: Command, folder: Path) -> Iterator[str]:
    with serving(command, folder) as served:
        yield f"http://127.0.0.1:{served.port}"


def _packages() -> str:
    """Where this environment has its packages, for servers whose own has no agents."""
    installed = next(path for path in sys.path if "site-packages" in path)
    return os.pathsep.join([str(TESTS.parent), installed])


def _copied(project: Path, folder: Path) -> Path:
    return shutil.copytree(
        project, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "node_modules")
    )
