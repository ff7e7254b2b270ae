"""`assent deliveries`: the outbox, read from the database directly."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assent import secret_key
from assent.app import Services
from assent.identity.model.access import Principal
from assent.kernel.store.paging import LARGEST_PAGE
from assent.outbox.model import Delivery, DeliveryStatus
from assent.surfaces.cli import output
from assent.surfaces.cli.options import TENANT, AsJson, Config, Database, Tenant, loaded, run_beside, run_with

_COLUMNS = ["id", "subject", "target", "status", "attempts", "due_at", "failure"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(list_deliveries)
    app.command()(retry)
    app.command()(secret)
    return app


def list_deliveries(
    status: Annotated[DeliveryStatus | None, typer.Option(help="Only deliveries with this status.")] = None,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """List deliveries, newest first."""

    async def use(services: Services, caller: Principal) -> list[Delivery]:
        return (await services.deliveries.list(caller, status=status, limit=LARGEST_PAGE)).items

    rows = [_row(delivery) for delivery in run_beside(database, config, tenant, use)]
    if as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No deliveries yet. A run with a `webhook` creates one when it ends.")


def retry(
    delivery_id: Annotated[list[str] | None, typer.Argument(help="Ids that `assent deliveries list` shows.")] = None,
    all_failed: Annotated[
        bool, typer.Option("--all-failed", help="Every delivery that has failed permanently.")
    ] = False,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Retry deliveries that failed permanently; a running server sends them within seconds."""
    if bool(delivery_id) == all_failed:
        raise typer.BadParameter("name deliveries, or use --all-failed")

    async def use(services: Services, caller: Principal) -> list[Delivery]:
        ids = delivery_id or await _failed(services, caller)
        return [await services.deliveries.retry(caller, failed_id) for failed_id in ids]

    for delivery in run_beside(database, config, tenant, use):
        output.say(f"will be sent again: {delivery.id} ({delivery.subject})")


def secret(tenant: Tenant = TENANT, config: Config = None, database: Database = None) -> None:
    """Print the secret by which a receiver verifies this server's webhooks."""

    conf = loaded(database=database, config=config)

    async def use(services: Services, caller: Principal) -> str:
        return services.deliveries.signing_secret(caller)

    output.say(run_with(conf.settings, tenant, use))
    origin = conf.origins["secret_key"] if conf.settings.secret_key else secret_key.path(conf.settings)
    output.say(f"derived from {origin}; a server with another secret_key signs differently", to_stderr=True)


async def _failed(services: Services, caller: Principal) -> list[str]:
    ids, cursor = [], None
    while True:
        page = await services.deliveries.list(caller, status=DeliveryStatus.FAILED, limit=LARGEST_PAGE, cursor=cursor)
        ids += [delivery.id for delivery in page.items]
        cursor = page.next
        if cursor is None:
            return ids


def _row(delivery: Delivery) -> dict[str, Any]:
    row = {name: getattr(delivery, name) for name in _COLUMNS} | {"kind": delivery.kind}
    return row | {at: getattr(delivery, at) for at in ("created_at", "attempted_at", "delivered_at")}
