"""`assent deployments`: other servers whose questions this inbox lists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer

from assent.app import Services
from assent.errors import Invalid
from assent.federation.deployments import Rotated, Wanted
from assent.federation.webhooks import path_of
from assent.identity.model.access import Principal
from assent.surfaces.cli import output
from assent.surfaces.cli.options import TENANT, AsJson, Config, Database, Tenant, address, run_beside, settings
from assent.threads.model.deployments import Deployment

Named = Annotated[str, typer.Argument(help="The name or the id that `assent deployments list` shows.")]
Key = Annotated[
    str | None,
    typer.Option(help="The API key of the deployment.", envvar="LANGGRAPH_API_KEY", show_envvar=True),
]
OwnUrl = Annotated[
    str | None, typer.Option("--url", help="This server's address, if not public_url or its host and port.")
]
Header = Annotated[list[str] | None, typer.Option(help="An extra header, as NAME=VALUE; repeatable.")]
Graph = Annotated[list[str] | None, typer.Option(help="A graph or assistant to follow; repeatable. All by default.")]
_COLUMNS = ["id", "name", "url", "state", "synced_at", "graphs", "message"]
T = TypeVar("T")
Act = Callable[[Services, Principal, str], Awaitable[T]]


def commands() -> typer.Typer:
    app = typer.Typer(no_args_is_help=True)
    app.command()(add)
    app.command("list")(list_deployments)
    app.command()(check)
    app.command()(rotate)
    app.command()(pause)
    app.command()(resume)
    app.command()(remove)
    app.command()(webhook)
    return app


def add(
    url: Annotated[str, typer.Argument(help="The address of the deployment.")],
    name: Annotated[str | None, typer.Option(help="Its name in the inbox; the host by default.")] = None,
    key: Key = None,
    header: Header = None,
    graph: Graph = None,
    stringify_args: Annotated[bool, typer.Option("--stringify-args", help="Send arguments as texts.")] = False,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Add a deployment and check the connection."""
    wanted = Wanted(name or "", url, key, _headers(header or []), graph or (), stringify_args)

    async def use(services: Services, caller: Principal) -> Deployment:
        return await services.deployments.add(caller, wanted)

    _show(run_beside(database, config, tenant, use, creates=True), as_json)


def list_deployments(
    tenant: Tenant = TENANT, config: Config = None, database: Database = None, as_json: AsJson = False
) -> None:
    """List the deployments with the state of their sync."""

    async def use(services: Services, caller: Principal) -> list[Deployment]:
        return await services.deployments.list(caller)

    rows = [_row(deployment) for deployment in run_beside(database, config, tenant, use)]
    if as_json:
        return output.emit(rows)
    output.table(rows, _COLUMNS, empty="No deployments yet. Add one: assent deployments add URL")


