"""`assent passkeys`: lists registered passkeys and removes lost ones. People add their own in the inbox."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assent.app import Services
from assent.identity.model.access import Principal
from assent.identity.model.passkeys import Passkey
from assent.surfaces.cli import output
from assent.surfaces.cli.options import TENANT, AsJson, Config, Database, Tenant, run_beside

_COLUMNS = ["person", "name", "works_at", "id", "created_at", "last_used_at"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command("list")(list_passkeys)
    app.command()(remove)
    return app


def list_passkeys(
    tenant: Tenant = TENANT, config: Config = None, database: Database = None, as_json: AsJson = False
) -> None:
    """List the passkeys of all people of a tenant."""

    async def use(services: Services, caller: Principal) -> list[tuple[str, Passkey]]:
        return await services.passkeys.of_everyone(caller)

    rows = [_row(person, passkey) for person, passkey in run_beside(database, config, tenant, use)]
    if as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No passkeys yet. People add their own in the inbox: Settings, Account")


def remove(
    name: Annotated[str, typer.Argument(help="The owner of the passkey.", metavar="NAME")],
    passkey_id: Annotated[str, typer.Argument(help="The id that `assent passkeys list` shows.", metavar="ID")],
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Remove a lost passkey; it can no longer confirm approvals."""

    async def use(services: Services, caller: Principal) -> None:
        await services.passkeys.remove_of(caller, name, passkey_id)

    run_beside(database, config, tenant, use)
    output.say(f"removed the passkey {passkey_id} of {name}")


def _row(person: str, passkey: Passkey) -> dict[str, Any]:
    facts = {"person": person, "name": passkey.name, "works_at": passkey.party, "id": passkey.id}
    return facts | {"created_at": passkey.created_at, "last_used_at": passkey.last_used_at}
