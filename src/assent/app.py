"""The composition root: Settings → store → services → ASGI app. The only module that knows concrete classes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import make_url

from assent import secret_key
from assent.bus.memory import MemoryBus
from assent.domain.access import DEFAULT_TENANT, Principal
from assent.domain.deliveries import RESUME, WEBHOOK
from assent.domain.policies import ADVISE_ALL, ASK_ALL, Policy
from assent.engine.loader import LoadedGraphs, load_app, load_auth, load_graphs, load_webhook_rules
from assent.engine.manifest import read_manifest
from assent.engine.project import Project
from assent.engine.queues.embedded import EmbeddedQueue
from assent.engine.runner import Runner
from assent.notify.sender import Carry, Sender
from assent.notify.targets import Targets
from assent.ports import Bus, Queue, Store
from assent.services.access import Access
from assent.services.assistant import Assistant, LocalPerson
from assent.services.assistants import Assistants
from assent.services.audit import Audit
from assent.services.deadlines import Deadlines
from assent.services.deliveries import Deliveries
from assent.services.deployments import Deployments
from assent.services.inbox import Inbox
from assent.services.inboxes import Inboxes
from assent.services.insights import Insights
from assent.services.keys import Keys
from assent.services.live import Live
from assent.services.metrics import Metrics, Workers
from assent.services.news import News
from assent.services.onboarding import Onboarding
from assent.services.policies import BUILT_IN, FILE, Policies, read
from assent.services.resuming import Resumption
from assent.services.retention import Retention
from assent.services.runs import Runs
from assent.services.thread_access import ThreadAccess
from assent.services.threads import Threads
from assent.services.users import Users
from assent.settings import Mode, Settings
from assent.store import migrations

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send

    from assent.notify.outbound import Outbound
    from assent.services.custom_auth import CustomAuth


@dataclass(frozen=True, slots=True)
class Engine:
    """What executes graphs, and the use cases over it."""

    project: Project
    queue: Queue
    assistants: Assistants
    runs: Runs
    threads: Threads
    metrics: Metrics
    inbox: Inbox
    live: Live
    custom_auth: CustomAuth | None = None


@dataclass(frozen=True, slots=True)
class Services:
    """Every use case, over one store."""

    store: Store
    access: Access
    audit: Audit
    keys: Keys
    users: Users
    deliveries: Deliveries
    policies: Policies
    onboarding: Onboarding
    retention: Retention


def create_store(settings: Settings) -> Store:
    if _on_sqlite(settings):
        from assent.store.sqlite import SqliteStore

        return SqliteStore(settings.database)
    from assent.store.postgres import PostgresStore

    return PostgresStore(settings.database, connections=settings.database_connections)


def create_services(store: Store, settings: Settings) -> Services:
    access = Access(store, session_lifetime=settings.session_lifetime)
    audit, keys, users = Audit(store), Keys(store, changed=access.forget), Users(store, changed=access.forget)
    return Services(
        store=store,
        access=access,
        audit=audit,
        keys=keys,
        users=users,
        deliveries=Deliveries(store, secret=partial(secret_key.load, settings)),
        policies=Policies(store),
        onboarding=Onboarding(access, users, keys),
        retention=Retention(
            store,
            audit,
            event_payloads=settings.retention_event_payloads,
            deliveries=settings.retention_deliveries,
            frames=settings.retention_frames,
            items=settings.retention_items,
        ),
    )


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """An up-to-date database with the use cases over it, for as long as the block runs."""
    await asyncio.to_thread(migrations.upgrade, settings.database)
    store = create_store(settings)
    await store.open()
    try:
        yield create_services(store, settings)
    finally:
        await store.close()


def load_project(settings: Settings) -> LoadedGraphs:
    """Imports the author's graphs and auth file. Called before the event loop starts: they may do as they please.

    Without its auth file a server does not start."""
    if not settings.config.exists():
        return LoadedGraphs({}, {})
    manifest = read_manifest(settings.config)
    graphs = load_graphs(manifest, checkpoint_types=settings.checkpoint_types)
    return replace(
        graphs,
        webhooks=load_webhook_rules(manifest),
        auth=load_auth(manifest),
        app=load_app(manifest),
        prefix=manifest.http.mount_prefix,
    )


@asynccontextmanager
async def open_engine(store: Store, loaded: LoadedGraphs, settings: Settings) -> AsyncIterator[Engine]:
    """Executes runs for as long as the block runs; what is left then is handed back for the next start."""
    from assent.notify.outbound import Outbound  # slow to import, like what it stands on

    project, custom_auth = Project(loaded, store), _custom_auth(loaded)
    assistants = Assistants(store, project.graphs, custom_auth)
    bus, queue = _dispatch(store, project, settings)
    outbound = Outbound(Targets(settings.may_call, loaded.webhooks))
    news = News(store, bus)
    threads = Threads(store, project, on_state=news.edited, on_removal=news.removed, authorizer=custom_auth)
    sender = _sender(store, outbound, Resumption(store, threads.states.end), settings)
    inbox = Inbox(store, targets=outbound.targets, access=ThreadAccess(custom_auth))
    live, deadlines = Live(store, inbox), Deadlines(store)
    await bus.open()
    await queue.open()
    try:
        await Policies(store).provide(DEFAULT_TENANT, *policy_of(settings))
        await sender.open()
        await deadlines.open()
        live.open()
        runs = Runs(
            store,
            bus,
            assistants,
            default_strategy=settings.default_multitask_strategy,
            targets=outbound.targets,
            authorizer=custom_auth,
            read_outcome=threads.states.outcome,
            is_gated=project.is_gated,
        )
        executes = _on_sqlite(settings) or settings.run_in_server
        metrics = Metrics(store, (lambda: Workers(settings.run_concurrency, queue.active)) if executes else None)
        yield Engine(project, queue, assistants, runs, threads, metrics, inbox, live, custom_auth)
    finally:
        await live.close()
        await deadlines.close()
        await queue.close()
        await bus.close()
        await sender.close()
        await outbound.close()


def _custom_auth(loaded: LoadedGraphs) -> CustomAuth | None:
    if loaded.auth is None:
        return None
    from assent.services.custom_auth import CustomAuth

    return CustomAuth(loaded.auth)


def _dispatch(store: Store, project: Project, settings: Settings) -> tuple[Bus, Queue]:
    """How runs get to where they are executed, and their frames to who follows them."""
    limits: dict[str, Any] = {"timeout": settings.run_timeout, "most_attempts": settings.run_attempts}
    patience, concurrency = settings.run_patience.total_seconds(), settings.run_concurrency
    if _on_sqlite(settings):
        memory = MemoryBus(store)
        runner = Runner(store, project, memory, **limits)
        return memory, EmbeddedQueue(
            store, runner.execute, lock=_lock_file(settings), concurrency=concurrency, patience=patience
        )
    from assent.bus.postgres import PostgresBus
    from assent.engine.queues.procrastinate import ProcrastinateQueue

    url = settings.database
    bus = PostgresBus(store, url)
    execute = Runner(store, project, bus, **limits).execute if settings.run_in_server else None
    return bus, ProcrastinateQueue(
        store, execute, url=url, concurrency=concurrency, patience=patience, remind=bus.remind
    )


def policy_of(settings: Settings) -> tuple[Policy, str]:
    """What the operator's file says; without one, a server asks about everything, and one for developing advises."""
    if settings.policy is not None:
        return read(settings.policy.read_text(encoding="utf-8")), FILE
    return (ASK_ALL if settings.mode is Mode.SERVE else ADVISE_ALL), BUILT_IN