def check(
    deployment: Named,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Check the connection to a deployment; exits with 1 if it has a problem."""

    async def act(services: Services, caller: Principal, deployment_id: str) -> Deployment:
        return await services.deployments.check(caller, deployment_id)

    _show(_on(deployment, tenant, config, database, act), as_json)


def rotate(
    deployment: Named,
    key: Key = None,
    without_key: Annotated[bool, typer.Option("--no-key", help="The deployment needs no key.")] = False,
    url: OwnUrl = None,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Replace the key of a deployment, and the address of its webhook if it has one."""
    if key is None and not without_key:
        raise typer.BadParameter("use --key or --no-key")

    async def act(services: Services, caller: Principal, deployment_id: str) -> Rotated:
        return await services.deployments.rotate(caller, deployment_id, None if without_key else key)

    rotated = _on(deployment, tenant, config, database, act)
    webhook_url = None if rotated.webhook is None else _webhook_url(rotated.webhook, url, config, database)
    if webhook_url is not None and not as_json:
        output.say(f"webhook: {webhook_url}")
    _show(rotated.deployment, as_json, **({"webhook_url": webhook_url} if webhook_url else {}))


def pause(deployment: Named, tenant: Tenant = TENANT, config: Config = None, database: Database = None) -> None:
    """Stop following a deployment; its items stay."""

    async def act(services: Services, caller: Principal, deployment_id: str) -> Deployment:
        return await services.deployments.pause(caller, deployment_id)

    output.say(f"paused {_on(deployment, tenant, config, database, act).name}")


def resume(deployment: Named, tenant: Tenant = TENANT, config: Config = None, database: Database = None) -> None:
    """Follow a paused deployment again."""

    async def act(services: Services, caller: Principal, deployment_id: str) -> Deployment:
        return await services.deployments.pause(caller, deployment_id, paused=False)

    output.say(f"resumed {_on(deployment, tenant, config, database, act).name}")


def remove(deployment: Named, tenant: Tenant = TENANT, config: Config = None, database: Database = None) -> None:
    """Remove a deployment here and close its open items."""

    async def act(services: Services, caller: Principal, deployment_id: str) -> Deployment:
        return await services.deployments.remove(caller, deployment_id)

    output.say(f"removed {_on(deployment, tenant, config, database, act).name}")


def webhook(
    deployment: Named,
    no_webhook: Annotated[bool, typer.Option("--remove", help="Remove the webhook.")] = False,
    url: OwnUrl = None,
    tenant: Tenant = TENANT,
    config: Config = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make the address at which a deployment announces changes. It is shown once, and replaces the one before."""

    async def create(services: Services, caller: Principal, deployment_id: str) -> str:
        return await services.deployment_webhooks.create(caller, deployment_id)

    async def take_away(services: Services, caller: Principal, deployment_id: str) -> Deployment:
        return await services.deployment_webhooks.remove(caller, deployment_id)

    if no_webhook:
        name = _on(deployment, tenant, config, database, take_away).name
        return output.emit({"url": None}) if as_json else output.say(f"removed the webhook of {name}")
    webhook_url = _webhook_url(_on(deployment, tenant, config, database, create), url, config, database)
    if as_json:
        output.emit({"url": webhook_url})
    else:
        output.say(webhook_url)


def _webhook_url(secret: str, url: str | None, config: Any, database: str | None) -> str:
    conf = settings(config=config, database=database)
    return (url or conf.public_url or address(conf)).rstrip("/") + path_of(secret)


def _on(named: str, tenant: str, config: Any, database: str | None, act: Act[T]) -> T:
    async def use(services: Services, caller: Principal) -> T:
        known = await services.deployments.list(caller)
        chosen = next((deployment.id for deployment in known if named in (deployment.id, deployment.name)), named)
        return await act(services, caller, chosen)

    return run_beside(database, config, tenant, use)


def _headers(given: list[str]) -> dict[str, str]:
    pairs = [header.partition("=") for header in given]
    if any(not separator for _, separator, _ in pairs):
        raise Invalid("a header is given as NAME=VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _show(deployment: Deployment, as_json: bool, **more: Any) -> None:
    if as_json:
        output.emit({**_row(deployment), **more})
    else:
        output.say(f"{deployment.name} ({deployment.id}): {deployment.state}")
        if deployment.problem is not None:
            output.say(f"{deployment.message}\n  {deployment.problem.advice}", to_stderr=True)
            output.say(f"  see {deployment.problem.page}, or /inbox/help on the server", to_stderr=True)
    if deployment.problem is not None:
        raise typer.Exit(1)


def _row(deployment: Deployment) -> dict[str, Any]:
    named = {"id": deployment.id, "name": deployment.name, "url": deployment.url, "graphs": list(deployment.graphs)}
    webhook = {"has_webhook": deployment.has_webhook, "called_at": deployment.called_at}
    facts = {"state": deployment.state, "message": deployment.message, "synced_at": deployment.synced_at}
    return {**named, **facts, "problem": deployment.problem, "paused": deployment.paused, **webhook}
