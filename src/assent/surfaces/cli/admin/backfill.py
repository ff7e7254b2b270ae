"""`assent backfill`: creates the items of paused runs that have none."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from assent.app import load_project, open_backfill
from assent.errors import NotFound
from assent.surfaces.cli import output, progress
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.options import AsJson, Config, Database, settings

if TYPE_CHECKING:
    from assent.runs.upkeep.backfill import Report

_LINES_EVERY = 100
"""Threads per progress line if standard error is not a terminal."""


def add_to(app: typer.Typer) -> None:
    app.command()(backfill)


def backfill(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the missing items and create none.")] = False,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant; by default all of them.")] = None,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Create the items of paused runs that have none. Safe to repeat, also after it was interrupted."""
    conf = settings(config=config, database=database)
    if conf.database_file is not None and not conf.database_file.exists():
        raise NotFound(f"database not found: {conf.database_file}", hint="name another with --database")
    graphs = load_project(conf)

    async def use() -> Report:
        async with open_backfill(conf, graphs) as filling:
            with progress.shown("paused threads", lines_every=_LINES_EVERY) as on_progress:
                return await filling.run(on_progress, tenant=tenant, dry_run=dry_run)

    _say(asyncio.run(use()), dry_run=dry_run, as_json=as_json)


def _say(report: Report, *, dry_run: bool, as_json: bool) -> None:
    problems = [{"thread": thread_id, "problem": problem} for thread_id, problem in report.problems]
    if as_json:
        output.emit({"threads": report.threads, "created": report.created, "dry_run": dry_run, "problems": problems})
    else:
        for line in problems:
            output.say(escaped(f"thread {line['thread']}: {line['problem']}"))
        missing = f"{report.created} items {'would be created' if dry_run else 'created'}"
        output.say(f"paused threads: {report.threads}, {missing}")
    if problems:
        raise typer.Exit(1)
