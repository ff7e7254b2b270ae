"""`assent users`: people, their roles and groups, and one-time sign-in links."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from assent.app import Services
from assent.identity.model.access import Principal, Role
from assent.identity.model.users import User
from assent.kernel.store.paging import LARGEST_PAGE
from assent.surfaces.cli import output
from assent.surfaces.cli.options import (
    TENANT,
    AsJson,
    Config,
    Database,
    Tenant,
    address,
    run_beside,
    run_with,
    settings,
)

_COLUMNS = ["name", "role", "groups", "email", "id", "created_at", "disabled_at"]
Name = Annotated[str, typer.Argument(help="The person's name, unique in the tenant.")]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command()(create)
    app.command("list")(list_users)
    app.command("set-role")(set_role)
    app.command("set-groups")(set_groups)
    app.command()(disable)
    app.command()(enable)
    app.command("login-link")(login_link)
    return app


def create(
    name: Name,
    role: Annotated[Role, typer.Option(help="The person's role.")] = Role.REVIEWER,
    email: Annotated[str | None, typer.Option(help="The email address; nothing is sent there yet.")] = None,
    group: Annotated[list[str] | None, typer.Option(help="A group that policies name; repeat for several.")] = None,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Add a person."""

    async def use(services: Services, caller: Principal) -> User:
        return await services.users.create(caller, name=name, role=role, email=email, groups=group or ())

    user = run_beside(database, config, tenant, use, creates=True)
    if as_json:
        return output.emit(_row(user))
    output.say(f"added {user.name} as {user.role}; sign them in with: assent users login-link {user.name}")


def list_users(
    tenant: Tenant = TENANT, config: Config = None, database: Database = None, as_json: AsJson = False
) -> None:
    """List the people of a tenant."""

    async def use(services: Services, caller: Principal) -> list[User]:
        return (await services.users.list(caller, limit=LARGEST_PAGE)).items

    rows = [_row(user) for user in run_beside(database, config, tenant, use)]
    if as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No users yet. Add one: assent users create NAME --role admin")


def set_role(
    name: Name,
    role: Annotated[Role, typer.Argument(help="The new role.")],
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Change a person's role, effective from the next request."""
    _change(name, tenant, config, database, role=role)
    output.say(f"{name} is now {role}")


def set_groups(
    name: Name,
    groups: Annotated[list[str] | None, typer.Argument(help="The complete new list of groups.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Remove the person from all groups.")] = False,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Set a person's groups; policies name groups that may decide."""
    if bool(groups) == none:
        raise typer.BadParameter("name the groups, or use --none")
    user = _change(name, tenant, config, database, groups=groups or ())
    output.say(f"{name} is now in {', '.join(sorted(user.groups)) or 'no group'}")


def disable(name: Name, tenant: Tenant = TENANT, config: Config = None, database: Database = None) -> None:
    """Sign a person out everywhere and refuse their keys."""
    _change(name, tenant, config, database, disabled=True)
    output.say(f"disabled {name}")


def enable(name: Name, tenant: Tenant = TENANT, config: Config = None, database: Database = None) -> None:
    """Let a disabled person sign in again."""
    _change(name, tenant, config, database, disabled=False)
    output.say(f"enabled {name}")


def login_link(
    name: Name,
    url: Annotated[
        str | None, typer.Option(help="The server's address, if not public_url or its host and port.")
    ] = None,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
) -> None:
    """Print a link that signs a person in once, within 15 minutes."""

    async def use(services: Services, caller: Principal) -> str:
        return await services.users.login_link(caller, name)

    conf = settings(config=config, database=database)
    token = run_with(conf, tenant, use)
    output.say(f"{(url or conf.public_url or address(conf)).rstrip('/')}/login#{token}")


def _change(name: str, tenant: str, config: Any, database: str | None, **change: Any) -> User:
    async def use(services: Services, caller: Principal) -> User:
        return await services.users.change(caller, name, **change)

    return run_beside(database, config, tenant, use)


def _row(user: User) -> dict[str, Any]:
    facts = {column: getattr(user, column) for column in _COLUMNS}
    return facts | {"role": user.role.value, "groups": sorted(user.groups)}
