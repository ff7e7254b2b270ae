"""Builds the web application from the services. Slow to import, because FastAPI is."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from assent.app import Engine, Services
from assent.errors import NotLoaded
from assent.federation.threads import RemoteThreads
from assent.gate.elsewhere.desk import GateDesk
from assent.identity.local_person import LocalPerson
from assent.identity.model.access import Principal
from assent.review.collaboration.reasons import Reasons
from assent.review.deployments import Deployments
from assent.review.inbox import Inbox
from assent.review.inboxes import Inboxes
from assent.review.insights import Insights
from assent.review.live import Live
from assent.review.workspace_reviews import WorkspaceReviews
from assent.runs.calls import Calls
from assent.settings import Mode, Settings
from assent.surfaces import extensions
from assent.surfaces.a2a import routes as a2a
from assent.surfaces.a2a.agent import Agents
from assent.surfaces.a2a.tasks import Tasks
from assent.surfaces.api import (
    agents,
    audit,
    deliveries,
    deployment_webhooks,
    deployments,
    gate,
    health,
    inbox,
    inboxes,
    insights,
    policies,
    reasons,
    samples,
    workspace_reviews,
)
from assent.surfaces.api.access import keys, passkeys, sessions, users
from assent.surfaces.api.langgraph import assistants, crons, events, runs, store, system, threads, ui
from assent.surfaces.extensions import Place
from assent.surfaces.graphql import routes as graphql
from assent.surfaces.http import boundary, custom_routes, errors, parts, routing
from assent.surfaces.http.authentication import Authentication
from assent.surfaces.http.documents import add_page, add_schema
from assent.surfaces.http.limits.admission import Admission
from assent.surfaces.http.limits.request_count import RequestCount
from assent.surfaces.http.passkey_origins import Relying
from assent.surfaces.http.public import PublicRoutes
from assent.surfaces.http.telemetry import telemetry
from assent.surfaces.mcp import inbox_routes as inbox_mcp
from assent.surfaces.mcp import routes as mcp
from assent.surfaces.web import assets
from assent.surfaces.web import errors as page_errors
from assent.surfaces.web.pages import agents as agents_pages
from assent.surfaces.web.pages import audit as audit_pages
from assent.surfaces.web.pages import browser_inbox, bulk, installing, standing
from assent.surfaces.web.pages import crons as crons_pages
from assent.surfaces.web.pages import deployments as deployments_pages
from assent.surfaces.web.pages import inbox as inbox_pages
from assent.surfaces.web.pages import inboxes as inboxes_pages
from assent.surfaces.web.pages import insights as insights_pages
from assent.surfaces.web.pages import policies as policies_pages
from assent.surfaces.web.pages import reasons as reasons_pages
from assent.surfaces.web.pages import settings as settings_pages
from assent.surfaces.web.pages import threads as threads_pages
from assent.surfaces.web.pages.desk import Desk
from assent.surfaces.web.pages.identity import account, people, sign_in
from assent.surfaces.web.pages.identity import keys as keys_pages
from assent.surfaces.web.views.shell import Shell
from assent.surfaces.web.views.threads.thread_page import STUDIO_ORIGIN, Sources
from assent.threads.access import ThreadAccess


def create_app(services: Services, engine: Engine, settings: Settings) -> FastAPI:
    app = FastAPI(
        title="Assent",
        version=version("assent"),
        redoc_url=None,
        docs_url=None,
        openapi_url=None,
        telemetry=telemetry(),
    )
    project = engine.project.loaded
    disabled = project.http.disabled
    if "meta" not in disabled:
        add_schema(app, project.app, project.security)
    errors.install(app, Relying(settings.public_url).page)
    app.add_exception_handler(HTTPException, page_errors.on_http)
    app.state.error_page = page_errors.refusal
    extensions.prepare(services, settings)
    views = _inboxes(services, engine, settings)
    figures = Insights(services.store, access=ThreadAccess(engine.custom_auth))
    app.mount("/static", assets.app())
    admission = Admission(settings)
    pages = _pages(services, engine, views, figures, settings, admission)
    for routes in (*_apis(services, engine, views, figures, settings, admission), *pages):
        app.routes.extend(parts.served(routes.routes, disabled))
    if settings.mode is not Mode.SERVE and "meta" not in disabled:
        add_page(app)
    for extension in extensions.installed():
        for routes in extension.routes(services, engine, settings):
            routing.add(app, routes)
    mounted = custom_routes.mount(app, project.app) if project.app is not None else None
    _guard(app, services, engine, settings, admission, PublicRoutes(app.routes, mounted if project.open_app else None))
    app.state.admission, app.state.max_body_values = admission, settings.max_body_values
    return app


def failed_app(settings: Settings, place: str, reason: str) -> ASGIApp:
    """Answers while the project cannot be loaded. Callers cannot be authenticated without it, so the reason is shown on
    loopback only."""
    error = NotLoaded(f"failed to load {place}: {reason}" if settings.on_loopback else None)
    app = FastAPI(openapi_url=None)
    app.state.error_page = page_errors.refusal
    app.mount("/static", assets.app())

    async def refuse(request: Request) -> Response:
        return errors.refuse(request.scope, error)

    app.add_route("/{path:path}", refuse, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
    return boundary.HostCheck(app, settings)


def local_inbox_app(services: Services, caller: Principal) -> ASGIApp:
    """The routes of inbox and policies over a database, as one caller: for commands that run without a server."""
    app, items = FastAPI(), Inbox(services.store)
    errors.install(app)
    routing.add(app, inbox.routes(items, Live(services.store, items)))
    routing.add(app, inboxes.routes(Inboxes(services.store, items)))
    routing.add(app, workspace_reviews.routes(WorkspaceReviews(services.store, items)))
    routing.add(app, agents.routes(services.agents))
    routing.add(app, reasons.routes(Reasons(services.store)))
    routing.add(app, policies.routes(services.policies, services.passkeys))
    routing.add(app, insights.routes(Insights(services.store)))
    routing.add(app, samples.routes(services.samples))

    async def as_caller(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value) for name, value in scope["headers"] if name != b"host"]  # there is no server address
        await app({**scope, "headers": headers, "state": {"principal": caller}}, receive, send)

    return as_caller


def _apis(
    services: Services, engine: Engine, views: Inboxes, figures: Insights, settings: Settings, admission: Admission
) -> Iterator[APIRouter]:
    """Routes are matched in order, so the most requested ones come first."""
    relying = Relying(settings.public_url)
    yield crons.routes(engine.crons)
    yield runs.routes(engine.runs)
    yield threads.routes(engine.threads)
    yield events.routes(engine.runs, engine.events)
    yield health.routes(services.store)
    yield inbox.routes(engine.inbox, engine.live, relying)
    yield inboxes.routes(views)
    yield workspace_reviews.routes(engine.reviews)
    yield gate.routes(GateDesk(services.store, patience=settings.gate_patience))
    yield reasons.routes(Reasons(services.store))
    yield policies.routes(services.policies, services.passkeys)
    yield sessions.routes(services.access, admission)
    yield keys.routes(services.keys)
    yield users.routes(services.users)
    yield agents.routes(services.agents)
    yield passkeys.routes(services.passkeys, relying)
    yield audit.routes(services.audit)
    yield deliveries.routes(services.deliveries)
    yield deployment_webhooks.routes(services.deployment_webhooks, settings.public_url)
    yield deployments.routes(services.deployments, settings.public_url)
    yield assistants.routes(engine.assistants)
    yield store.routes(engine.items)
    yield system.routes(engine.metrics, parts.without(engine.project.loaded.http.disabled))
    calls = Calls(engine.runs, engine.threads)
    yield mcp.routes(engine.assistants, calls)
    yield inbox_mcp.routes(engine.inbox, settings.cors_origins)
    agent_cards = Agents(engine.assistants, calls, Tasks(engine.runs, engine.threads, calls))
    yield a2a.routes(agent_cards, settings.public_url)
    yield insights.routes(figures)
    yield samples.routes(services.samples)
    ide = settings.mode is not Mode.SERVE
    yield graphql.routes(services, engine, relying, ide=ide)
    yield ui.routes(engine.project.loaded.ui)


def _pages(
    services: Services, engine: Engine, views: Inboxes, figures: Insights, settings: Settings, admission: Admission
) -> Iterator[APIRouter]:
    shell, store, graphs = (
        Shell(engine.inbox, views, _failures(engine, settings), _places(settings)),
        services.store,
        engine.project.graphs,
    )
    relying, saved = Relying(settings.public_url), Reasons(store)
    remote = RemoteThreads(store, services.deployments)
    sources = Sources(engine.threads, engine.assistants, engine.runs, engine.inbox, store, remote)
    yield sign_in.routes(services.access, admission, shell, settings.undo_window)
    yield installing.routes()
    yield inboxes_pages.routes(views, graphs, shell)
    yield policies_pages.routes(services.policies, services.passkeys, services.samples, store, shell)
    yield agents_pages.routes(
        agents_pages.AgentsDesk(services.agents, services.agent_policies, engine.reviews, engine.inbox, shell)
    )
    yield audit_pages.routes(services.audit, store, shell)
    yield settings_pages.routes(services.deliveries, graphs, settings, shell)
    yield reasons_pages.routes(saved, shell)
    yield deployments_pages.routes(services.deployments, services.deployment_webhooks, shell, settings.public_url)
    yield browser_inbox.routes(shell)
    yield keys_pages.routes(services.keys, services.users, shell)
    yield people.routes(services.users, services.passkeys, shell)
    yield account.routes(services.passkeys, relying, shell)
    yield insights_pages.routes(figures, services.samples, store, shell)
    yield crons_pages.routes(engine.crons, engine.assistants, store, shell)
    admits_studio = boundary.admits(STUDIO_ORIGIN, settings, engine.project.loaded.http.cors)
    yield threads_pages.routes(sources, shell, settings, admits_studio=admits_studio)
    yield bulk.routes(engine.inbox, shell, settings.undo_window)
    desk = Desk(engine.inbox, services.deliveries, store, settings.undo_window, engine.threads, saved, remote)
    yield standing.routes(services.policies, desk, shell)
    for extension in extensions.installed():
        yield from extension.pages(services, engine, settings, shell)
    yield inbox_pages.routes(desk, relying, shell)


def _places(settings: Settings) -> list[Place]:
    return [place for extension in extensions.installed() for place in extension.places(settings)]


def _failures(engine: Engine, settings: Settings) -> list[tuple[str, str]]:
    """Where graphs failed to load, and why: for authors (`dev`), not for reviewers."""
    failed = engine.project.loaded.failures.values()
    return list(dict.fromkeys((error.place, error.reason) for error in failed)) if settings.mode is Mode.DEV else []


def _guard(
    app: FastAPI, services: Services, engine: Engine, settings: Settings, admission: Admission, public: PublicRoutes
) -> None:
    """Adds the middleware. The last one added runs first."""
    app.add_middleware(
        Authentication,
        access=services.access,
        settings=settings,
        public=public,
        admission=admission,
        custom_auth=engine.custom_auth,
        local_person=LocalPerson(services.store),
    )
    app.add_middleware(boundary.BodyLimit, limit=settings.max_body_bytes, public=public)
    app.add_middleware(boundary.LastResort)
    http = engine.project.loaded.http
    if http.headers.includes:
        app.add_middleware(boundary.ConfigurableHeaders, rules=http.headers)
    app.add_middleware(CORSMiddleware, **boundary.cors(settings, http.cors))
    app.add_middleware(boundary.HostCheck, settings=settings)
    app.add_middleware(RequestCount, metrics=engine.metrics)
    if http.mount_prefix:
        app.add_middleware(boundary.Prefix, prefix=http.mount_prefix, routes=app.routes)
    app.add_middleware(boundary.RequestLog)


def _inboxes(services: Services, engine: Engine, settings: Settings) -> Inboxes:
    """`url` names this server only if it is set: its default is for commands that call a server."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    listening = (f"http://{host}:{settings.port}",) if settings.port else ()
    configured = (settings.url,) if "url" in settings.model_fields_set else ()
    return Inboxes(services.store, engine.inbox, Deployments((*listening, *configured)), engine.assistants.resolve)
