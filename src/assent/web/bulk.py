"""Many at once: first what would become of each, then, once more pressed, what did. High risk is never among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from assent.domain.access import Principal
from assent.domain.questions import Verb
from assent.errors import AssentError, Invalid
from assent.http.authentication import Caller
from assent.services.inbox import MOST_AT_ONCE, Inbox, Named
from assent.web import decisions
from assent.web.errors import PageRoute
from assent.web.inbox import new_key
from assent.web.language import gettext as _
from assent.web.shell import Shell
from assent.web.words import ASKS_TWICE

_VERBS = {"approval": Verb.APPROVE, "rejection": Verb.REJECT}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What would become of an item, or did: `problem` where nothing."""

    named: Named
    item: Mapping[str, Any] | None
    problem: str | None = None

    @property
    def chosen(self) -> str:
        return f"{self.named.id} {self.named.revision} {self.named.hash}"


def routes(inbox: Inbox, shell: Shell) -> APIRouter:
    web = APIRouter(prefix="/inbox/bulk", include_in_schema=False, route_class=PageRoute)

    @web.get("")
    async def nothing_chosen(caller: Caller) -> Response:
        return RedirectResponse("/inbox", 303)

    @web.post("")
    async def decide(request: Request, caller: Caller) -> Response:
        posted = await request.form(max_fields=2 * MOST_AT_ONCE)
        verb, chosen, sure = _VERBS.get(str(posted.get("do"))), _chosen(posted), bool(posted.get("sure"))
        if verb is None:
            raise Invalid("choose what to do with them: approve or reject")
        outcomes = await _outcomes(inbox, caller, chosen, verb, posted, dry_run=not sure)
        facts: dict[str, Any] = {"do": posted["do"], "outcomes": outcomes, "done": sure, "key": new_key()}
        kept = {name: str(posted.get(name) or "")[:500] for name in ("q", "inbox")}
        return await shell.show(caller, "bulk.html", here="inbox", kept=kept, **facts)

    return web


def _chosen(posted: FormData) -> list[Named]:
    """Each item once, by the revision that was seen when it was chosen."""
    parts = (str(one).split(" ") for one in posted.getlist("chosen"))
    named = {part[0]: Named(part[0], int(part[1]), part[2]) for part in parts if _is_named(part)}
    return list(named.values())[:MOST_AT_ONCE]


def _is_named(part: Sequence[str]) -> bool:
    return len(part) == 3 and part[1].isdecimal() and len(part[1]) < 10


async def _outcomes(
    inbox: Inbox, caller: Principal, chosen: Sequence[Named], verb: Verb, posted: FormData, *, dry_run: bool
) -> list[Outcome]:
    items = {one.id: await _item(inbox, caller, one.id) for one in chosen}
    refused = {id: why for id, item in items.items() if (why := _refusal(item, verb))}
    results = await inbox.decide_many(
        caller,
        [one for one in chosen if one.id not in refused],
        verb,
        message=decisions.text(posted, "message"),
        dry_run=dry_run,
        via=decisions.VIA,
        key=str(posted.get("key") or "")[:200] or None,
    )
    told = {one.id: None if one.ok else str(one.error.get("message", "")) for one in results}
    after = items if dry_run else {one.id: await _item(inbox, caller, one.id) for one in chosen}
    return [Outcome(one, after[one.id], refused.get(one.id, told.get(one.id))) for one in chosen]


async def _item(inbox: Inbox, caller: Principal, item_id: str) -> Mapping[str, Any] | None:
    try:
        return await inbox.get(caller, item_id)
    except AssentError:
        return None


def _refusal(item: Mapping[str, Any] | None, verb: Verb) -> str | None:
    if item is None:
        return _("It is not there.")
    if verb is Verb.APPROVE and item["risk"] in ASKS_TWICE:
        return _("High risk is approved one by one.")
    return None
