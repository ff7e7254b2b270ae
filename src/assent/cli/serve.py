"""`assent dev`, `demo`, `serve` and `worker`: the commands that stay."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import typer
from sqlalchemy import make_url

from assent.app import Services, create_app, open_services
from assent.cli import output
from assent.cli.options import Config, Database, Host, Port, settings
from assent.errors import ConfigError, UnsafeStart
from assent.services.onboarding import Welcome
from assent.settings import Mode, Settings

if TYPE_CHECKING:
    import uvicorn

_PRUNE_EVERY_SECONDS = 3600


def add_to(app: typer.Typer) -> None:
    app.command()(dev)
    app.command()(demo)
    app.command()(serve)
    app.command()(worker)


def dev(config: Config = None, host: Host = None, port: Port = None, database: Database = None) -> None:
    """Serve the graphs of a langgraph.json on this machine, without keys for callers on loopback."""
    _start(settings(mode=Mode.DEV, config=config, host=host, port=port, database=database))


def demo(host: Host = None, port: Port = 8002, database: Database = None) -> None:
    """Everything on SQLite, with something to decide. Needs no key and no other service."""
    _start(settings(mode=Mode.DEMO, host=host, port=port, database=database))


def serve(config: Config = None, host: Host = None, port: Port = None, database: Database = None) -> None:
    """Serve in production: every call needs a credential."""
    _start(settings(mode=Mode.SERVE, config=config, host=host, port=port, database=database))


def worker(config: Config = None, database: Database = None) -> None:
    """Execute runs for servers on the same Postgres."""
    found = settings(mode=Mode.SERVE, config=config, database=database)
    if make_url(found.database).get_backend_name() == "sqlite":
        raise ConfigError(
            "a worker needs Postgres: on SQLite the server executes runs itself", hint="--database postgresql://…"
        )
    raise ConfigError("this version executes no runs yet, so a worker has nothing to do")


def _start(found: Settings) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(found))


async def _serve(found: Settings) -> None:
    async with open_services(found) as services:
        await _refuse_open_door(services, found)
        welcome = Welcome(None) if found.mode is Mode.SERVE else await services.onboarding.welcome()
        listener = _bind(found)
        server = _server(services, found)
        pruning = asyncio.create_task(_prune_hourly(services))
        _announce(found, listener.getsockname()[1], welcome)
        await server.serve(sockets=[listener])
        pruning.cancel()


async def _refuse_open_door(services: Services, found: Settings) -> None:
    needs_auth = found.mode is Mode.SERVE or not found.on_loopback
    if needs_auth and not await services.access.configured():
        raise UnsafeStart(
            f"refused to start on {found.host}: nobody could sign in, because there is no user and no key",
            hint=f"create an administrator first: assent users create NAME --role admin --database {_shown(found)}",
        )


def _bind(found: Settings) -> socket.socket:
    """Bound here rather than by the server, so that a taken port is one clear line."""
    family = socket.AF_INET6 if ":" in found.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((found.host, found.port))
    except OSError as error:
        listener.close()
        reason = error.strerror or str(error)
        raise ConfigError(
            f"cannot listen on {found.host}:{found.port}: {reason}", hint="choose another --port"
        ) from None
    return listener


def _server(services: Services, found: Settings) -> uvicorn.Server:
    import uvicorn

    config = uvicorn.Config(
        create_app(services, found),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=bool(found.trusted_proxies),
        forwarded_allow_ips=list(found.trusted_proxies),
        timeout_graceful_shutdown=20,
    )
    return uvicorn.Server(config)


async def _prune_hourly(services: Services) -> None:
    while True:
        await services.retention.prune()
        await asyncio.sleep(_PRUNE_EVERY_SECONDS)


def _announce(found: Settings, port: int, welcome: Welcome) -> None:
    host = f"[{found.host}]" if ":" in found.host else found.host
    url = f"http://{host}:{port}"
    lines = {"listening": url, "serving": _served(found), "data": _shown(found)}
    if welcome.login_token:
        lines["sign in"] = f"{url}/login#{welcome.login_token}"
    if welcome.agent_key:
        lines |= {"agent key": welcome.agent_key, "reviewer key": f"{welcome.reviewer_key}  (both shown this once)"}
    output.say(f"\nAssent {found.mode}\n" + "\n".join(f"  {name:<13}{value}" for name, value in lines.items()) + "\n")


def _served(found: Settings) -> str:
    return str(found.config) if found.config.exists() else f"no graphs: there is no {found.config} here"


def _shown(found: Settings) -> str:
    return make_url(found.database).render_as_string(hide_password=True)