def _sender(store: Store, outbound: Outbound, resumption: Resumption, settings: Settings) -> Sender:
    """Opened after the queue, whose lock makes it the only one on a SQLite file."""
    from assent.notify.webhooks import WebhookCarrier

    webhooks = WebhookCarrier(outbound, partial(secret_key.load, settings))
    carriers: dict[str, Carry] = {WEBHOOK: webhooks, RESUME: resumption}
    return Sender(store, carriers, alone=_on_sqlite(settings))


def _on_sqlite(settings: Settings) -> bool:
    return make_url(settings.database).get_backend_name() == "sqlite"


def _lock_file(settings: Settings) -> Path | None:
    file = make_url(settings.database).database
    return None if file in (None, "", ":memory:") else Path(f"{file}.lock")


def local_inbox_app(services: Services, caller: Principal) -> ASGIApp:
    """The routes of inbox and policies over a database, in the name of one caller: for commands, beside no server."""
    from fastapi import FastAPI

    from assent.api import inbox, inboxes, insights, policies
    from assent.http import errors

    app, items = FastAPI(), Inbox(services.store)
    errors.install(app)
    app.include_router(inbox.routes(items, Live(services.store, items)))
    app.include_router(inboxes.routes(Inboxes(services.store, items)))
    app.include_router(policies.routes(services.policies))
    app.include_router(insights.routes(Insights(services.store)))

    async def as_caller(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value) for name, value in scope["headers"] if name != b"host"]  # nobody listens anywhere
        await app({**scope, "headers": headers, "state": {"principal": caller}}, receive, send)

    return as_caller


