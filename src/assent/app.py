"""The composition root: Settings → store → services → engine. The only module that uses concrete classes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import make_url

from assent import audit_key, secret_key
from assent.audit.anchors import Anchoring, HeadFile
from assent.audit.service import Audit
from assent.federation.answers import AnswerCarrier
from assent.federation.deployments import RemoteDeployments, Wanted
from assent.federation.sealing import Sealing
from assent.federation.sync import Sync
from assent.federation.webhooks import DeploymentWebhooks
from assent.identity.access import Access
from assent.identity.agents import AgentChange, Agents
from assent.identity.keys import Keys
from assent.identity.mandates import Mandates
from assent.identity.model.access import DEFAULT_TENANT
from assent.identity.onboarding import Onboarding
from assent.identity.passkeys import Passkeys
from assent.identity.users import Users
from assent.kernel.limits import Limits
from assent.kernel.quotas.usage import UsageCount
from assent.kernel.seals import Sealer
from assent.kernel.store import capacity, migrations
from assent.kernel.store.drivers.connections import Connections, divide
from assent.kernel.store.ports import Queue, Store
from assent.outbox.model import ANSWER, AUDIT_HEAD, GATE_ANSWER, RESUME, WEBHOOK
from assent.outbox.sender import Carry, Sender
from assent.outbox.targets import Targets
from assent.retention import Retention
from assent.review.deadlines import Deadlines
from assent.review.deliveries import Deliveries
from assent.review.heartbeats import Heartbeats
from assent.review.inbox import Inbox
from assent.review.live import Live
from assent.review.model.policies import ADVISE_ALL, ASK_ALL, Policy
from assent.review.policy.agent_rules import AgentPolicies
from assent.review.policy.policies import BUILT_IN, FILE, Policies, read
from assent.review.rows import policies, secrets
from assent.review.samples import Samples
from assent.review.search.item_index import Backfill
from assent.review.threads.retraction import Retraction
from assent.review.workspace_reviews import WorkspaceReviews
from assent.runs import cancellation
from assent.runs.assistants.assistants import Assistants
from assent.runs.bus.memory import MemoryBus
from assent.runs.bus.news import News
from assent.runs.crons.crons import Crons, StoredCrons
from assent.runs.crons.firing import Firing
from assent.runs.engine.runner import Runner
from assent.runs.events.streams import EventStreams
from assent.runs.memory.items import StoreItems
from assent.runs.metrics import Metrics, Workers
from assent.runs.project.failures import Failures
from assent.runs.project.loader import LoadedGraphs, load_app, load_auth, load_graphs, load_index, load_webhook_rules
from assent.runs.project.manifest import read_manifest
from assent.runs.project.project import Project
from assent.runs.queues.embedded import EmbeddedQueue
from assent.runs.resumption import Resumption
from assent.runs.runs import Runs
from assent.runs.threads.threads import Threads
from assent.runs.upkeep.backfill import ItemBackfill
from assent.runs.upkeep.imports import Importing
from assent.settings import DeploymentSettings, Mode, Settings, environment
from assent.threads.access import ThreadAccess
from assent.threads.bus import Bus

if TYPE_CHECKING:
    from assent.identity.custom_auth import CustomAuth
    from assent.outbox.client import Outbound


@dataclass(frozen=True, slots=True)
class Engine:
    """The execution of graphs, and the use cases over it."""

    project: Project
    queue: Queue
    assistants: Assistants
    runs: Runs
    events: EventStreams
    threads: Threads
    items: StoreItems
    crons: Crons
    firing: Firing
    metrics: Metrics
    inbox: Inbox
    reviews: WorkspaceReviews
    live: Live
    sync: Sync
    custom_auth: CustomAuth | None = None


@dataclass(frozen=True, slots=True)
class Services:
    """All use cases, over one store."""

    store: Store
    access: Access
    audit: Audit
    keys: Keys
    agents: Agents
    users: Users
    passkeys: Passkeys
    deliveries: Deliveries
    policies: Policies
    agent_policies: AgentPolicies
    crons: StoredCrons
    onboarding: Onboarding
    retention: Retention
    usage: UsageCount
    deployments: RemoteDeployments
    deployment_webhooks: DeploymentWebhooks
    samples: Samples


def create_store(settings: Settings) -> Store:
    if _on_sqlite(settings):
        from assent.kernel.store.drivers.sqlite import SqliteStore

        return SqliteStore(settings.database, limits=_limits(settings))
    from assent.kernel.store.drivers.postgres import PostgresStore

    return PostgresStore(settings.database, connections=_connections(settings).store, limits=_limits(settings))


def _connections(settings: Settings) -> Connections:
    return divide(settings.database_connections, executes=settings.run_in_server)


def _limits(settings: Settings) -> Limits:
    return Limits(
        item_bytes=settings.max_item_bytes,
        document_bytes=settings.max_document_bytes,
        answer_bytes=settings.max_answer_bytes,
        threads=settings.quota_threads,
        pending_items=settings.quota_pending_items,
        stored_bytes=settings.quota_stored_bytes,
        active_runs=settings.quota_active_runs,
        crons=settings.quota_crons,
    )


def create_services(store: Store, settings: Settings) -> Services:
    access = Access(store, session_lifetime=settings.session_lifetime)
    key, heads_file = partial(audit_key.existing, settings), settings.audit_anchor_file
    audit = Audit(store, key=key, heads_file=heads_file, masked=secrets.covered)
    keys = Keys(store, lifetime=settings.key_lifetime, changed=access.forget)
    users = Users(store, Retraction(cancellation.interrupt), changed=access.forget)
    policies = Policies(store)
    return Services(
        store=store,
        access=access,
        audit=audit,
        keys=keys,
        agents=Agents(store),
        users=users,
        passkeys=Passkeys(store),
        deliveries=Deliveries(store, secret=partial(secret_key.load, settings)),
        policies=policies,
        agent_policies=AgentPolicies(store, policies),
        crons=StoredCrons(store),
        onboarding=Onboarding(access, users, keys),
        retention=Retention(
            store,
            audit,
            event_payloads=settings.retention_event_payloads,
            deliveries=settings.retention_deliveries,
            frames=settings.retention_frames,
            items=settings.retention_items,
        ),
        usage=UsageCount(store),
        deployments=_deployments(store, settings),
        deployment_webhooks=DeploymentWebhooks(store),
        samples=Samples(store),
    )


def _wanted(named: DeploymentSettings) -> Wanted:
    credentials = named.plain_key, named.plain_headers
    return Wanted(named.shown_name, named.url, *credentials, named.graphs, named.stringify_args)


def _deployments(store: Store, settings: Settings) -> RemoteDeployments:
    def outbound() -> Outbound:
        from assent.outbox.client import Outbound  # slow to import

        return Outbound(Targets(settings.may_follow))

    return RemoteDeployments(store, Sealing(partial(secret_key.load, settings)), outbound)


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """An up-to-date database with the use cases over it, for as long as the block runs."""
    await asyncio.to_thread(migrations.upgrade, settings.database)
    store = create_store(settings)
    await store.open()
    services = create_services(store, settings)
    try:
        yield services
    finally:
        await services.deployments.close()
        await store.close()


def load_project(settings: Settings) -> LoadedGraphs:
    """Imports the author's graphs and auth file. Called before the event loop starts, since imports may block.

    A server does not start without its auth file."""
    if not settings.config.exists():
        return LoadedGraphs({}, {})
    manifest = read_manifest(settings.config)
    graphs = load_graphs(manifest, checkpoint_types=settings.checkpoint_types)
    return replace(
        graphs,
        index=load_index(manifest),
        webhooks=load_webhook_rules(manifest, environment()),
        auth=load_auth(manifest),
        app=load_app(manifest),
        open_app=not manifest.http.custom_route_auth,
        http=manifest.http,
        sweep=manifest.sweep,
        ui=manifest.ui,
        security=manifest.auth.openapi if manifest.auth else {},
    )


@asynccontextmanager
async def open_engine(store: Store, loaded: LoadedGraphs, settings: Settings) -> AsyncIterator[Engine]:
    """Executes runs for as long as the block runs; unfinished runs are handed back for the next start."""
    from assent.outbox.client import Outbound  # slow to import

    sealer = Sealer(partial(secret_key.load, settings), b"assent states of threads 1")
    project = Project(loaded, store, Failures(settings.shows_errors), sealer)
    custom_auth = _custom_auth(loaded)
    store.marks = project.marks
    assistants = Assistants(
        store, project.graphs, custom_auth, guarded=settings.mode is Mode.SERVE, failed=project.failed
    )
    bus, queue = _dispatch(store, project, settings)
    outbound = Outbound(Targets(settings.may_call, loaded.webhooks))
    news = News(store, bus)
    threads = Threads(
        store,
        project,
        on_state=news.edited,
        on_removal=news.removed,
        authorizer=custom_auth,
        visibility=settings.new_thread_visibility,
        sweep=loaded.sweep,
    )
    remote = _deployments(store, settings)
    sync = Sync(store, remote)
    sender = _sender(store, outbound, Resumption(store, threads.states.end), remote, settings)
    inbox = Inbox(store, targets=outbound.targets, access=ThreadAccess(custom_auth))
    reviews = WorkspaceReviews(store, inbox, targets=outbound.targets)
    live, deadlines, backfill, heartbeats = Live(store, inbox), Deadlines(store), Backfill(store), Heartbeats(store)
    runs = Runs(
        store,
        bus,
        assistants,
        default_strategy=settings.default_multitask_strategy,
        targets=outbound.targets,
        authorizer=custom_auth,
        read_outcome=threads.states.outcome,
        is_gated=project.is_gated,
        visibility=settings.new_thread_visibility,
        lifetime=loaded.sweep.lifetime,
        sends_webhooks="webhooks" not in loaded.http.disabled,
    )
    access: dict[str, Any] = {"authorizer": custom_auth, "visibility": settings.new_thread_visibility}
    items = StoreItems(store, section=loaded.memory, index=loaded.index, **access)
    crons = Crons(store, runs, assistants, **access)
    anchoring, firing = _anchoring(store, settings), _firing(store, runs, settings, has_auth=custom_auth is not None)
    if not _on_sqlite(settings):
        await capacity.warn_of_lack(store, settings.database_connections)
    if loaded.index is not None:
        await loaded.index.open(store)
    await bus.open()
    await queue.open()
    try:
        await Policies(store).provide(DEFAULT_TENANT, *policy_of(settings))
        await Agents(store).provide(DEFAULT_TENANT, _agents_of(settings))
        await remote.provide(DEFAULT_TENANT, map(_wanted, settings.deployments))
        await sender.open()
        await deadlines.open()
        await heartbeats.open()
        await backfill.open()
        await anchoring.open()
        await firing.open()
        await sync.open()
        live.open()
        executes = _on_sqlite(settings) or settings.run_in_server
        metrics = Metrics(store, (lambda: Workers(settings.run_concurrency, queue.active)) if executes else None)
        events = EventStreams(store, bus, runs)
        yield Engine(
            project,
            queue,
            assistants,
            runs,
            events,
            threads,
            items,
            crons,
            firing,
            metrics,
            inbox,
            reviews,
            live,
            sync,
            custom_auth,
        )
    finally:
        await live.close()
        await sync.close()
        await firing.close()
        await anchoring.close()
        await backfill.close()
        await heartbeats.close()
        await deadlines.close()
        await queue.close()
        await bus.close()
        await sender.close()
        await outbound.close()
        await remote.close()


@asynccontextmanager
async def open_importing(
    settings: Settings, loaded: LoadedGraphs, *, dry_run: bool = False
) -> AsyncIterator[Importing]:
    """Imports into the database, also while servers run on it. Without a policy in the database, the default of
    `assent serve` applies: imported questions need decisions as there. A dry run changes nothing, and creates no
    database."""
    if dry_run and not await asyncio.to_thread(_has_database, settings):
        settings = settings.model_copy(update={"database": "sqlite://"})
    async with open_services(settings) as services:
        served = settings.model_copy(update={"mode": Mode.SERVE})
        project = Project(loaded, services.store)
        services.store.marks = project.marks
        if not dry_run and not (await services.store.read(DEFAULT_TENANT, policies.in_force)).number:
            await services.policies.provide(DEFAULT_TENANT, *policy_of(served))
        yield Importing(services.store, project, served.new_thread_visibility)


@asynccontextmanager
async def open_backfill(settings: Settings, loaded: LoadedGraphs) -> AsyncIterator[ItemBackfill]:
    """Creates missing items in the database, also while servers run on it."""
    async with open_services(settings) as services:
        project = Project(loaded, services.store)
        services.store.marks = project.marks
        yield ItemBackfill(services.store, project)


def _has_database(settings: Settings) -> bool:
    file = settings.database_file
    return (file is None or file.exists()) and migrations.current(settings.database) is not None


def _custom_auth(loaded: LoadedGraphs) -> CustomAuth | None:
    if loaded.auth is None:
        return None
    from assent.identity.custom_auth import CustomAuth

    return CustomAuth(loaded.auth)


def _dispatch(store: Store, project: Project, settings: Settings) -> tuple[Bus, Queue]:
    """How runs reach their executor, and frames their followers."""
    limits: dict[str, Any] = {"timeout": settings.run_timeout, "most_attempts": settings.run_attempts}
    options: dict[str, Any] = {
        "concurrency": settings.run_concurrency,
        "patience": settings.run_patience.total_seconds(),
        "holds": project.will_load if settings.mode is Mode.DEV else lambda graph_id: False,
    }
    if _on_sqlite(settings):
        memory = MemoryBus(store)
        runner = Runner(store, project, memory, **limits)
        return memory, EmbeddedQueue(
            store, runner.execute, lock=_lock_file(settings), prepare=runner.prepare, **options
        )
    from assent.runs.bus.postgres import PostgresBus
    from assent.runs.queues.procrastinate import ProcrastinateQueue

    url, shares = settings.database, _connections(settings)
    bus = PostgresBus(store, url, connections=shares.frames)
    execute = Runner(store, project, bus, **limits).execute if settings.run_in_server else None
    return bus, ProcrastinateQueue(
        store,
        execute,
        url=url,
        remind=bus.remind,
        connections=shares.queue,
        **options,
    )


def policy_of(settings: Settings) -> tuple[Policy, str]:
    """The operator's policy file; by default a server asks about everything, and a development server advises."""
    if settings.policy is not None:
        return read(settings.policy.read_text(encoding="utf-8")), FILE
    return (ASK_ALL if settings.mode is Mode.SERVE else ADVISE_ALL), BUILT_IN


