"""Commands, options and routes that the running text names exist."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from assent.app import open_engine, open_services
from assent.assistant.calendar.server import create_server, http_app
from assent.runs.project.loader import LoadedGraphs
from assent.settings import Settings
from assent.surfaces.routes import create_app
from tests.docs.documents import FILES, ROOT, spans
from tests.docs.surface import commands

METHODS = "GET|POST|PUT|PATCH|DELETE"
OPTIONS = {"--help"}
OF_READERS = {"assent.toml", "policy.toml"}
"""Files that a reader of the documentation has."""


def named_commands(file: Path) -> list[str]:
    code_spans = spans(file.read_text(encoding="utf-8"))
    return [span for span in code_spans if span.removeprefix(".venv/bin/").startswith("assent ")]


def parted(span: str) -> tuple[str, list[str]]:
    """The words of a command's name, and its options."""
    words = span.removeprefix(".venv/bin/").split()[1:]
    return " ".join(word for word in words if re.fullmatch("[a-z][a-z-]*", word)), re.findall(r"--[a-z-]+", span)


def is_command(name: str) -> bool:
    """Whether the words begin with a command, or are the beginning of one."""
    known = commands()
    return any(f"{name} ".startswith(f"{one} ") or f"{one} ".startswith(f"{name} ") for one in known)


def options_of(name: str) -> set[str]:
    matching_commands = [command for one, command in commands().items() if f"{name} ".startswith(f"{one} ")]
    return OPTIONS | {
        option for command in matching_commands for parameter in command.params for option in parameter.opts
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_commands_named_on_a_page_exist(file: Path) -> None:
    for span in named_commands(file):
        name, options = parted(span)
        assert is_command(name) or not name, span
        assert set(options) <= options_of(name), span


def test_control_a_missing_command_is_found() -> None:
    assert not is_command("inbox lits")
    assert "--purge" not in options_of("db prune")


def named_routes() -> dict[str, str]:
    """The routes of the running text, each with its page. Those that are abbreviated with … are left out."""
    texts = ((file.name, span) for file in FILES for span in spans(file.read_text(encoding="utf-8")))
    route_mentions = ((page, re.match(rf"({METHODS}) (/[^ ?…]*)", span)) for page, span in texts)
    return {f"{match[1]} {match[2]}": page for page, match in route_mentions if match}


async def test_every_named_route_is_served(tmp_path: Path) -> None:
    served = await server_routes(tmp_path) | shapes(
        http_app(create_server(tmp_path / "calendar.db", login=True)).routes
    )
    assert len(named_routes()) > 30
    assert [route for route in named_routes() if shape(route) not in served] == []


async def server_routes(folder: Path) -> set[str]:
    settings = Settings(database=f"sqlite:///{folder}/assent.db", assistant="assistant")
    async with (
        open_services(settings) as services,
        open_engine(services.store, LoadedGraphs({}, {}), settings) as engine,
    ):
        return shapes(create_app(services, engine, settings).routes)


def shapes(routes: Iterable[Any]) -> set[str]:
    return {shape(f"{method} {route.path}") for route in routes for method in getattr(route, "methods", None) or ()}


def shape(route: str) -> str:
    """Without the names of what stands between braces."""
    return re.sub(r"\{[^}]*\}", "{}", route)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_source_files_named_on_a_page_exist(file: Path) -> None:
    named = {
        span for span in spans(file.read_text(encoding="utf-8")) if re.fullmatch(r"[\w./-]+\.(py|toml|txt|svg)", span)
    }
    folders = (ROOT, ROOT / "src" / "assent", ROOT / "src" / "assent" / "surfaces" / "web" / "renderers")
    left = {span for span in named - OF_READERS if not any((folder / span).exists() for folder in folders)}
    assert left == set()
