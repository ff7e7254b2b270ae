"""`assent worker`: executes runs for servers on the same Postgres. Any number of workers can run."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack

import typer
from sqlalchemy import make_url

from assent import secret_key
from assent.app import load_project, open_engine, open_services
from assent.errors import ConfigError
from assent.runs.project.loader import LoadedGraphs
from assent.settings import Mode, Settings
from assent.surfaces import extensions
from assent.surfaces.cli import output
from assent.surfaces.cli.options import Config, Database, settings
from assent.surfaces.cli.server import collector
from assent.surfaces.cli.server.serve import served, shown


def add_to(app: typer.Typer) -> None:
    app.command()(worker)


def worker(config: Config = None, database: Database = None) -> None:
    """Execute runs for servers on the same Postgres."""
    import uvloop

    conf = settings(mode=Mode.SERVE, config=config, database=database, run_in_server=True)
    if make_url(conf.database).get_backend_name() == "sqlite":
        raise ConfigError(
            "a worker needs Postgres: on SQLite the server executes runs itself", hint="--database postgresql://…"
        )
    collector.starting()
    graphs = load_project(conf)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(conf, graphs))


async def _work(conf: Settings, graphs: LoadedGraphs) -> None:
    """Works until a signal stops it. Active runs then have some time to end; other workers take over the rest."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    secret_key.load(conf)  # fail at the start rather than at the first webhook
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(conf))
        extensions.prepare(services, conf)
        stack.push_async_callback(extensions.close)
        await stack.enter_async_context(open_engine(services.store, graphs, conf))
        lines = {"serving": served(conf, graphs), "data": shown(conf), "at once": str(conf.run_concurrency)}
        output.say("\nAssent worker\n" + "\n".join(f"  {name:<13}{value}" for name, value in lines.items()) + "\n")
        collector.started()
        await stopped.wait()
        output.say("stopping: active runs may end, other workers take over the rest")
