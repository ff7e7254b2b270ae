"""`assent dev` and `assent serve`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Protocol

import typer

from assent import audit_key, secret_key
from assent.app import Engine, Services, load_project, open_engine, open_services
from assent.errors import ConfigError, LoadError, UnsafeStart
from assent.identity.onboarding import Welcome
from assent.kernel import model_builds
from assent.kernel.background import Repeating, every
from assent.runs.project.loader import LoadedGraphs
from assent.settings import Mode, Settings
from assent.surfaces import extensions
from assent.surfaces.cli import output
from assent.surfaces.cli.options import Config, Database, Host, Port, address, settings
from assent.surfaces.cli.server import collector
from assent.surfaces.cli.server.origins import AllowOrigin, allowing
from assent.surfaces.cli.server.reload import OPTION, Reload, summary

NoReload = Annotated[bool, typer.Option("--no-reload", help="Do not reload when files of the project change.")]
Reloaded = Annotated[str | None, typer.Option(OPTION, hidden=True)]
_PATIENCE = timedelta(seconds=5)
_MINUTE = 60.0

log = logging.getLogger(__name__)


class Demonstration(Protocol):
    """Example items at the first start, and commands that make more."""

    async def prepare(self, services: Services, engine: Engine, settings: Settings) -> None: ...

    def to_try(self, settings: Settings, graphs: LoadedGraphs, url: str) -> dict[str, str]: ...


def add_to(app: typer.Typer) -> None:
    app.command()(dev)
    app.command()(serve)


def dev(
    config: Config = None,
    host: Host = None,
    port: Port = None,
    database: Database = None,
    allow_origin: AllowOrigin = None,
    no_reload: NoReload = False,
    reloaded: Reloaded = None,
) -> None:
    """Serve the graphs of a langgraph.json on this machine; callers on loopback need no key."""
    conf = settings(mode=Mode.DEV, config=config, host=host, port=port, database=database)
    conf = allowing(conf, allow_origin)
    if no_reload or conf.in_memory:  # a new process would lose the data in memory
        return start(conf)
    with Reload(conf.config, reloaded) as reload:
        start(_with_short_patience(conf), reload)


def serve(config: Config = None, host: Host = None, port: Port = None, database: Database = None) -> None:
    """Serve in production: every call needs a credential."""
    start(settings(mode=Mode.SERVE, config=config, host=host, port=port, database=database))


def _with_short_patience(conf: Settings) -> Settings:
    """A reload should not wait long for runs of the old code."""
    return conf if "run_patience" in conf.model_fields_set else conf.model_copy(update={"run_patience": _PATIENCE})


def start(conf: Settings, reload: Reload | None = None, demonstration: Demonstration | None = None) -> None:
    collector.starting()
    reload = reload or Reload(conf.config)  # it watches only once it is entered
    try:
        _run(_serve(conf, load_project(conf), reload, demonstration))
    except ConfigError as error:
        if reload.is_first_start:
            raise
        _run(_serve_failure(conf, error, reload))


def _run(serving: Coroutine[Any, Any, None]) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serving)


async def _serve_failure(conf: Settings, error: ConfigError, reload: Reload) -> None:
    """After a reload: answers every request with the load error, until a file changes."""
    from assent.surfaces.cli.server import server
    from assent.surfaces.routes import failed_app

    place, reason = _failure(error)
    output.say(f"{place} failed to load: {reason}")
    app = failed_app(conf, place, reason)
    collector.started()
    await reload.serve(server.make(app, conf), reload.listen(partial(server.bind, conf)))
    reload.restart_if_due()


async def _serve(conf: Settings, graphs: LoadedGraphs, reload: Reload, demonstration: Demonstration | None) -> None:
    with model_builds.deferred():  # slow to import
        from assent.surfaces.cli.server import server
        from assent.surfaces.http import custom_routes
        from assent.surfaces.routes import create_app

    reload.hold()
    extensions.check(conf)
    async with AsyncExitStack() as stack:
        services = await stack.enter_async_context(open_services(conf))
        await _require_credentials(services, conf, graphs)
        secret_key.load(conf)  # fail at the start rather than at the first webhook
        audit_key.check(conf)
        stack.push_async_callback(extensions.close)
        engine = await stack.enter_async_context(open_engine(services.store, graphs, conf))
        await stack.enter_async_context(custom_routes.lifespan(graphs.app))
        # before the welcome: its keys are shown once and would be lost if the port is in use
        listener = reload.listen(partial(server.bind, conf))
        welcome = await services.onboarding.welcome() if _shows_welcome(conf, reload) else Welcome(None)
        if demonstration is not None:
            await demonstration.prepare(services, engine, conf)
        for task in _housekeeping(services, engine):
            task.start()
            stack.push_async_callback(task.stop)
        if reload.is_first_start:
            _announce(conf, graphs, listener.getsockname()[1], welcome, demonstration)
        else:
            _report_reload(graphs, reload)
        app = create_app(services, engine, conf)
        collector.started()
        await reload.serve(server.make(app, conf, partial(_leave, engine)), listener)
    reload.restart_if_due()


async def _leave(engine: Engine) -> None:
    """Disconnects clients whose streams would not end by themselves."""
    await engine.live.close()
    await engine.events.close()


def _shows_welcome(conf: Settings, reload: Reload) -> bool:
    return conf.mode is not Mode.SERVE and reload.is_first_start


def _report_reload(graphs: LoadedGraphs, reload: Reload) -> None:
    for failure in dict.fromkeys(map(_failure, graphs.failures.values())):
        output.say("{} failed to load: {}".format(*failure))
    if not graphs.failures:
        output.say(f"reloaded after {summary(reload.after)} changed")


def _failure(error: ConfigError) -> tuple[str, str]:
    """Where loading failed, and why."""
    return (error.place, error.reason) if isinstance(error, LoadError) else ("langgraph.json", error.message)


async def _require_credentials(services: Services, conf: Settings, graphs: LoadedGraphs) -> None:
    needs_auth = graphs.auth is None and (conf.mode is Mode.SERVE or not conf.on_loopback)
    if needs_auth and not await services.access.configured():
        raise UnsafeStart(
            f"refused to start on {conf.host}: nobody can sign in, because there is no user and no key",
            hint=f"create an administrator first: assent users create NAME --role admin --database {shown(conf)}",
        )


def _housekeeping(services: Services, engine: Engine) -> list[Repeating]:
    sweep = engine.threads.sweep.every_minutes
    return [
        Repeating("expiry of threads", every(sweep * _MINUTE, engine.threads.delete_expired)),
        Repeating("count for quotas", every(10 * _MINUTE, services.usage.refresh)),
        Repeating("retention", every(60 * _MINUTE, services.retention.prune)),
    ]


def _announce(
    conf: Settings, graphs: LoadedGraphs, port: int, welcome: Welcome, demonstration: Demonstration | None
) -> None:
    url = address(conf, port)
    lines = {"listening": f"{url} on {conf.host}" if conf.host not in url else url}
    lines |= {"serving": served(conf, graphs), "data": shown(conf)}
    lines["sign in"] = f"{url}/login#{welcome.login_token}" if welcome.login_token else "assent users login-link NAME"
    if welcome.agent_key:
        lines |= {"agent key": welcome.agent_key, "reviewer key": f"{welcome.reviewer_key}  (both shown this once)"}
    if conf.mode is Mode.DEV and conf.cors_origins:
        lines["may call"] = f"{', '.join(conf.cors_origins)}, with the agent key; with the reviewer key also to decide"
    if demonstration is not None:
        lines |= demonstration.to_try(conf, graphs, url)
    output.say(f"\nAssent {conf.mode}\n" + "\n".join(f"  {name:<13}{value}" for name, value in lines.items()) + "\n")


def served(conf: Settings, graphs: LoadedGraphs) -> str:
    if not conf.config.exists():
        return f"no graphs: {conf.config} does not exist"
    failed = f"; not loaded, see above: {', '.join(graphs.failures)}" if graphs.failures else ""
    return f"{', '.join(graphs.graphs) or 'no graphs'} from {conf.config}{failed}"


def shown(conf: Settings) -> str:
    return conf.database_shown
