"""`assent import`: copies threads, assistants and store items from a LangGraph server or a checkpointer."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assent.app import load_project, open_importing
from assent.errors import Invalid
from assent.extras import require
from assent.identity.model.access import operator
from assent.surfaces.cli import output
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.options import TENANT, AsJson, Config, Database, Tenant, settings
from assent.threads.model.imports import Fate, Report, Sort

if TYPE_CHECKING:
    from assent.runs.sources.source import Source
    from assent.runs.upkeep.imports import Wanted

_LINES_EVERY = 100
"""Threads per progress line if standard error is not a terminal."""


def add_to(app: typer.Typer) -> None:
    app.command("import")(import_from)


def import_from(
    source: Annotated[
        str,
        typer.Argument(
            help="http(s)://… of a LangGraph server, postgresql://… or the SQLite file of a checkpointer.",
            metavar="SOURCE",
        ),
    ],
    graph: Annotated[
        list[str] | None,
        typer.Option(help="The graph for threads without one; OLD=NEW for a graph with another name here."),
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(help="The API key of that server.", envvar="LANGGRAPH_API_KEY", show_envvar=True)
    ] = None,
    owner: Annotated[str | None, typer.Option(help="The agent that will own the threads, by id or name.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read everything and write nothing.")] = False,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Copy threads with their history, assistants and store items from a LangGraph server or checkpointer."""
    conf = settings(config=config, database=database)
    graphs, wanted = load_project(conf), _wanted(graph or [], owner, dry_run)

    async def use() -> Report:
        async with open_importing(conf, graphs, dry_run=dry_run) as importing:
            opened = await _open(source, api_key)
            try:
                return await importing.run(operator(tenant), opened, wanted, _show_progress)
            finally:
                await opened.close()

    report = asyncio.run(use())
    if as_json:
        output.emit(report.to_json())
    else:
        _say(report)
    if report.problems:
        raise typer.Exit(1)


def _wanted(graphs: list[str], owner: str | None, dry_run: bool) -> Wanted:
    from assent.runs.upkeep.imports import Wanted

    renamed = dict(graph.split("=", 1) for graph in graphs if "=" in graph)
    defaults = [graph for graph in graphs if "=" not in graph]
    if len(defaults) > 1:
        raise Invalid(f"--graph: {' and '.join(defaults)} cannot both be the graph for threads without one")
    return Wanted(defaults[0] if defaults else None, renamed, owner, dry_run)


async def _open(source: str, api_key: str | None) -> Source:
    """Opens the source. Imports are local, because each source has its own client library."""
    scheme = source.partition("://")[0] if "://" in source else ""
    if scheme in ("http", "https"):
        from assent.runs.sources.server import ServerSource

        return ServerSource(source, api_key)
    require("import", "reading a checkpointer's tables")
    from assent.runs.sources.tables import PostgresTables, SqliteTables

    if scheme in ("postgres", "postgresql"):
        return await PostgresTables.open(source)
    if scheme in ("", "sqlite"):
        return await SqliteTables.open(Path(source.removeprefix("sqlite:///")))
    raise Invalid(
        f"{scheme}:// is not a supported source", hint="use http(s)://…, postgresql://… or the path of a SQLite file"
    )


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\rthreads: {done} of {total}", end="\n" if done == total else "", file=sys.stderr, flush=True)
    elif done % _LINES_EVERY == 0 or done == total:
        output.say(f"threads: {done} of {total}", to_stderr=True)


def _say(report: Report) -> None:
    for line in (*report.problems, *report.notes):
        output.say(escaped(f"{line.sort} {line.id}: {line.text}{f' ({line.hint})' if line.hint else ''}"))
    verb = "would be taken" if report.dry_run else "taken"
    for sort in Sort:
        counted = report.counts[sort]
        output.say(
            f"{sort}s: {counted[Fate.TAKEN]} {verb}, {counted[Fate.PRESENT]} here already,"
            f" {counted[Fate.REFUSED]} not taken"
        )
    output.say(f"threads that wait for a person: {report.waiting}")
