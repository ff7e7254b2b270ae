"""Everything that an item's page shows, gathered from the inbox as the caller may see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import FormData as Posted

from assent.domain.access import Principal, Scope
from assent.errors import AssentError, StaleRevision
from assent.ports import Store
from assent.services.inbox import Inbox
from assent.web import decisions, diffs, forms, people, renderers, times, words
from assent.web.decisions import Choice
from assent.web.diffs import Change
from assent.web.language import gettext as _
from assent.web.people import Names
from assent.web.renderers import Rendering
from assent.web.words import Sign

View = Mapping[str, Any]
_BY_A_REVIEWER = "item.edited"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a person tried and could not do: the error, and what they had typed."""

    problem: AssentError
    kept: Mapping[str, Any] = field(default_factory=dict)
    seen: View | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What has just become of an item, read from the item itself: a link that claims otherwise cannot lie."""

    item: View
    words: str
    undo: bool


@dataclass(frozen=True, slots=True)
class ItemPage:
    item: View
    revisions: Sequence[View]
    comments: Sequence[View]
    timeline: Sequence[View]
    names: Names
    caller: Principal

    @property
    def choices(self) -> list[Choice]:
        return decisions.choices(self.item)

    @property
    def shared(self) -> list[str]:
        """What can be said to all actions at once."""
        return [verb for verb in ("approve", "reject") if all(verb in one.allowed for one in self.choices)]

    def rendering(self, action: View | None = None) -> Rendering | None:
        """How its type shows it, beside the exact arguments."""
        return renderers.rendered(self.item, action)

    @property
    def state(self) -> Sign:
        return words.state_sign(self.item, len(self.edits))

    @property
    def decidable(self) -> bool:
        """Whether there is something to decide now, and by the caller as far as rights say."""
        return ("decide" in self.item["can"] and not self.awaited) or self.answerable

    @property
    def answerable(self) -> bool:
        """Answering a question is no decision: whoever may run agents may."""
        asks = self.item["dialect"] == "clarification" and self.item["status"] == "PENDING"
        return asks and self.caller.may(Scope.RUNS_WRITE)

    @property
    def awaited(self) -> bool:
        """An agent that was resumed with notes works on its next revision."""
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
        """A reviewer's changes in what stands now, against what the agent asked."""
        by_reviewer = {event["payload"].get("revision") for event in self._events(_BY_A_REVIEWER)}
        asked = next((one for one in reversed(self.revisions) if one["revision"] not in by_reviewer), None)
        return diffs.between(asked, self.revisions[-1]) if asked else []

    @property
    def history(self) -> list[tuple[View, list[Change]]]:
        """Every revision with what it changed, the newest first."""
        before = [None, *self.revisions[:-1]]
        pairs = zip(self.revisions, before, strict=True)
        return [(one, diffs.between(last, one) if last else []) for one, last in pairs][::-1]

    @property
    def notes(self) -> list[View]:
        """What reviewers have said to it before."""
        return [one for one in self.item["decisions"] if one["notes"]]

    @property
    def draft(self) -> Mapping[str, Any]:
        """What this person had typed, where it is still about the revision that stands."""
        draft = self.item["draft"]
        if not isinstance(draft, dict) or draft.get("hash") != self.item["hash"]:
            return {}
        typed = draft.get("typed")
        return {name: text for name, text in typed.items() if isinstance(text, str)} if isinstance(typed, dict) else {}

    @property
    def old_draft(self) -> list[str]:
        """What this person had typed for a revision that no longer stands."""
        draft = self.item["draft"]
        typed = draft.get("typed") if isinstance(draft, dict) and self.decidable else None
        return [text for text in typed.values() if isinstance(text, str) and text] if isinstance(typed, dict) else []

    @property
    def elsewhere(self) -> bool:
        """Whether somebody else has said that they decide on it."""
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
        return [one for one in self.timeline if one["kind"] == kind and isinstance(one["payload"], dict)]


