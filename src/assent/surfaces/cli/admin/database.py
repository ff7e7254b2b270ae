"""`assent db`: schema upgrades, conversion of checkpoints, backups and retention."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assent.app import Services
from assent.errors import AlreadyExists, NotFound
from assent.identity.model.access import Principal
from assent.kernel.store import migrations
from assent.retention import Pruned
from assent.surfaces.cli import output, progress
from assent.surfaces.cli.options import TENANT, AsJson, Config, Database, run_beside, settings


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command()(upgrade)
    app.command()(convert)
    app.command()(current)
    app.command()(backup)
    app.command()(prune)
    return app


def upgrade(config: Config = None, database: Database = None) -> None:
    """Upgrade the database to the newest schema, as servers do at start."""
    from assent.runs.upkeep.conversion import Conversion

    output.say(f"revision {migrations.upgrade(settings(config=config, database=database).database)}")

    async def use(services: Services, _: Principal) -> bool:
        return await Conversion(services.store).is_needed()

    if run_beside(database, config, TENANT, use):
        output.say("there are checkpoints of earlier releases, which need more space: assent db convert converts them")


def convert(config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """Convert checkpoints of earlier releases to the newest format. Safe to repeat, also after it was interrupted."""
    from assent.runs.upkeep.conversion import Conversion, Report

    async def use(services: Services, _: Principal) -> Report:
        with progress.shown("checkpoints and writes", lines_every=1000) as on_progress:
            return await Conversion(services.store).run(on_progress)

    report = run_beside(database, config, TENANT, use)
    if as_json:
        output.emit({"converted": report.converted, "damaged": [row._asdict() for row in report.damaged]})
    else:
        for table, key, reason in report.damaged:
            output.say(f"damaged, stays as it is: {table} {' '.join(f'{k}={v}' for k, v in key.items())}: {reason}")
        output.say(f"{report.converted} checkpoints and writes converted, {len(report.damaged)} damaged")
    if report.damaged:
        raise typer.Exit(1)


def current(config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """Print the database's schema revision and the newest one."""
    revision = migrations.current(settings(config=config, database=database).database)
    if as_json:
        return output.emit({"current": revision, "newest": migrations.newest()})
    output.say(f"current {revision or 'none'}, newest {migrations.newest()}")


def backup(
    target: Annotated[Path, typer.Argument(help="The new file to write.")],
    config: Config = None,
    database: Database = None,
) -> None:
    """Write a consistent copy of a SQLite database, even while a server uses it."""
    if target.exists():
        raise AlreadyExists(f"{target} exists already", hint="name a new file: a backup never overwrites")
    if not target.absolute().parent.is_dir():
        raise NotFound(f"folder not found: {target.parent}")

    async def use(services: Services, _: Principal) -> None:
        await services.store.backup(str(target))

    run_beside(database, config, TENANT, use)
    output.say(f"backed up to {target}")


def prune(config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """Remove expired data now. A server does this every hour."""

    async def use(services: Services, _: Principal) -> Pruned:
        return await services.retention.prune()

    pruned = run_beside(database, config, TENANT, use)
    facts = {"sessions": pruned.sessions, "event_payloads": pruned.event_payloads, "deliveries": pruned.deliveries}
    facts |= {"frames": pruned.frames, "items": pruned.items}
    if as_json:
        return output.emit(facts)
    output.say(", ".join(f"{count} {name.replace('_', ' ')} removed" for name, count in facts.items()))
