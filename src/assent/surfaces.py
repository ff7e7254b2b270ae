"""Every route, over the use cases it leads to. Slow to import, like the framework it stands on."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from assent.api import assistant, audit, deliveries, health, inbox, inboxes, insights, keys, policies, sessions, users
from assent.api.langgraph import assistants, runs, system, threads
from assent.app import Engine, Services
from assent.domain.access import Principal
from assent.http import boundary, custom_routes, errors, routing
from assent.http.authentication import Authentication
from assent.http.counting import RequestCount
from assent.http.telemetry import telemetry
from assent.services.assistant import Assistant, LocalPerson
from assent.services.deployments import Deployments
from assent.services.inbox import Inbox
from assent.services.inboxes import Inboxes
from assent.services.insights import Insights
from assent.services.live import Live
from assent.services.thread_access import ThreadAccess
from assent.settings import Settings
from assent.web import assets, bulk, pages, people_page
from assent.web import audit as audit_pages
from assent.web import errors as page_errors
from assent.web import inbox as inbox_pages
from assent.web import inboxes as inboxes_pages
from assent.web import insights as insights_pages
from assent.web import keys as keys_pages
from assent.web import policies as policies_pages
from assent.web import settings as settings_pages
from assent.web import threads as threads_pages
from assent.web.desk import Desk
from assent.web.shell import Shell
from assent.web.thread_page import Sources


def create_app(services: Services, engine: Engine, settings: Settings) -> FastAPI:
    app = FastAPI(
        title="Assent",
        version=version("assent"),
        redoc_url=None,
        docs_url=None,
        telemetry=telemetry(),
    )
    errors.install(app)
    app.add_exception_handler(HTTPException, page_errors.on_http)
    views = _inboxes(services, engine, settings)
    figures = Insights(services.store, access=ThreadAccess(engine.custom_auth))
    app.mount("/static", assets.app())
    for routes in (*_apis(services, engine, views, figures), *_pages(services, engine, views, figures, settings)):
        routing.add(app, routes)
    if settings.assistant:
        routing.add(app, assistant.routes(_assistant(services, engine, settings.assistant)))
    if (custom := engine.project.loaded).app is not None:
        custom_routes.mount(app, custom.app, custom.prefix)
    _guard(app, services, engine, settings)
    return app


def local_inbox_app(services: Services, caller: Principal) -> ASGIApp:
    """The routes of inbox and policies over a database, in the name of one caller: for commands, beside no server."""
    app, items = FastAPI(), Inbox(services.store)
    errors.install(app)
    routing.add(app, inbox.routes(items, Live(services.store, items)))
    routing.add(app, inboxes.routes(Inboxes(services.store, items)))
    routing.add(app, policies.routes(services.policies))
    routing.add(app, insights.routes(Insights(services.store)))

    async def as_caller(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name, value) for name, value in scope["headers"] if name != b"host"]  # nobody listens anywhere
        await app({**scope, "headers": headers, "state": {"principal": caller}}, receive, send)

    return as_caller


def _apis(services: Services, engine: Engine, views: Inboxes, figures: Insights) -> Iterator[APIRouter]:
    """They are tried one after another, so what is asked for most comes first."""
    yield runs.routes(engine.runs)
    yield threads.routes(engine.threads)
    yield health.routes(services.store)
    yield inbox.routes(engine.inbox, engine.live)
    yield inboxes.routes(views)
    yield policies.routes(services.policies)
    yield sessions.routes(services.access)
    yield keys.routes(services.keys)
    yield users.routes(services.users)
    yield audit.routes(services.audit)
    yield deliveries.routes(services.deliveries)
    yield assistants.routes(engine.assistants)
    yield system.routes(engine.metrics)
    yield insights.routes(figures)


def _pages(
    services: Services, engine: Engine, views: Inboxes, figures: Insights, settings: Settings
) -> Iterator[APIRouter]:
    shell, store, graphs = Shell(engine.inbox, views), services.store, engine.project.graphs
    sources = Sources(engine.threads, engine.assistants, engine.runs, engine.inbox, store)
    yield pages.routes(services.access, shell, settings.undo_window)
    yield inboxes_pages.routes(views, graphs, shell)
    yield policies_pages.routes(services.policies, store, shell)
    yield audit_pages.routes(services.audit, store, shell)
    yield settings_pages.routes(services.deliveries, graphs, settings, shell)
    yield keys_pages.routes(services.keys, services.users, shell)
    yield people_page.routes(services.users, shell)
    yield insights_pages.routes(figures, store, shell)
    yield threads_pages.routes(sources, shell, settings)
    yield bulk.routes(engine.inbox, shell)
    yield inbox_pages.routes(Desk(engine.inbox, services.deliveries, store, settings.undo_window), shell)


def _guard(app: FastAPI, services: Services, engine: Engine, settings: Settings) -> None:
    """What every request passes. The last one added is the first one met."""
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


def _inboxes(services: Services, engine: Engine, settings: Settings) -> Inboxes:
    """`url` leads here only where somebody has said so: commands use it to find a server, and it has a default."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    listens = (f"http://{host}:{settings.port}",) if settings.port else ()
    named = (settings.url,) if "url" in settings.model_fields_set else ()
    return Inboxes(services.store, engine.inbox, Deployments((*listens, *named)), engine.assistants.resolve)


def _assistant(services: Services, engine: Engine, graph_id: str) -> Assistant:
    return Assistant(
        services.store,
        engine.runs,
        engine.threads,
        engine.inbox,
        graph_id,
        is_loaded=lambda: graph_id in engine.project.graphs,
    )
