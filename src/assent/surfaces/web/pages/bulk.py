"""Bulk decisions: a preview first, then the decisions after a confirmation. They have the cautions, the risk, the grace
period and the undo of single decisions. High-risk approvals are excluded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.datastructures import FormData

from assent.errors import AssentError, Invalid
from assent.identity.model.access import Principal
from assent.review.inbox import MOST_AT_ONCE, Inbox, Named
from assent.review.model.questions import Verb
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web import titles
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.pages.inbox import new_key
from assent.surfaces.web.text.words import ASKS_TWICE
from assent.surfaces.web.views import decisions, looks
from assent.surfaces.web.views.shell import Shell

_VERBS = {"approval": Verb.APPROVE, "rejection": Verb.REJECT}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The planned or actual outcome of one item; `problem` if it fails."""

    named: Named
    item: Mapping[str, Any] | None
    problem: str | None = None

    @property
    def heading(self) -> str:
        return titles.heading(self.item) if self.item else self.named.id

    @property
    def cautions(self) -> list[Mapping[str, Any]]:
        return [caution for action in self.item["actions"] for caution in looks.cautions(action)] if self.item else []

    @property
    def undo_until(self) -> str | None:
        """The end of the grace period, if the decision can still be undone."""
        return self.item["undo_until"] if self.item and not self.problem and "undo" in self.item["can"] else None

    @property
    def chosen(self) -> str:
        return f"{self.named.id} {self.named.revision} {self.named.hash}"


def routes(inbox: Inbox, shell: Shell, undo_window: timedelta) -> APIRouter:
    web = APIRouter(prefix="/inbox/bulk", include_in_schema=False, route_class=PageRoute)

    @web.get("")
    async def nothing_chosen(caller: Caller) -> Response:
        return RedirectResponse("/inbox", 303)

    @web.post("")
    async def decide(request: Request, caller: Caller) -> Response:
        posted = await request.form(max_fields=2 * MOST_AT_ONCE)
        verb, chosen, sure = _VERBS.get(str(posted.get("do"))), _chosen(posted), bool(posted.get("sure"))
        if verb is None:
            raise Invalid("choose approve or reject")
        grace = None if not sure else undo_window
        outcomes = await _outcomes(inbox, caller, chosen, verb, posted, grace=grace)
        done = "decided" if sure else ""
        return await _shown(shell, caller, posted, do=posted["do"], outcomes=outcomes, done=done)

    @web.post("/undo")
    async def undo(request: Request, caller: Caller) -> Response:
        posted = await request.form(max_fields=2 * MOST_AT_ONCE)
        ids = [str(value)[:100] for value in posted.getlist("undo")][:MOST_AT_ONCE]
        results = await inbox.undo_many(caller, ids, key=str(posted.get("key") or "")[:200] or None)
        problems = {result.id: None if result.ok else str(result.error.get("message", "")) for result in results}
        outcomes = [Outcome(Named(id, 0, ""), await _item(inbox, caller, id), problems[id]) for id in ids]
        return await _shown(shell, caller, posted, do="", outcomes=outcomes, done="undone")

    return web


async def _shown(shell: Shell, caller: Principal, posted: FormData, **facts: Any) -> Response:
    kept = {name: str(posted.get(name) or "")[:500] for name in ("q", "inbox")}
    return await shell.show(caller, "bulk.html", here="inbox", kept=kept, key=new_key(), **facts)


def _chosen(posted: FormData) -> list[Named]:
    """The selected items without duplicates, each with the revision that the person saw."""
    parts = (str(value).split(" ") for value in posted.getlist("chosen"))
    named = {part[0]: Named(part[0], int(part[1]), part[2]) for part in parts if _is_named(part)}
    return list(named.values())[:MOST_AT_ONCE]


def _is_named(part: Sequence[str]) -> bool:
    return len(part) == 3 and part[1].isdecimal() and len(part[1]) < 10


async def _outcomes(
    inbox: Inbox,
    caller: Principal,
    chosen: Sequence[Named],
    verb: Verb,
    posted: FormData,
    *,
    grace: timedelta | None,
) -> list[Outcome]:
    """Decides with a grace period; without one, only predicts."""
    dry_run = grace is None
    items = {named.id: await _item(inbox, caller, named.id) for named in chosen}
    warned = dry_run or bool(posted.get("cautions"))
    refused = {id: reason for id, item in items.items() if (reason := _refusal(item, verb, warned=warned))}
    results = await inbox.decide_many(
        caller,
        [named for named in chosen if named.id not in refused],
        verb,
        message=decisions.text(posted, "message"),
        dry_run=dry_run,
        grace=grace or timedelta(),
        via=decisions.VIA,
        key=str(posted.get("key") or "")[:200] or None,
    )
    problems = {result.id: None if result.ok else str(result.error.get("message", "")) for result in results}
    after = items if dry_run else {named.id: await _item(inbox, caller, named.id) for named in chosen}
    return [Outcome(named, after[named.id], refused.get(named.id, problems.get(named.id))) for named in chosen]


async def _item(inbox: Inbox, caller: Principal, item_id: str) -> Mapping[str, Any] | None:
    try:
        return await inbox.get(caller, item_id)
    except AssentError:
        return None


def _refusal(item: Mapping[str, Any] | None, verb: Verb, *, warned: bool = True) -> str | None:
    """`warned`: the person has seen the cautions."""
    if item is None:
        return _("Item not found.")
    if verb is Verb.APPROVE and item["confirm"]:
        return _("Needs your passkey: approve it on its own page.")
    if verb is Verb.APPROVE and item["risk"] in ASKS_TWICE:
        return _("Approve high-risk items one at a time.")
    if verb is Verb.APPROVE and not warned and any(action["cautions"] for action in item["actions"]):
        return _("Confirm that you read the caution.")
    return None
