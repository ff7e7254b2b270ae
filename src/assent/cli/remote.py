"""An Assent as commands speak to it: a server by URL and key, or a database beside which none runs.

Both answer to the same REST routes. On a database they are called inside this process, in the name of the person who
runs the command: whoever may write to the file may decide. A call that changes something carries one Idempotency-Key
for the whole command, so that trying again after a broken connection does nothing twice.
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
from assent.cli import problems
from assent.cli.options import TENANT, AsJson, Database, Tenant, run_beside, settings
from assent.domain.access import ROLE_SCOPES, Kind, Principal, Role
from assent.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from assent.settings import is_loopback
from assent.store.paging import LARGEST_PAGE

T = TypeVar("T")
View = dict[str, Any]

_PATIENCE_SECONDS = 30.0
_PAUSES_SECONDS = (0.3, 1.0, 2.0)
_LONGEST_PAUSE_SECONDS = 10.0
_SHORTEST_PREFIX = 8
_ID_LENGTH = 36

Url = Annotated[str | None, typer.Option(help="Where the server is; without it ASSENT_URL.", metavar="URL")]
Key = Annotated[str | None, typer.Option(help="An API key; without it ASSENT_API_KEY.", metavar="KEY")]
As = Annotated[str | None, typer.Option("--as", help="With --database: who does it.", metavar="NAME")]


@dataclass(frozen=True, slots=True)
class Place:
    """Which Assent a command works on, as whom, and how it answers."""

    url: str | None = None
    key: str | None = None
    database: str | None = None
    tenant: str = TENANT
    name: str | None = None
    as_json: bool = False


def placed(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command whose first parameter is a `Place` the options that say which."""

    @wraps(command)
    def run(*, url: str | None, key: str | None, database: str | None, tenant: str, **others: Any) -> None:
        name, as_json = others.pop("name"), others.pop("as_json")
        if database and (url or key):
            raise typer.BadParameter("--database stands for --url and --key")
        if not database and (name or tenant != TENANT):
            raise typer.BadParameter("--as and --tenant go with --database; at a server the key says who you are")
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
"""In whose name a command works on a database: from its operator and the name that was given."""


async def reader(services: Services, operator: Principal, name: str | None) -> Principal:
    """Looking makes nobody: without a name, or as someone who is not known yet, it is the operator who looks."""
    user = await services.users.find(operator, name) if name else None
    return operator if user is None else await person(services, operator, name)


async def known(services: Services, operator: Principal, name: str | None) -> Principal:
    """The person whose things these are, where they are known already: looking makes nobody."""
    user = await services.users.find(operator, name or _system_name())
    return operator if user is None else await person(services, operator, user.name)


async def person(services: Services, operator: Principal, name: str | None) -> Principal:
    """The person of that name, or of the name that the system knows you by; new ones become reviewers."""
    named = name or _system_name()
    user = await services.users.find(operator, named)
    if user is None:
        user = await services.users.create(operator, name=named, role=Role.REVIEWER)
    if user.disabled_at is not None:
        raise Forbidden(f"the user {named!r} is disabled")
    return Principal(Kind.REVIEWER, user.id, user.name, operator.tenant, ROLE_SCOPES[user.role])


async def keeper(services: Services, operator: Principal, name: str | None) -> Principal:
    """Policies are the operator's, unless someone is named."""
    return operator if name is None else await person(services, operator, name)


def call(place: Place, use: Callable[[Remote], Awaitable[T]], *, who: Who = person) -> T:
    """Runs what a command does over the place that it was given."""
    if place.database is None:
        return asyncio.run(_over_http(place, use))

    async def inside(services: Services, operator: Principal) -> T:
        from assent.surfaces import local_inbox_app  # slow to import

        caller = await who(services, operator, place.name)
        transport = httpx.ASGITransport(local_inbox_app(services, caller))
        async with httpx.AsyncClient(transport=transport, base_url="http://inbox") as client:
            return await use(Remote(client, "the database"))

    return run_beside(place.database, None, place.tenant, inside)


async def _over_http(place: Place, use: Callable[[Remote], Awaitable[T]]) -> T:
    found = settings(url=place.url, api_key=place.key)
    key = found.api_key.get_secret_value().strip() if found.api_key else ""
    if not (key.isascii() and key.isprintable()):
        raise Invalid("that is not an API key", hint="give it with --key or ASSENT_API_KEY")
    # A proxy of the surroundings is not asked for what runs on this machine.
    surroundings = not is_loopback(urlsplit(found.url).hostname or "")
    headers = {"x-api-key": key} if key else {}
    async with httpx.AsyncClient(
        base_url=found.url, headers=headers, timeout=_PATIENCE_SECONDS, trust_env=surroundings
    ) as client:
        return await use(Remote(client, found.url))


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
        """Changes something. Tried again where the answer got lost, if doing it twice would be doing it once."""
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
        raise AssertionError("the last try returns or raises")

    async def pages(self, path: str, *, most: int | None = None, **query: Any) -> AsyncIterator[View]:
        """Page after page, until there is none left or `most` entries were there."""
        cursor, left = None, most
        while True:
            size = LARGEST_PAGE if left is None else min(left, LARGEST_PAGE)
            page: View = await self.get(path, limit=size, cursor=cursor, **query)
            yield page
            cursor, left = page["next"], None if left is None else left - len(page["items"])
            if cursor is None or left == 0:
                return

    async def item(self, named: str) -> View:
        """The item with this id, or the only one whose id begins so."""
        path = item_path(named if len(named) == _ID_LENGTH else await self._whole_id(named))
        found: View = await self.get(path)
        return found

    async def _whole_id(self, prefix: str) -> str:
        if len(prefix) < _SHORTEST_PREFIX:
            raise Invalid(
                f"{prefix!r} is too short", hint=f"give the id, or at least {_SHORTEST_PREFIX} characters of it"
            )
        for wanted in ("is:pending", ""):
            found = {
                str(item["id"]): item
                async for page in self.pages("/api/inbox/items", filter=wanted)
                for item in page["items"]
                if str(item["id"]).startswith(prefix.lower())
            }
            if len(found) > 1:
                raise Conflict(f"{prefix} begins {len(found)} ids", hint=problems.candidates(list(found.values())))
            if found:
                return next(iter(found))
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
            hint="is it running, and is --url (or ASSENT_URL) right? assent demo listens on port 8002",
        )


def item_path(item_id: str, *below: str) -> str:
    return "/".join(["/api/inbox/items", *(quote(part, safe="") for part in (item_id, *below))])


def _asked_pause(response: httpx.Response, usual: float) -> float:
    asked = response.headers.get("retry-after", "")
    return min(float(asked), _LONGEST_PAUSE_SECONDS) if asked.isdecimal() else usual


def _system_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        raise Invalid("nobody knows your name here", hint="say who decides: --as NAME") from None
