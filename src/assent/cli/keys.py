"""`assent keys`: make, list and revoke API keys, on the database itself."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assent.app import Services
from assent.cli import output
from assent.cli.options import TENANT, AsJson, Config, Database, Tenant, run_beside
from assent.domain.access import Kind, Principal
from assent.domain.keys import ApiKey
from assent.services.keys import NewKey
from assent.settings import parse_duration
from assent.store.paging import LARGEST_PAGE

_COLUMNS = ["id", "kind", "name", "user", "scopes", "expires_at", "last_used_at", "revoked_at"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command()(create)
    app.command("list")(list_keys)
    app.command()(revoke)
    return app


def create(
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    kind: Annotated[Kind, typer.Option(help="Who will hold it.")] = Kind.AGENT,
    user: Annotated[str | None, typer.Option(help="The person a reviewer key belongs to.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="A right it holds; repeat for several.")] = None,
    expires_in: Annotated[str | None, typer.Option(help="Such as 12h or 90d; without it, until revoked.")] = None,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print its secret, this once."""
    lifetime = parse_duration(expires_in) if expires_in else None

    async def use(services: Services, caller: Principal) -> NewKey:
        return await services.keys.create(
            caller, kind=kind, name=name, user=user, scopes=scope or (), lifetime=lifetime
        )

    new = run_beside(database, config, tenant, use, creates=True)
    if as_json:
        return output.emit({**_row(new.key), "secret": new.secret})
    output.say(new.secret)
    output.say(f"key {new.key.id}, shown this once; send it as x-api-key or as a bearer token", to_stderr=True)


def list_keys(
    tenant: Tenant = TENANT, config: Config = None, database: Database = None, as_json: AsJson = False
) -> None:
    """List the keys of a tenant, newest first."""

    async def use(services: Services, caller: Principal) -> list[ApiKey]:
        return (await services.keys.list(caller, limit=LARGEST_PAGE)).items

    rows = [_row(key) for key in run_beside(database, config, tenant, use)]
    if as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No keys yet. Make one: assent keys create NAME --kind agent")


def revoke(
    key_id: Annotated[str, typer.Argument(help="The id that `assent keys list` shows.")],
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Revoke a key; every server refuses it within a second."""

    async def use(services: Services, caller: Principal) -> ApiKey:
        return await services.keys.revoke(caller, key_id)

    key = run_beside(database, config, tenant, use)
    output.say(f"revoked {key.name} ({key.id})")


def _row(key: ApiKey) -> dict[str, Any]:
    named = {"id": key.id, "kind": key.kind.value, "name": key.name, "user": key.owner, "scopes": sorted(key.scopes)}
    return named | {at: getattr(key, at) for at in ("created_at", "expires_at", "last_used_at", "revoked_at")}
