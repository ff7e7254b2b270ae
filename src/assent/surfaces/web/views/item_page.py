"""The data of an item's page, limited to what the caller may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from starlette.datastructures import FormData as Posted

from assent.errors import AssentError, StaleRevision
from assent.identity.model.access import Principal, Scope
from assent.kernel.store.ports import Store
from assent.review.inbox import Inbox
from assent.review.model.secrets import MASK
from assent.surfaces.http.passkey_origins import Site
from assent.surfaces.web import renderers
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.renderers import Rendering
from assent.surfaces.web.text import diffs, times, words
from assent.surfaces.web.text.diffs import Change
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views import decisions, forms, people
from assent.surfaces.web.views.decisions import Choice
from assent.surfaces.web.views.people import Names

View = Mapping[str, Any]
_BY_A_REVIEWER = "item.edited"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failed action: the error and the person's input."""

    problem: AssentError
    kept: Mapping[str, Any] = field(default_factory=dict)
    seen: View | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """The result of the last action, read from the item, so that a forged link cannot fake it."""

    item: View
    words: str
    undo: bool

    @property
    def seconds(self) -> int:
        """Seconds until the decision takes effect, at least 1."""
        left = times.parsed(self.item["undo_until"]) - times.now()
        return max(1, ceil(left.total_seconds()))


@dataclass(frozen=True, slots=True)
class ItemPage:
    item: View
    revisions: Sequence[View]
    comments: Sequence[View]
    timeline: Sequence[View]
    names: Names
    caller: Principal
    site: Site

    @property
    def confirms(self) -> bool:
        """Whether an approval needs the caller's passkey."""
        return self.item["confirm"] is not None

    @property
    def choices(self) -> list[Choice]:
        return decisions.choices(self.item)

    @property
    def shared(self) -> list[str]:
        """The verbs that apply to all actions at once."""
        return [verb for verb in ("approve", "reject") if all(verb in choice.allowed for choice in self.choices)]

    def rendering(self, action: View | None = None) -> Rendering | None:
        """The rendering by type, shown beside the exact arguments."""
        return renderers.rendered(self.item, action)

    @property
    def state(self) -> Sign:
        return words.state_sign(self.item, len(self.edits))

    @property
    def decidable(self) -> bool:
        """Whether the caller can decide the item now."""
        return "decide" in self.item["can"] and not self.awaited

    @property
    def refused(self) -> bool:
        """Whether the item is open but the caller may not decide it."""
        return self.open and self.item["refusal"] is not None

    @property
    def open(self) -> bool:
        return self.item["status"] in ("PENDING", "REVISION_REQUESTED")

    def deciders(self, named: View) -> str:
        """The roles, groups and people that a rule allows to decide."""
        roles = (_("role %(name)s") % {"name": _(str(role))} for role in named["roles"])
        groups = (_("group %(name)s") % {"name": group} for group in named["groups"])
        return ", ".join((*roles, *groups, *named["people"]))

    @property
    def awaited(self) -> bool:
        """Whether the agent is working on a requested revision."""
        return self.item["status"] == "REVISION_REQUESTED" and self.item["source"]["interrupt_id"] is not None

    @property
    def may_send_back(self) -> bool:
        may = "request_revision" in self.item["can"] and self.item["status"] == "PENDING"
        return may and decisions.takes_revisions(self.item)

    @property
    def may_retry(self) -> bool:
        delivery = self.item["delivery"]
        return delivery is not None and delivery["status"] == "failed" and self.caller.may(Scope.RUNS_WRITE)

    @property
    def edits(self) -> list[Change]:
        """Reviewers' changes in the current revision, compared with the agent's last one."""
        by_reviewer = {event["payload"].get("revision") for event in self._events(_BY_A_REVIEWER)}
        asked = next((view for view in reversed(self.revisions) if view["revision"] not in by_reviewer), None)
        return diffs.between(asked, self.revisions[-1]) if asked else []

    @property
    def history(self) -> list[tuple[View, list[Change]]]:
        """Every revision with its changes, newest first."""
        before = [None, *self.revisions[:-1]]
        pairs = zip(self.revisions, before, strict=True)
        return [(revision, diffs.between(last, revision) if last else []) for revision, last in pairs][::-1]

    @property
    def notes(self) -> list[View]:
        """The decisions with notes."""
        return [decision for decision in self.item["decisions"] if decision["notes"]]

    @property
    def draft(self) -> Mapping[str, Any]:
        """The caller's draft, if it is for the current revision."""
        draft = self.item["draft"]
        if not isinstance(draft, dict) or draft.get("hash") != self.item["hash"]:
            return {}
        typed = draft.get("typed")
        return {name: text for name, text in typed.items() if isinstance(text, str)} if isinstance(typed, dict) else {}

    @property
    def old_draft(self) -> list[str]:
        """The texts of the caller's draft for an earlier revision."""
        draft = self.item["draft"]
        typed = draft.get("typed") if isinstance(draft, dict) and self.decidable else None
        return [text for text in typed.values() if isinstance(text, str) and text] if isinstance(typed, dict) else []

    @property
    def elsewhere(self) -> bool:
        """Whether somebody else claimed the item."""
        return self.item["claim"] is not None and not self.mine

    @property
    def mine(self) -> bool:
        return self.item["claim"] is not None and self.item["claim"]["by"] == self.caller.actor

    @property
    def undo(self) -> bool:
        return _undoable(self.item, self.caller)

    def changed_since(self, seen: View | None) -> list[Change]:
        return diffs.between(seen, self.revisions[-1]) if seen else []

    def _events(self, kind: str) -> list[View]:
        return [event for event in self.timeline if event["kind"] == kind and isinstance(event["payload"], dict)]


