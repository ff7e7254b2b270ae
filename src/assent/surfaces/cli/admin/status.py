"""`assent status`: what needs an operator: deployments that cannot be followed, and deliveries that failed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import typer

from assent.app import Services
from assent.identity.model.access import Principal
from assent.kernel.store.paging import LARGEST_PAGE
from assent.outbox.model import DeliveryStatus
from assent.surfaces.cli import output
from assent.surfaces.cli.options import TENANT, AsJson, Config, Database, Tenant, run_beside
from assent.threads.model.deployments import Deployment


def add_to(app: typer.Typer) -> None:
    app.command()(status)


def status(tenant: Tenant = TENANT, config: Config = None, database: Database = None, as_json: AsJson = False) -> None:
    """Print the deployments with their lag, and the number of failed deliveries."""

    async def use(services: Services, caller: Principal) -> dict[str, Any]:
        failed = await services.deliveries.list(caller, status=DeliveryStatus.FAILED, limit=LARGEST_PAGE)
        listed = await services.deployments.list(caller)
        now = await services.store.read(tenant, lambda tx: tx.now())
        rows = [_row(deployment, now) for deployment in listed]
        return {"deployments": rows, "failed_deliveries": len(failed.items)}

    facts = run_beside(database, config, tenant, use)
    if as_json:
        return output.emit(facts)
    columns = ["name", "state", "lag_seconds", "failing_since", "message"]
    output.table(facts["deployments"], columns, empty="No deployments.")
    output.say(f"{facts['failed_deliveries']} failed deliveries")


def _row(deployment: Deployment, now: datetime) -> dict[str, Any]:
    lag = deployment.lag(now)
    facts = {"failing_since": deployment.failing_since, "message": deployment.message}
    shown = None if lag is None else round(lag, 1)
    return {"name": deployment.name, "state": deployment.state, "lag_seconds": shown, **facts}
