"""The server or database of a command, and the client for it.

For a database the routes are called inside this process, as the person who runs the command: write access to the file
is permission to decide.
"""

from __future__ import annotations

import asyncio
import getpass
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar

import httpx
import typer

from assent.app import Services
from assent.client.connection import Connection
from assent.client.inbox import AsyncInbox, item_path
from assent.errors import AssentError, Conflict, Forbidden, Invalid, NotFound, Unavailable
from assent.identity.model.access import ROLE_SCOPES, Kind, Principal, Role
from assent.review.model.search.filters import id_range
from assent.surfaces.cli import problems, profiles
from assent.surfaces.cli.options import TENANT, AsJson, Database, Tenant, run_beside, settings

T = TypeVar("T")
View = dict[str, Any]

_SHORTEST_PREFIX = 8
_ID_LENGTH = 36

Url = Annotated[str | None, typer.Option(help="The server's address; by default ASSENT_URL.", metavar="URL")]
Key = Annotated[str | None, typer.Option(help="An API key; by default ASSENT_API_KEY.", metavar="KEY")]
As = Annotated[str | None, typer.Option("--as", help="With --database: the person who acts.", metavar="NAME")]


@dataclass(frozen=True, slots=True)
class Place:
    """The server or database of a command, the caller, and the output format."""

    url: str | None = None
    key: str | None = None
    database: str | None = None
    tenant: str = TENANT
    name: str | None = None
    as_json: bool = False
    profile: str | None = None


def placed(command: Callable[..., None], *, database: bool = True) -> Callable[..., None]:
    """Adds the options of `Place` to a command whose first parameter is a `Place`. `database`: it also works without a
    server."""
    on_database = database

    @wraps(command)
    def run(*, url: str | None, key: str | None, profile: str | None, as_json: bool, **others: Any) -> None:
        database, tenant, name = others.pop("database", None), others.pop("tenant", TENANT), others.pop("name", None)
        if profile and (url or key or database):
            raise typer.BadParameter("--profile replaces --url, --key and --database: use one of them")
        if database and (url or key):
            raise typer.BadParameter("--database replaces --url and --key: use one of them")
        if not database and (name or tenant != TENANT):
            raise typer.BadParameter("--as and --tenant need --database; a server identifies you by the key")
        command(Place(url, key, database, tenant, name, as_json, profile), **others)

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    options: dict[str, tuple[Any, Any]] = {"url": (Url, None), "key": (Key, None), "profile": (profiles.Profile, None)}
    if on_database:
        options |= {"database": (Database, None), "name": (As, None), "tenant": (Tenant, TENANT)}
    options |= {"as_json": (AsJson, False)}
    shared = [
        inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for option, (annotation, default) in options.items()
    ]
    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return run


Who = Callable[[Services, Principal, str | None], Awaitable[Principal]]
"""Chooses the caller on a database, from its operator and the name in `--as`."""


async def reader(services: Services, operator: Principal, name: str | None) -> Principal:
    """The named person if they exist, else the operator: reading creates no users."""
    user = await services.users.find(operator, name) if name else None
    return operator if user is None else await person(services, operator, name)


async def existing_person(services: Services, operator: Principal, name: str | None) -> Principal:
    """The named or current person if they exist, else the operator: reading creates no users."""
    user = await services.users.find(operator, name or _system_name())
    return operator if user is None else await person(services, operator, user.name)


async def person(services: Services, operator: Principal, name: str | None) -> Principal:
    """The person of that name, or of the system's user name; a new person becomes a reviewer."""
    named = name or _system_name()
    user = await services.users.find(operator, named)
    if user is None:
        user = await services.users.create(operator, name=named, role=Role.REVIEWER)
    if user.disabled_at is not None:
        raise Forbidden(f"the user {named!r} is disabled")
    return Principal(Kind.REVIEWER, user.id, user.name, operator.tenant, ROLE_SCOPES[user.role])


async def keeper(services: Services, operator: Principal, name: str | None) -> Principal:
    """The operator, unless a person is named."""
    return operator if name is None else await person(services, operator, name)


def call(place: Place, use: Callable[[Remote], Awaitable[T]], *, who: Who = person) -> T:
    """Runs a command's requests on its server or database."""
    if place.database is None:
        return asyncio.run(_over_http(place, use))

    async def inside(services: Services, operator: Principal) -> T:
        from assent.surfaces.routes import local_inbox_app  # slow to import

        caller = await who(services, operator, place.name)
        transport = httpx.ASGITransport(local_inbox_app(services, caller))
        async with Remote("http://inbox", via="cli", transport=transport, where="the database") as server:
            return await use(server)

    return run_beside(place.database, None, place.tenant, inside)


async def _over_http(place: Place, use: Callable[[Remote], Awaitable[T]]) -> T:
    url, key = credentials(place.url, place.key, place.profile)
    async with Remote(url, key or None, via="cli") as server:
        return await use(server)


def credentials(url: str | None, key: str | None, profile: str | None = None) -> tuple[str, str]:
    """The server and the key: of the options and settings, else of a profile. A stored key goes to its own server
    only."""
    conf = settings(url=url, api_key=key)
    given = conf.api_key.get_secret_value().strip() if conf.api_key else ""
    if not (given.isascii() and given.isprintable()):
        raise Invalid("the API key has invalid characters", hint="set it with --key or ASSENT_API_KEY")
    if profile is not None or not ({"url", "api_key"} & conf.model_fields_set):
        stored = profiles.stored(profile)
        if stored is not None:
            return stored.url, stored.key
    return conf.url, given


class Remote(Connection):
    """The client for commands: with hints for people, and items by the beginning of their id."""

    @property
    def inbox(self) -> AsyncInbox:
        return AsyncInbox(connection=self)

    async def item(self, named: str) -> View:
        """The item with this id, or with this unique prefix."""
        path = item_path(named if len(named) == _ID_LENGTH else await self._whole_id(named))
        item: View = await self.get(path)
        return item

    async def _whole_id(self, prefix: str) -> str:
        if len(prefix) < _SHORTEST_PREFIX:
            raise Invalid(
                f"{prefix!r} is too short", hint=f"use the id, or at least its first {_SHORTEST_PREFIX} characters"
            )
        known = id_range(prefix.lower()) is not None
        for status in ("is:pending", "") if known else ():
            wanted = f"{status} id:{prefix}".strip()
            items: list[View] = (await self.get("/api/inbox/items", filter=wanted, limit=2))["items"]
            if len(items) > 1:
                raise Conflict(f"several ids begin with {prefix}", hint=problems.candidates(items))
            if items:
                return str(items[0]["id"])
        raise NotFound(f"there is no item whose id begins with {prefix!r}")

    def raised(self, response: httpx.Response) -> AssentError:
        return problems.explained(super().raised(response))

    def unreachable(self, error: httpx.TransportError) -> Unavailable:
        unreachable = super().unreachable(error)
        unreachable.hint = "check that it runs, and --url (or ASSENT_URL); assent demo listens on port 8002"
        return unreachable


def _system_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container user without a name
        raise Invalid("cannot determine your user name", hint="set it with --as NAME") from None