def _agents_of(settings: Settings) -> list[tuple[str, AgentChange]]:
    """The agents of the settings file."""
    return [
        (agent.name, AgentChange(parent=agent.parent, human=agent.human, source=agent.source))
        for agent in settings.agents
    ]


def _sender(
    store: Store, outbound: Outbound, resumption: Resumption, remote: RemoteDeployments, settings: Settings
) -> Sender:
    """Opened after the queue, whose lock ensures a single sender on a SQLite file."""
    from assent.outbox.webhooks import WebhookCarrier

    webhooks = WebhookCarrier(outbound, partial(secret_key.load, settings))
    answers = AnswerCarrier(store, remote)
    carriers: dict[str, Carry] = {WEBHOOK: webhooks, RESUME: resumption, ANSWER: answers, GATE_ANSWER: answers.wake}
    if settings.audit_anchor_file is not None:
        carriers[AUDIT_HEAD] = HeadFile(settings.audit_anchor_file)
    return Sender(store, carriers, alone=_on_sqlite(settings), at_once={RESUME: resumption.at_once})


def _anchoring(store: Store, settings: Settings) -> Anchoring:
    return Anchoring(
        store,
        partial(audit_key.load, settings),
        file=settings.audit_anchor_file,
        url=settings.audit_anchor_url,
        every=settings.audit_anchor_every,
    )


def _firing(store: Store, runs: Runs, settings: Settings, *, has_auth: bool) -> Firing:
    """Opened after the queue, whose lock ensures that one process fires the crons of a SQLite file."""
    mandates = Mandates(keyless=settings.mode is not Mode.SERVE, handlers=has_auth)
    return Firing(store, runs, mandates, catch_up=settings.cron_catch_up)


def _on_sqlite(settings: Settings) -> bool:
    return make_url(settings.database).get_backend_name() == "sqlite"


def _lock_file(settings: Settings) -> Path | None:
    file = make_url(settings.database).database
    return None if file in (None, "", ":memory:") else Path(f"{file}.lock")
