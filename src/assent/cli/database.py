"""`assent db`: bring the schema up to date, back the data up, keep it within its retention."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assent.app import Services
from assent.cli import output
from assent.cli.options import TENANT, AsJson, Config, Database, run_beside, settings
from assent.domain.access import Principal
from assent.errors import AlreadyExists, NotFound
from assent.services.retention import Pruned
from assent.store import migrations


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command()(upgrade)
    app.command()(current)
    app.command()(backup)
    app.command()(prune)
    return app


def upgrade(config: Config = None, database: Database = None) -> None:
    """Bring the database to the newest schema. Servers do this at start as well."""
    output.say(f"revision {migrations.upgrade(settings(config=config, database=database).database)}")


def current(config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """Print the database's schema revision and the newest one."""
    found = migrations.current(settings(config=config, database=database).database)
    if as_json:
        return output.emit({"current": found, "newest": migrations.newest()})
    output.say(f"current {found or 'none'}, newest {migrations.newest()}")


def backup(
    target: Annotated[Path, typer.Argument(help="The new file to write.")],
    config: Config = None,
    database: Database = None,
) -> None:
    """Write a consistent copy of a SQLite database, also while a server runs on it."""
    if target.exists():
        raise AlreadyExists(f"{target} exists already", hint="a backup never overwrites; name a new file")
    if not target.absolute().parent.is_dir():
        raise NotFound(f"there is no folder {target.parent}")

    async def use(services: Services, _: Principal) -> None:
        await services.store.backup(str(target))

    run_beside(database, config, TENANT, use)
    output.say(f"backed up to {target}")


def prune(config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """Remove what is past its retention now. A server does this every hour."""

    async def use(services: Services, _: Principal) -> Pruned:
        return await services.retention.prune()

    pruned = run_beside(database, config, TENANT, use)
    facts = {"sessions": pruned.sessions, "event_payloads": pruned.event_payloads, "deliveries": pruned.deliveries}
    facts |= {"frames": pruned.frames, "items": pruned.items}
    if as_json:
        return output.emit(facts)
    output.say(", ".join(f"{count} {name.replace('_', ' ')} removed" for name, count in facts.items()))
