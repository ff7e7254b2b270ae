"""The audit page: search, verify and export the timeline."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from assent.audit.service import Audit, Verdict
from assent.errors import AssentError, Invalid
from assent.identity.model.access import Principal, Scope
from assent.identity.rows import users
from assent.kernel import canonical, jsontext
from assent.kernel.events import Entry
from assent.kernel.ids import as_uuid
from assent.kernel.store.paging import Page
from assent.kernel.store.ports import Store
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute, mendable
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.views import people
from assent.surfaces.web.views.shell import Shell

PAGE = 50
MOST_BREAKS = 50
_PATH = "/inbox/audit"
KINDS = ("item", "grant", "approval", "policy", "key", "user", "session", "cron", "delivery", "reason", "payload")
"""First words of event kinds."""

_UNREAD = frozenset({"hash"})
_PREVIEW = 80

Text = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class Search:
    """The search form: names instead of ids, days instead of times."""

    kind: str = ""
    actor: str = ""
    subject: str = ""
    since: str = ""
    until: str = ""
    text: str = ""

    def address(self, **more: str) -> str:
        named = {name: value for name, value in (asdict(self) | more).items() if value}
        return f"{_PATH}?{urlencode(named)}" if named else _PATH

    @property
    def empty(self) -> bool:
        return not any(asdict(self).values())


def routes(audit: Audit, store: Store, shell: Shell) -> APIRouter:
    web = APIRouter(prefix=_PATH, include_in_schema=False, route_class=PageRoute)
    desk = _Desk(audit, store, shell)

    @web.get("")
    async def audit_page(
        caller: Caller,
        kind: Text = "",
        actor: Text = "",
        subject: Text = "",
        since: Text = "",
        until: Text = "",
        text: Text = "",
        cursor: Annotated[str | None, Query(max_length=1000)] = None,
    ) -> Response:
        typed = (kind, actor, subject, since, until, text)
        return await desk.show(caller, Search(*(value.strip() for value in typed)), cursor=cursor)

    @web.post("/verification")
    async def verify(caller: Caller) -> Response:
        verdict = await audit.verify(caller) if caller.may(Scope.AUDIT_READ) else None
        return await desk.show(caller, Search(), verdict=verdict)

    return web


class _Desk:
    def __init__(self, audit: Audit, store: Store, shell: Shell) -> None:
        self._audit = audit
        self._store = store
        self._shell = shell

    async def show(
        self, caller: Principal, search: Search, *, cursor: str | None = None, verdict: Verdict | None = None
    ) -> Response:
        if not caller.may(Scope.AUDIT_READ):
            return await self._shell.refuse(caller, Scope.AUDIT_READ, here="audit", title=_("Audit"))
        entries: Page[Entry] = Page([], None)
        problem = None
        try:
            entries = await self._found(caller, search, cursor)
        except AssentError as error:
            problem = mendable(error)
        actors = [event.actor for event, _payload in entries.items]
        return await self._shell.show(
            caller,
            "audit.html",
            here="audit",
            status=problem.status if problem else 200,
            entries=entries,
            problem=problem,
            search=search,
            kinds=KINDS,
            about=about,
            preview=preview,
            first=cursor is None,
            names=await people.names(self._store, caller, actors),
            verdict=verdict,
            breaks=verdict.breaks[:MOST_BREAKS] if verdict else [],
        )

    async def _found(self, caller: Principal, search: Search, cursor: str | None) -> Page[Entry]:
        since, until = _day(search.since), _day(search.until)
        return await self._audit.search(
            caller,
            subject=_subject(search.subject),
            kind=search.kind or None,
            actor=await self._actor(caller, search.actor),
            since=since,
            until=until + timedelta(days=1) if until else None,
            text=search.text or None,
            limit=PAGE,
            cursor=cursor,
        )

    async def _actor(self, caller: Principal, named: str) -> str | None:
        """Resolves a person's name, `you`, or an actor id."""
        if not named:
            return None
        if named in ("you", _("you")):
            return caller.actor
        user = None if ":" in named else await self._store.read(caller.tenant, users.by_name, named)
        return f"reviewer:{user.id}" if user else named


def about(subject: str) -> str | None:
    """The page of an event's subject."""
    kind, _colon, id = subject.partition(":")
    if kind == "item":
        return f"/inbox/{id}"
    return {"policy": "/inbox/policies", "key": "/inbox/settings/keys", "reviewer": "/inbox/settings/people"}.get(kind)


def preview(payload: str) -> str:
    """A short summary of an event's payload, without hashes."""
    try:
        data = jsontext.load(payload)
    except ValueError:  # tampered data: the verification of the chain reports it
        return payload[:_PREVIEW]
    facts = data.items() if isinstance(data, dict) else ()
    named = [(name, value) for name, value in facts if value is not None and name not in _UNREAD]
    named.sort(key=lambda fact: fact[0] not in ("title", "name", "text", "reason", "notes"))
    texts = [f"{name}: {value if isinstance(value, str) else canonical.text(value)}" for name, value in named]
    return ", ".join(texts)[:_PREVIEW] or payload[:_PREVIEW]


def _subject(named: str) -> str | None:
    item = as_uuid(named)
    return f"item:{item}" if item else named or None


def _day(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise Invalid(_("%s is not a date such as 2026-11-16") % text) from None