def _assistant(store: Store, engine: Engine, graph_id: str) -> Assistant:
    return Assistant(
        store,
        engine.runs,
        engine.threads,
        engine.inbox,
        graph_id,
        is_loaded=lambda: graph_id in engine.project.graphs,
    )


def _inboxes(store: Store, engine: Engine, settings: Settings) -> Inboxes:
    """`url` leads here only where somebody has said so: commands use it to find a server, and it has a default."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    listens = (f"http://{host}:{settings.port}",) if settings.port else ()
    named = (settings.url,) if "url" in settings.model_fields_set else ()
    return Inboxes(store, engine.inbox, Deployments((*listens, *named)), engine.assistants.resolve)


def create_app(services: Services, engine: Engine, settings: Settings) -> FastAPI:
    from fastapi import FastAPI
    from starlette.middleware.cors import CORSMiddleware

    from assent.api import assistant as talks
    from assent.api import audit, deliveries, health, inbox, inboxes, keys, policies, sessions, users
    from assent.api import insights as insight_routes
    from assent.api.langgraph import assistants, runs, system, threads
    from assent.api.schemas import Problem
    from assent.http import boundary, custom_routes, errors
    from assent.http.authentication import Authentication
    from assent.http.counting import RequestCount
    from assent.http.telemetry import telemetry
    from assent.web import assets, bulk, pages, people_page
    from assent.web import audit as audit_pages
    from assent.web import inbox as inbox_pages
    from assent.web import inboxes as inboxes_pages
    from assent.web import insights as insights_pages
    from assent.web import keys as keys_pages
    from assent.web import policies as policies_pages
    from assent.web import settings as settings_pages
    from assent.web import threads as thread_pages
    from assent.web.desk import Desk
    from assent.web.shell import Shell
    from assent.web.thread_page import Sources

    app = FastAPI(
        title="Assent",
        version=version("assent"),
        redoc_url=None,
        docs_url=None,
        telemetry=telemetry(),
        responses={"4XX": {"model": Problem}, "5XX": {"model": Problem}},
    )
    errors.install(app)
    views = _inboxes(services.store, engine, settings)
    shell = Shell(engine.inbox, views)
    figures = Insights(services.store, access=ThreadAccess(engine.custom_auth))
    app.mount("/static", assets.app())
    for api in (  # they are tried one after another, so what is asked for most comes first
        runs.routes(engine.runs),
        threads.routes(engine.threads),
        health.routes(services.store),
        inbox.routes(engine.inbox, engine.live),
        inboxes.routes(views),
        policies.routes(services.policies),
        sessions.routes(services.access),
        keys.routes(services.keys),
        users.routes(services.users),
        audit.routes(services.audit),
        deliveries.routes(services.deliveries),
        assistants.routes(engine.assistants),
        system.routes(engine.metrics),
        pages.routes(services.access, shell),
        inboxes_pages.routes(views, engine.project.graphs, shell),
        policies_pages.routes(services.policies, services.store, shell),
        audit_pages.routes(services.audit, services.store, shell),
        settings_pages.routes(services.deliveries, engine.project.graphs, settings, shell),
        keys_pages.routes(services.keys, services.users, shell),
        people_page.routes(services.users, shell),
        insight_routes.routes(figures),
        insights_pages.routes(figures, services.store, shell),
        thread_pages.routes(
            Sources(engine.threads, engine.assistants, engine.runs, engine.inbox, services.store), shell, settings
        ),
        bulk.routes(engine.inbox, shell),
        inbox_pages.routes(Desk(engine.inbox, services.deliveries, services.store), shell),
    ):
        app.include_router(api)
    if settings.assistant:
        app.include_router(talks.routes(_assistant(services.store, engine, settings.assistant)))
    if (custom := engine.project.loaded).app is not None:
        custom_routes.mount(app, custom.app, custom.prefix)
    # The last one added is the first one met.
    app.add_middleware(
        Authentication,
        access=services.access,
        settings=settings,
        custom_auth=engine.custom_auth,
        local_person=LocalPerson(services.store),
    )
    app.add_middleware(boundary.BodyLimit, limit=settings.max_body_bytes)
    app.add_middleware(boundary.OpenRequests, limit=settings.max_open_requests)
    app.add_middleware(boundary.LastResort)
    app.add_middleware(CORSMiddleware, **boundary.cors(settings))
    app.add_middleware(boundary.HostCheck, settings=settings)
    app.add_middleware(RequestCount, metrics=engine.metrics)
    app.add_middleware(boundary.RequestLog)
    return app
