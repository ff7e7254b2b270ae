"""`assent keys`: create, list, rotate and revoke API keys, directly on the database."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from assent.app import Services
from assent.identity.keys import NewKey
from assent.identity.model.access import Kind, Principal
from assent.identity.model.keys import ApiKey, Lifetime
from assent.kernel.store.paging import LARGEST_PAGE
from assent.settings import parse_duration
from assent.surfaces.cli import output
from assent.surfaces.cli.options import TENANT, AsJson, Config, Database, Tenant, run_beside

ExpiresIn = Annotated[str | None, typer.Option(help="Such as 12h or 90d; by default the setting key_lifetime.")]
NoExpiry = Annotated[bool, typer.Option("--no-expiry", help="The key works until it is revoked.")]
_COLUMNS = ["id", "kind", "name", "agent", "user", "scopes", "state", "expires_at", "last_used_at", "revoked_at"]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command()(create)
    app.command("list")(list_keys)
    app.command()(rotate)
    app.command()(revoke)
    return app


def create(
    name: Annotated[str | None, typer.Argument(help="The name of the agent, service or purpose.")] = None,
    kind: Annotated[Kind, typer.Option(help="The kind of principal.")] = Kind.AGENT,
    user: Annotated[str | None, typer.Option(help="The owner of a reviewer key.")] = None,
    agent: Annotated[str | None, typer.Option(help="The agent that gets an additional key, by id or name.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="A scope of the key; repeatable.")] = None,
    expires_in: ExpiresIn = None,
    no_expiry: NoExpiry = False,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Create a key and print its secret, once."""
    lifetime = _lifetime(expires_in, no_expiry)

    async def use(services: Services, caller: Principal) -> NewKey:
        return await services.keys.create(
            caller, kind=kind, name=name, user=user, agent=agent, scopes=scope or (), lifetime=lifetime
        )

    new = run_beside(database, config, tenant, use, creates=True)
    if as_json:
        return output.emit({**_row(new.key), "secret": new.secret})
    _show(new)


def list_keys(
    tenant: Tenant = TENANT, config: Config = None, database: Database = None, as_json: AsJson = False
) -> None:
    """List the keys of a tenant, newest first."""

    async def use(services: Services, caller: Principal) -> list[ApiKey]:
        return (await services.keys.list(caller, limit=LARGEST_PAGE)).items

    rows = [_row(key) for key in run_beside(database, config, tenant, use)]
    if as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No keys yet. Create one: assent keys create NAME --kind agent")


def rotate(
    key_id: Annotated[str, typer.Argument(help="The id that `assent keys list` shows.")],
    overlap: Annotated[str, typer.Option(help="How long the old key still works.")] = "24h",
    expires_in: ExpiresIn = None,
    no_expiry: NoExpiry = False,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Create a key that replaces another and print its secret, once."""
    lifetime = _lifetime(expires_in, no_expiry)

    async def use(services: Services, caller: Principal) -> NewKey:
        return await services.keys.rotate(caller, key_id, overlap=parse_duration(overlap), lifetime=lifetime)

    new = run_beside(database, config, tenant, use)
    if as_json:
        return output.emit({**_row(new.key), "secret": new.secret})
    _show(new)


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


def _lifetime(expires_in: str | None, no_expiry: bool) -> timedelta | Lifetime | None:
    if expires_in and no_expiry:
        raise typer.BadParameter("use --expires-in or --no-expiry, not both")
    if no_expiry:
        return None
    return parse_duration(expires_in) if expires_in else Lifetime.USUAL


def _show(new: NewKey) -> None:
    output.say(new.secret)
    until = (
        f"works until {new.key.expires_at:%Y-%m-%d %H:%M} UTC" if new.key.expires_at else "works until it is revoked"
    )
    output.say(f"key {new.key.id}, shown this once, {until}; send it as x-api-key or as a bearer token", to_stderr=True)


def _row(key: ApiKey) -> dict[str, Any]:
    row = {"id": key.id, "kind": key.kind.value, "name": key.name, "user": key.owner, "scopes": sorted(key.scopes)}
    row |= {"agent": None if key.user_id else key.principal_id, "state": key.state.value}
    return row | {at: getattr(key, at) for at in ("created_at", "expires_at", "last_used_at", "revoked_at")}