async def gather(inbox: Inbox, store: Store, caller: Principal, item_id: str) -> ItemPage:
    item, revisions, comments, timeline = await inbox.opened(caller, item_id)
    actors = [item["requester"], item["decided_by"], (item["claim"] or {}).get("by")]
    actors += [one["actor"] for one in (*comments, *timeline, *item["decisions"])]
    actors += [one["author"] for one in revisions]
    return ItemPage(item, revisions, comments, timeline, await people.names(store, caller, actors), caller)


async def told(inbox: Inbox, store: Store, caller: Principal, item_id: str | None) -> Told | None:
    """What to say about the item that was handled last; nothing where the caller cannot see it."""
    if not item_id:
        return None
    try:
        page = await gather(inbox, store, caller, item_id)
    except AssentError:
        return None
    return Told(page.item, _words(page), page.undo)


def _words(page: ItemPage) -> str:
    item, standing = page.item, any(one["standing"] for one in page.item["decisions"])
    if item["status"] != "PENDING":
        return _(page.state.word)
    if times.ahead(item["snoozed_until"]):
        return _("Snoozed")
    if standing:
        return str(_("Agreed, %(given)s of %(needed)s") % item["approvals"])
    last = next((one["kind"] for one in reversed(page.timeline) if one["kind"] in _REOPENED), None)
    return _(_REOPENED.get(last or "", "Pending"))


_REOPENED = {"item.undone": "Taken back", "item.edited": "Changed, someone else has to agree"}
"""Why something that was handled waits all the same."""


def _undoable(item: View, caller: Principal) -> bool:
    closing = [one for one in item["decisions"] if one["standing"] and one["closes"]]
    return bool(closing) and closing[-1]["actor"] == caller.actor and times.ahead(item["undo_until"])


def kept(seen: View | None, posted: Posted) -> dict[str, Any]:
    """What was typed, without what was only sent along unchanged: that would hide what has changed meanwhile. What was
    chosen in a list stands under its name with `[]`."""
    found = {name: [str(one) for one in posted.getlist(name)] for name in posted if name not in _OWN}
    texts = {name: values[-1].replace("\r\n", "\n") for name, values in found.items()}
    for choice in decisions.choices(seen) if seen else ():
        texts = _own_words(choice, texts, posted)
    return texts | {f"{name}[]": values for name, values in found.items() if name in texts}


def _own_words(choice: Choice, texts: dict[str, str], posted: Posted) -> dict[str, str]:
    """Without untouched arguments and secrets, and with the ticks that were taken away."""
    arguments, form = f"{choice.prefix}arg.", f"{choice.prefix}form."
    touched = {arguments + one.name for one in forms.touched(choice.fields, arguments, posted)}
    dropped = {arguments + one.name for one in choice.fields} - touched
    dropped |= {form + one.name for one in choice.form if one.kind == "secret"}
    unticked = {arguments + one.name for one in choice.fields if one.kind == "flag"} & touched
    if any(name.startswith(form) for name in texts):
        unticked |= {form + one.name for one in choice.form if one.kind == "flag"}
    if texts.get(choice.raw) == choice.action["args_text"]:
        dropped.add(choice.raw)
    return {name: text for name, text in (dict.fromkeys(unticked, "") | texts).items() if name not in dropped}


_OWN = frozenset({"revision", "hash", "key", "q", "tab", "inbox", "sure"})


def seen_by(page: ItemPage, posted: Posted) -> View | None:
    """The item with the revision that the person had before them; none where there is no such revision."""
    wanted = decisions.number(posted), str(posted.get("hash", ""))
    found = next((one for one in page.revisions if (one["revision"], one["hash"]) == wanted), None)
    return None if found is None else {**page.item, **{name: found[name] for name in _REVISED}}


_REVISED = ("title", "description", "actions")


def stale(attempt: Attempt | None) -> bool:
    return attempt is not None and isinstance(attempt.problem, StaleRevision)
