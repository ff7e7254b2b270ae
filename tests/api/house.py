"""Assent without a socket: the real app over a real database, called through httpx as from any address."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope

from assent.app import Engine, Services, load_project, open_engine, open_services, policy_of
from assent.identity.model.access import DEFAULT_TENANT, Kind, Role, operator
from assent.kernel.store.drivers.postgres import PostgresStore
from assent.kernel.store.drivers.sqlite import SqliteStore
from assent.kernel.store.tables import metadata
from assent.kernel.store.transaction import Tx
from assent.review.rows import policies
from assent.runs.project.loader import LoadedGraphs
from assent.settings import Mode, Settings
from assent.surfaces.routes import create_app
from assent.testing import Clock

LOOPBACK = "http://127.0.0.1:2024"
TESTS = Path(__file__).parents[1]
LOCAL = {"host": "127.0.0.1:2024"}
SESSION = "assent_session_2024"
NOTHING: Sequence[Message] = ({"type": "http.request", "body": b"", "more_body": False},)


@dataclass(frozen=True)
class House:
    services: Services
    settings: Settings
    app: FastAPI
    engine: Engine

    def client(
        self,
        key: str | None = None,
        *,
        url: str = LOOPBACK,
        peer: str = "127.0.0.1",
        session: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.AsyncClient:
        """Someone who calls from the address `peer`; `url` is what they typed, so it names the Host."""
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, client=(peer, 40000)),
            base_url=url,
            headers={**({"x-api-key": key} if key else {}), **(headers or {})},
            cookies={SESSION: session} if session else None,
        )

    async def key(self, kind: Kind = Kind.AGENT, *scopes: str, tenant: str = DEFAULT_TENANT) -> str:
        """The secret of a new key of an agent or a service."""
        new = await self.services.keys.create(operator(tenant), kind=kind, name=f"a {kind}", scopes=scopes)
        return new.secret

    async def person(self, name: str, role: Role = Role.REVIEWER, *, tenant: str = DEFAULT_TENANT) -> str:
        """The secret of a key of a new person."""
        await self.services.users.create(operator(tenant), name=name, role=role)
        return await self.key_of(name, tenant=tenant)

    async def key_of(
        self, name: str, *scopes: str, tenant: str = DEFAULT_TENANT, lifetime: timedelta | None = None
    ) -> str:
        new = await self.services.keys.create(
            operator(tenant), kind=Kind.REVIEWER, name=f"{name}'s", user=name, scopes=scopes, lifetime=lifetime
        )
        return new.secret

    async def admin(self, *, tenant: str = DEFAULT_TENANT) -> httpx.AsyncClient:
        return self.client(await self.person("admin", Role.ADMIN, tenant=tenant))

    async def link(self, name: str, *, tenant: str = DEFAULT_TENANT) -> str:
        """The token of a fresh one-time login link."""
        return await self.services.users.login_link(operator(tenant), name)

    async def signed_in(self, name: str = "ana", role: Role = Role.REVIEWER, **client: Any) -> httpx.AsyncClient:
        """A new person in a browser of their own."""
        await self.services.users.create(operator(), name=name, role=role)
        browser = self.client(**client)
        response = await browser.post("/api/session", json={"credential": await self.link(name)})
        assert response.status_code == 200, response.text
        return browser

    def pass_time(self, time: timedelta) -> None:
        """Sets the database's clock forward."""
        Clock(self._store).advance(time)

    def reset_time(self) -> None:
        Clock(self._store).reset()

    def forget(self) -> None:
        """What is remembered of keys for half a second, so that tests need not wait."""
        self.services.access._recent.clear()
        self.app.state.admission.forget()

    async def sweep(self) -> None:
        """As if nobody had ever been here."""
        self.forget()
        self.reset_time()
        await self._store.write(None, _delete_all)
        policy, source = policy_of(self.settings)
        await self._store.write(DEFAULT_TENANT, policies.put, policy, source=source, actor="system")

    @property
    def _store(self) -> SqliteStore | PostgresStore:
        store = self.services.store
        assert isinstance(store, SqliteStore | PostgresStore)
        return store


def _delete_all(tx: Tx) -> None:
    for table in reversed(metadata.sorted_tables):
        tx.sql(f'DELETE FROM "{table.name}"')


class Builder:
    """Opens houses on databases of their own, and closes them in the end."""

    def __init__(
        self,
        folder: Path,
        migrated_file: Path,
        stack: AsyncExitStack,
        new_database: Callable[[], str] | None = None,
    ) -> None:
        """`new_database` gives the address of an empty one; without it, they are SQLite files."""
        self._new_database = new_database
        self._folder = folder
        self._empty = migrated_file
        self._stack = stack
        self._count = 0

    async def __call__(self, mode: Mode = Mode.SERVE, **settings: Any) -> House:
        self._count += 1
        file = self._folder / f"house-{self._count}.db"
        if "database" not in settings and self._new_database is None:
            shutil.copy(self._empty, file)
        address = self._new_database() if self._new_database is not None else f"sqlite:///{file}"
        chosen = {"database": address, "config": self._folder / "langgraph.json", **settings}
        chosen_settings = Settings(mode=mode, **chosen)
        services = await self._stack.enter_async_context(open_services(chosen_settings))
        engine = await self._stack.enter_async_context(
            open_engine(services.store, _loaded(chosen_settings), chosen_settings)
        )
        return House(services, chosen_settings, create_app(services, engine, chosen_settings), engine)


def _loaded(settings: Settings) -> LoadedGraphs:
    """The projects of this repository do not change, so they are loaded once; to compile their graphs costs more than
    most tests."""
    if not settings.config.is_relative_to(TESTS):
        return load_project(settings)
    name = (str(settings.config), *settings.checkpoint_types)
    loaded = _LOADED.get(name) or load_project(settings)
    if loaded.index is None:  # which belongs to one store
        _LOADED[name] = loaded
    return loaded


_LOADED: dict[tuple[str, ...], LoadedGraphs] = {}


async def call(
    app: FastAPI,
    method: str,
    path: str,
    headers: Mapping[str, str],
    received: Sequence[Message] = NOTHING,
    receive: Receive | None = None,
) -> list[Message]:
    """One request as the server hands it over, for what no well-behaved client would send. Who sent it then goes."""
    sent: list[Message] = []
    incoming = iter(received)

    async def next_received() -> Message:
        return next(incoming, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in {**LOCAL, **headers}.items()],
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", 2024),
    }
    await app(scope, receive or next_received, send)
    return sent
