"""`assent worker`: executes runs for servers on the same Postgres, as many of them as it takes."""

from __future__ import annotations

import asyncio
import signal

import typer
from sqlalchemy import make_url

from assent import secret_key
from assent.app import load_project, open_engine, open_services
from assent.cli import collector, output
from assent.cli.options import Config, Database, settings
from assent.cli.serve import served, shown
from assent.engine.loader import LoadedGraphs
from assent.errors import ConfigError
from assent.settings import Mode, Settings


def add_to(app: typer.Typer) -> None:
    app.command()(worker)


def worker(config: Config = None, database: Database = None) -> None:
    """Execute runs for servers on the same Postgres."""
    import uvloop

    found = settings(mode=Mode.SERVE, config=config, database=database, run_in_server=True)
    if make_url(found.database).get_backend_name() == "sqlite":
        raise ConfigError(
            "a worker needs Postgres: on SQLite the server executes runs itself", hint="--database postgresql://…"
        )
    collector.starting()
    graphs = load_project(found)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(found, graphs))


async def _work(found: Settings, graphs: LoadedGraphs) -> None:
    """Until it is asked to stop. Then runs may come to their end for a while, and the rest goes to other workers."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    secret_key.load(found)  # where there is none, the start is refused, not the first webhook
    async with open_services(found) as services, open_engine(services.store, graphs, found):
        lines = {"serving": served(found, graphs), "data": shown(found), "at once": str(found.run_concurrency)}
        output.say("\nAssent worker\n" + "\n".join(f"  {name:<13}{value}" for name, value in lines.items()) + "\n")
        collector.started()
        await stopped.wait()
        output.say("stopping: runs under way may end, the rest goes to other workers")
