"""The client of the REST API for commands: a server by URL and key, or a database without a server.

For a database the routes are called inside this process, as the person who runs the command: write access to the file
is permission to decide. Changes have one Idempotency-Key per command, so that a retry after a broken connection does
nothing twice.
"""

from __future__ import annotations

import asyncio
import getpass
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx
import typer

from assent.app import Services
from assent.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from assent.identity.model.access import ROLE_SCOPES, Kind, Principal, Role
from assent.kernel.store.paging import LARGEST_PAGE
from assent.review.model.filters import id_range
from assent.settings import is_loopback
from assent.surfaces.cli import problems
from assent.surfaces.cli.options import TENANT, AsJson, Database, Tenant, run_beside, settings

T = TypeVar("T")
View = dict[str, Any]

_PATIENCE_SECONDS = 30.0
_PAUSES_SECONDS = (0.3, 1.0, 2.0)
_LONGEST_PAUSE_SECONDS = 10.0
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


def placed(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of `Place` to a command whose first parameter is a `Place`."""

    @wraps(command)
    def run(*, url: str | None, key: str | None, database: str | None, tenant: str, **others: Any) -> None:
        name, as_json = others.pop("name"), others.pop("as_json")
        if database and (url or key):
            raise typer.BadParameter("--database replaces --url and --key: use one of them")
        if not database and (name or tenant != TENANT):
            raise typer.BadParameter("--as and --tenant need --database; a server identifies you by the key")
        command(Place(url, key, database, tenant, name, as_json), **others)

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    options: dict[str, tuple[Any, Any]] = {"url": (Url, None), "key": (Key, None), "database": (Database, None)}
    options |= {"name": (As, None), "tenant": (Tenant, TENANT), "as_json": (AsJson, False)}
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
        async with httpx.AsyncClient(transport=transport, base_url="http://inbox") as client:
            return await use(Remote(client, "the database"))

    return run_beside(place.database, None, place.tenant, inside)


async def _over_http(place: Place, use: Callable[[Remote], Awaitable[T]]) -> T:
    conf = settings(url=place.url, api_key=place.key)
    key = conf.api_key.get_secret_value().strip() if conf.api_key else ""
    if not (key.isascii() and key.isprintable()):
        raise Invalid("the API key has invalid characters", hint="set it with --key or ASSENT_API_KEY")
    # Requests to this machine do not use the environment's proxy.
    uses_proxy = not is_loopback(urlsplit(conf.url).hostname or "")
    headers = {"x-api-key": key} if key else {}
    async with httpx.AsyncClient(
        base_url=conf.url, headers=headers, timeout=_PATIENCE_SECONDS, trust_env=uses_proxy
    ) as client:
        return await use(Remote(client, conf.url))


class Remote:
    def __init__(self, client: httpx.AsyncClient, where: str) -> None:
        self._client = client
        self._where = where
        self._once = str(uuid4())

    async def get(self, path: str, **query: Any) -> Any:
        named = {name: value for name, value in query.items() if value is not None}
        try:
            return self._read(await self._client.get(path, params=named))
        except httpx.TransportError as error:
            raise self._unreachable(error) from None

    async def send(self, method: str, path: str, body: Any = None, *, repeatable: bool = True) -> Any:
        """Sends a change. Retries if the response is lost and the change is `repeatable`."""
        for pause in (*_PAUSES_SECONDS, None):
            try:
                response = await self._client.request(
                    method, path, json=body, headers={"Idempotency-Key": self._once, "Assent-Via": "cli"}
                )
            except httpx.TransportError as error:
                lost = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if pause is None or (lost and not repeatable):
                    raise self._unreachable(error) from None
                await asyncio.sleep(pause)
                continue
            if response.status_code != Unavailable.status or pause is None:
                return self._read(response)
            await asyncio.sleep(_asked_pause(response, pause))
        raise AssertionError("the last attempt returns or raises")

    async def pages(self, path: str, *, most: int | None = None, **query: Any) -> AsyncIterator[View]:
        """Yields pages until there are no more or `most` entries were returned."""
        cursor, left = None, most
        while True:
            size = LARGEST_PAGE if left is None else min(left, LARGEST_PAGE)
            page: View = await self.get(path, limit=size, cursor=cursor, **query)
            yield page
            cursor, left = page["next"], None if left is None else left - len(page["items"])
            if cursor is None or left == 0:
                return

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

    def _read(self, response: httpx.Response) -> Any:
        if response.is_success:
            try:
                return response.json()
            except ValueError:
                raise problems.not_an_assent(response, self._where) from None
        raise problems.raised(response, self._where)

    def _unreachable(self, error: httpx.TransportError) -> Unavailable:
        reason = " ".join(str(error).split()) or type(error).__name__
        return Unavailable(
            f"{self._where} does not answer: {reason}",
            hint="check that it runs, and --url (or ASSENT_URL); assent demo listens on port 8002",
        )


def item_path(item_id: str, *below: str) -> str:
    return "/".join(["/api/inbox/items", *(quote(part, safe="") for part in (item_id, *below))])


def _asked_pause(response: httpx.Response, usual: float) -> float:
    asked = response.headers.get("retry-after", "")
    return min(float(asked), _LONGEST_PAUSE_SECONDS) if asked.isdecimal() else usual


def _system_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container user without a name
        raise Invalid("cannot determine your user name", hint="set it with --as NAME") from None
