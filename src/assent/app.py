"""The composition root: Settings → store → services → engine. The only module that knows concrete classes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import make_url

from assent import secret_key
from assent.bus.memory import MemoryBus
from assent.domain.access import DEFAULT_TENANT
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
from assent.services.assistants import Assistants
from assent.services.audit import Audit
from assent.services.deadlines import Deadlines
from assent.services.deliveries import Deliveries
from assent.services.inbox import Inbox
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