async def gather(inbox: Inbox, store: Store, caller: Principal, item_id: str, site: Site | None = None) -> ItemPage:
    item, revisions, comments, timeline = await inbox.opened(caller, item_id)
    actors = [item["requester"], item["decided_by"], (item["claim"] or {}).get("by")]
    actors += [entry["actor"] for entry in (*comments, *timeline, *item["decisions"])]
    actors += [revision["author"] for revision in revisions]
    names = await people.names(store, caller, actors)
    return ItemPage(item, revisions, comments, timeline, names, caller, site or Site())


async def told(inbox: Inbox, store: Store, caller: Principal, item_id: str | None) -> Told | None:
    """The result of the last action; None if the caller cannot see the item."""
    if not item_id:
        return None
    try:
        page = await gather(inbox, store, caller, item_id)
    except AssentError:
        return None
    return Told(page.item, _words(page), page.undo)


def _words(page: ItemPage) -> str:
    item, standing = page.item, any(decision["standing"] for decision in page.item["decisions"])
    if item["status"] != "PENDING":
        return _(page.state.word)
    if times.ahead(item["snoozed_until"]):
        return _("Snoozed")
    if standing:
        return str(_("Approved, %(given)s of %(needed)s") % item["approvals"])
    last = next((event["kind"] for event in reversed(page.timeline) if event["kind"] in _REOPENED), None)
    return _(_REOPENED.get(last or "", "Pending"))


_REOPENED = {"item.undone": "Undone", "item.edited": "Edited: another person must approve"}
"""Events after which a handled item is pending again."""


def _undoable(item: View, caller: Principal) -> bool:
    closing = [decision for decision in item["decisions"] if decision["standing"] and decision["closes"]]
    return bool(closing) and closing[-1]["actor"] == caller.actor and times.ahead(item["undo_until"])


def kept(seen: View | None, posted: Posted) -> dict[str, Any]:
    """The person's input without unchanged fields, which would hide newer values. Multiple choices are stored under the
    name plus `[]`."""
    sent = {name: [str(value) for value in posted.getlist(name)] for name in posted if name not in _OWN}
    texts = {name: values[-1].replace("\r\n", "\n") for name, values in sent.items()}
    for choice in decisions.choices(seen) if seen else ():
        texts = _own_words(choice, texts, posted)
    return texts | {f"{name}[]": values for name, values in sent.items() if name in texts}


def _own_words(choice: Choice, texts: dict[str, str], posted: Posted) -> dict[str, str]:
    """Drops untouched arguments and secrets; adds cleared checkboxes."""
    arguments, form = f"{choice.prefix}arg.", f"{choice.prefix}form."
    touched = {arguments + item.name for item in forms.touched(choice.fields, arguments, posted)}
    dropped = {arguments + item.name for item in choice.fields} - touched
    dropped |= {form + item.name for item in choice.form if item.kind == "secret"}
    dropped |= {arguments + item.name for item in choice.fields if item.shown == MASK}
    unticked = {arguments + item.name for item in choice.fields if item.kind == "flag"} & touched
    if any(name.startswith(form) for name in texts):
        unticked |= {form + item.name for item in choice.form if item.kind == "flag"}
    if texts.get(choice.raw) == choice.action["args_text"]:
        dropped.add(choice.raw)
    return {name: text for name, text in (dict.fromkeys(unticked, "") | texts).items() if name not in dropped}


_OWN = frozenset({"revision", "hash", "key", "q", "tab", "inbox", "sure", "assertion"})


def seen_by(page: ItemPage, posted: Posted) -> View | None:
    """The item with the revision that the person saw; None if it does not exist."""
    wanted = decisions.number(posted), str(posted.get("hash", ""))
    seen = next((view for view in page.revisions if (view["revision"], view["hash"]) == wanted), None)
    return None if seen is None else {**page.item, **{name: seen[name] for name in _REVISED}}


_REVISED = ("title", "description", "actions")


def stale(attempt: Attempt | None) -> bool:
    return attempt is not None and isinstance(attempt.problem, StaleRevision)
