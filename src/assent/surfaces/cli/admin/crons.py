"""`assent crons`: runs that start by a schedule, read from the database directly."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assent.app import Services
from assent.identity.model.access import Principal
from assent.surfaces.cli import output
from assent.surfaces.cli.options import TENANT, AsJson, Config, Database, Tenant, run_beside
from assent.threads.model.crons import Cron
from assent.threads.rows.crons import Query

_COLUMNS = ["id", "schedule", "timezone", "enabled", "next_run_at", "missed", "problem", "owner"]
_MORE = ("assistant_id", "thread_id", "end_time", "last_run_id", "last_due_at", "created_at", "updated_at")
_AT_ONCE = 100


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(list_crons)
    app.command()(delete)
    return app


def list_crons(
    tenant: Tenant = TENANT, config: Config = None, database: Database = None, as_json: AsJson = False
) -> None:
    """List crons, newest first."""
    rows = [_row(cron) for cron in run_beside(database, config, tenant, _all)]
    if as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No crons. Agents create them through the API: client.crons.create.")


def delete(
    cron_id: Annotated[list[str], typer.Argument(help="Ids that `assent crons list` shows.")],
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Delete crons. Runs that they started are not affected."""

    async def use(services: Services, caller: Principal) -> None:
        for each in cron_id:
            await services.crons.delete(caller, each)

    run_beside(database, config, tenant, use)
    for each in cron_id:
        output.say(f"deleted: {each}")


async def _all(services: Services, caller: Principal) -> list[Cron]:
    crons: list[Cron] = []
    while True:
        page, total = await services.crons.search(caller, Query(), limit=_AT_ONCE, offset=len(crons))
        crons += page
        if not page or len(crons) >= total:
            return crons


def _row(cron: Cron) -> dict[str, Any]:
    return {name: getattr(cron, name) for name in (*_COLUMNS, *_MORE)}
