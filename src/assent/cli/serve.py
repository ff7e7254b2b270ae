"""`assent dev`, `demo` and `serve`: the commands that stay and answer. `worker.py` has the one that only works."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import typer

from assent import secret_key
from assent.app import Engine, Services, load_project, open_engine, open_services
from assent.cli import collector, output
from assent.cli.options import Config, Database, Host, Port, address, settings
from assent.demo import examples
from assent.engine.loader import LoadedGraphs
from assent.errors import AssentError, UnsafeStart
from assent.services.onboarding import Welcome
from assent.settings import Mode, Settings

_PRUNE_EVERY_MINUTES = 60

log = logging.getLogger(__name__)


def add_to(app: typer.Typer) -> None:
    app.command()(dev)
    app.command()(demo)
    app.command()(serve)


def dev(config: Config = None, host: Host = None, port: Port = None, database: Database = None) -> None:
    """Serve the graphs of a langgraph.json on this machine, without keys for callers on loopback."""
    _start(settings(mode=Mode.DEV, config=config, host=host, port=port, database=database))


def demo(host: Host = None, port: Port = None, database: Database = None) -> None:
    """Everything on SQLite, with something to decide. Needs no key and no other service."""
    _start(settings(mode=Mode.DEMO, host=host, port=port, database=database))


def serve(config: Config = None, host: Host = None, port: Port = None, database: Database = None) -> None:
    """Serve in production: every call needs a credential."""
    _start(settings(mode=Mode.SERVE, config=config, host=host, port=port, database=database))


def _start(found: Settings) -> None:
    import uvloop

    collector.starting()
    graphs = load_project(found)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(found, graphs))


async def _serve(found: Settings, graphs: LoadedGraphs) -> None:
    from assent.cli import server
    from assent.http import custom_routes

    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(found))
        await _refuse_open_door(services, found, graphs)
        secret_key.load(found)  # where there is none, the start is refused, not the first webhook
        engine = await stack.enter_async_context(open_engine(services.store, graphs, found))
        await stack.enter_async_context(custom_routes.lifespan(graphs.app))
        listener = server.bind(found)  # before the welcome, whose keys are shown once and would be lost
        welcome = Welcome(None) if found.mode is Mode.SERVE else await services.onboarding.welcome()
        if found.mode is Mode.DEMO:
            await examples.prepare(
                engine.threads, engine.runs, engine.inbox, graphs=graphs.graphs, assistant=found.assistant
            )
        tidying = asyncio.create_task(_tidy(services, engine))
        _announce(found, graphs, listener.getsockname()[1], welcome)
        from assent.surfaces import create_app  # slow to import

        app = create_app(services, engine, found)
        collector.started()
        await server.make(app, found).serve(sockets=[listener])
        tidying.cancel()


async def _refuse_open_door(services: Services, found: Settings, graphs: LoadedGraphs) -> None:
    needs_auth = graphs.auth is None and (found.mode is Mode.SERVE or not found.on_loopback)
    if needs_auth and not await services.access.configured():
        raise UnsafeStart(
            f"refused to start on {found.host}: nobody could sign in, because there is no user and no key",
            hint=f"create an administrator first: assent users create NAME --role admin --database {shown(found)}",
        )


async def _tidy(services: Services, engine: Engine) -> None:
    """Threads go when their time is over, the rest when it is past its retention, which nobody waits for."""
    for minute in count():
        try:
            await engine.threads.delete_expired()
            if minute % _PRUNE_EVERY_MINUTES == 0:
                await services.retention.prune()
        except AssentError as error:
            log.warning("tidying up has to wait", extra={"reason": error.message})
        await asyncio.sleep(60)


def _announce(found: Settings, graphs: LoadedGraphs, port: int, welcome: Welcome) -> None:
    url = address(found, port)
    lines = {"listening": f"{url} on {found.host}" if found.host not in url else url}
    lines |= {"serving": served(found, graphs), "data": shown(found)}
    lines["sign in"] = f"{url}/login#{welcome.login_token}" if welcome.login_token else "assent users login-link NAME"
    if welcome.agent_key:
        lines |= {"agent key": welcome.agent_key, "reviewer key": f"{welcome.reviewer_key}  (both shown this once)"}
    if found.mode is Mode.DEMO:
        lines |= _to_try(found, graphs, url)
    output.say(f"\nAssent {found.mode}\n" + "\n".join(f"  {name:<13}{value}" for name, value in lines.items()) + "\n")


def _to_try(found: Settings, graphs: LoadedGraphs, url: str) -> dict[str, str]:
    """How to make more to decide: by talking to the assistant, or, where that is not there, by a run."""
    if found.assistant and found.assistant in graphs.graphs:
        body = {"thread_id": "mine", "user_request": examples.WISH}
        return {"try": _curl(f"{url}/run", body), "talk": f"assent chat --url {url} --thread {examples.TALK}"}
    if examples.DRAFTS in graphs.graphs:
        return {"try": _curl(f"{url}/runs", {"assistant_id": examples.DRAFTS, "input": {"to": "you@example.com"}})}
    return {}


def _curl(url: str, body: dict[str, Any]) -> str:
    return f"curl {url} -H 'content-type: application/json' -d '{json.dumps(body)}'"


def served(found: Settings, graphs: LoadedGraphs) -> str:
    if not found.config.exists():
        return f"no graphs: there is no {found.config} here"
    failed = f"; not loaded, see above: {', '.join(graphs.failures)}" if graphs.failures else ""
    return f"{', '.join(graphs.graphs) or 'no graphs'} from {found.config}{failed}"


def shown(found: Settings) -> str:
    return found.database_shown
