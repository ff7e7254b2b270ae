"""The actions of an item's page. Each runs under an idempotency key and returns the next page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import get_args

from starlette.datastructures import FormData

from assent.errors import Conflict, InvalidDecision, NotFound
from assent.federation.threads import RemoteThreads
from assent.identity.model.access import Principal
from assent.kernel.canonical import Json
from assent.kernel.store.ports import Store
from assent.review.collaboration.reasons import Reasons
from assent.review.decisions.confirmation import Options
from assent.review.decisions.decide import Proposal
from assent.review.deliveries import Deliveries
from assent.review.inbox import Doubt, Inbox
from assent.runs.threads.threads import Threads
from assent.surfaces.http.passkey_origins import Site
from assent.surfaces.web.text import times
from assent.surfaces.web.views import decisions, forms, item_list, item_page
from assent.surfaces.web.views.forms import FieldProblem
from assent.surfaces.web.views.item_list import Wanted
from assent.surfaces.web.views.item_page import ItemPage
from assent.surfaces.web.views.threads import context as contexts
from assent.surfaces.web.views.threads.context import Context, View


@dataclass(frozen=True, slots=True)
class Onward:
    """The next page: an item, or the list if None; `done` is the item just handled."""

    item_id: str | None
    done: str | None = None
    place: str = ""

    def address(self, wanted: Wanted) -> str:
        path = f"/inbox/{self.item_id}" if self.item_id else "/inbox"
        return f"{path}{wanted.query(done=self.done)}{self.place}"


Act = Callable[[ItemPage, FormData, Wanted, str], Awaitable[Onward]]
Ask = Callable[[ItemPage, FormData], Awaitable[Options | None]]

_OUTCOMES: tuple[Doubt, ...] = get_args(Doubt)
SNOOZES = {"1h": timedelta(hours=1), "4h": timedelta(hours=4), "1d": timedelta(days=1), "7d": timedelta(days=7)}


class Desk:
    def __init__(
        self,
        inbox: Inbox,
        deliveries: Deliveries,
        store: Store,
        undo_window: timedelta,
        threads: Threads | None = None,
        reasons: Reasons | None = None,
        remote: RemoteThreads | None = None,
    ) -> None:
        self.inbox = inbox
        self.remote = remote
        self.threads = threads
        self.reasons = reasons
        self.deliveries = deliveries
        self.store = store
        self.undo_window = undo_window

    @property
    def acts(self) -> dict[str, Act]:
        """The actions by the last part of their path."""
        return {
            "decision": self.decide,
            "revision-request": self.send_back,
            "undo": self.undo,
            "cancellation": self.cancel,
            "in-doubt": self.settle,
            "comments": self.comment,
            "delivery": self.retry,
            "snooze": self.snooze,
            "claim": self.claim,
            "owner": self.assign,
            "resubmission": self.resubmit,
        }

    async def page(self, caller: Principal, item_id: str, site: Site | None = None) -> ItemPage:
        return await item_page.gather(self.inbox, self.store, caller, item_id, site, self.threads, self.reasons)

    async def remote_context(self, caller: Principal, item_id: str) -> tuple[View, Context]:
        """The conversation that led to an item of another deployment, as that deployment has it now."""
        item = await self.inbox.get(caller, item_id)
        if self.remote is None or not item["source"]["remote"]:
            raise NotFound("this item is not from another deployment")
        return item, await contexts.gather_remote(self.remote, caller, item)

    @property
    def confirmations(self) -> dict[str, Ask]:
        """Passkey challenges by the last part of the action's path."""
        return {"decision": self.to_confirm, "in-doubt": self.to_confirm_doubt}

    async def decide(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        proposal, proof = self._proposal(page, posted), decisions.proof(posted, page.site.party)
        await self.inbox.decide(page.caller, page.item["id"], proposal, key=key, proof=proof)
        return await self._onwards(page, wanted)

    async def to_confirm(self, page: ItemPage, posted: FormData) -> Options | None:
        proposal = self._proposal(page, posted)
        return await self.inbox.to_confirm(page.caller, page.item["id"], proposal, page.site.party)

    async def to_confirm_doubt(self, page: ItemPage, posted: FormData) -> Options | None:
        if posted.get("outcome") != "run_again":
            return None
        grant_id = decisions.text(posted, "grant_id")
        return await self.inbox.to_confirm_doubt(page.caller, page.item["id"], page.site.party, grant_id=grant_id)

    def _proposal(self, page: ItemPage, posted: FormData) -> Proposal:
        seen = item_page.seen_by(page, posted)
        if seen is None:
            return Proposal(decisions.number(posted), str(posted.get("hash", "")), via=decisions.VIA)
        return decisions.proposal(seen, posted, grace=self.undo_window)

    async def send_back(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        await self.inbox.ask_for_revision(
            page.caller,
            page.item["id"],
            revision=decisions.number(posted),
            hash=str(posted.get("hash", "")),
            notes=decisions.text(posted, "revision_notes") or decisions.text(posted, "saved") or "",
            grace=self.undo_window,
            via=decisions.VIA,
            key=key,
        )
        return await self._onwards(page, wanted)

    async def undo(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        await self.inbox.undo(page.caller, page.item["id"], key=key)
        return Onward(page.item["id"], done=page.item["id"])

    async def cancel(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        await self.inbox.cancel(page.caller, page.item["id"], notes=decisions.text(posted, "cancel_notes"), key=key)
        return await self._onwards(page, wanted)

    async def settle(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        outcome, notes = posted.get("outcome"), decisions.text(posted, "doubt_notes")
        chosen = next((doubt for doubt in _OUTCOMES if doubt == outcome), None)
        if chosen is None:
            raise InvalidDecision("choose an outcome: done, run again, or abandon")
        proof = decisions.proof(posted, page.site.party)
        await self.inbox.settle_doubt(
            page.caller,
            page.item["id"],
            chosen,
            notes=notes,
            grant_id=decisions.text(posted, "grant_id"),
            via=decisions.VIA,
            key=key,
            proof=proof,
        )
        return Onward(page.item["id"])

    async def comment(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        await self.inbox.comment(page.caller, page.item["id"], decisions.text(posted, "comment") or "", key=key)
        if page.draft.get("comment"):
            typed = {name: text for name, text in page.draft.items() if name != "comment"}
            draft: Json = {"hash": page.item["hash"], "typed": typed} if typed else None
            await self.inbox.save_draft(page.caller, page.item["id"], draft)
        return Onward(page.item["id"], place="#activity")

    async def retry(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        if page.item["delivery"] is None:
            raise Conflict("nothing to deliver")
        await self.deliveries.retry(page.caller, page.item["delivery"]["id"])
        return Onward(page.item["id"])

    async def snooze(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        """Hides the item from the caller for a while; without a duration, ends the snooze."""
        lasts = SNOOZES.get(str(posted.get("for") or ""))
        await self.inbox.snooze(page.caller, page.item["id"], times.now() + lasts if lasts else None)
        return await self._onwards(page, wanted) if lasts else Onward(page.item["id"])

    async def assign(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        """Makes a person the owner: the one of the button, nobody (`none`), or the one whose name was typed."""
        person = str(posted.get("to") or posted.get("owner") or "").strip()
        await self.inbox.assign(page.caller, page.item["id"], None if person == "none" else person)
        return Onward(page.item["id"])

    async def claim(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        act = self.inbox.unclaim if posted.get("release") else self.inbox.claim
        await act(page.caller, page.item["id"])
        return Onward(page.item["id"])

    async def resubmit(self, page: ItemPage, posted: FormData, wanted: Wanted, key: str) -> Onward:
        """Resubmits with a new description, and with new arguments if there is one action."""
        changes: dict[str, Json] = {"description": decisions.text(posted, "resubmit_description")}
        written, actions = decisions.text(posted, "resubmit_args"), page.item["actions"]
        if written is not None and len(actions) == 1 and written.strip() != actions[0]["args_text"]:
            asked = {name: actions[0][name] for name in ("key", "name", "description", "allowed", "schema")}
            changes["actions"] = [{**asked, "args": _json(written)}]
        await self.inbox.resubmit(page.caller, page.item["id"], changes, key=key)
        return Onward(page.item["id"])

    async def _onwards(self, page: ItemPage, wanted: Wanted) -> Onward:
        """Returns the next pending item, or the list."""
        following = await item_list.following(self.inbox, page.caller, wanted, page.item["id"])
        return Onward(following, done=page.item["id"])


def _json(written: str) -> Json:
    try:
        return forms.parsed("JSON", written)
    except FieldProblem as problem:
        raise InvalidDecision(str(problem)) from None
