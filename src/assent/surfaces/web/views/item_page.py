"""The data of an item's page, limited to what the caller may see."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any

from starlette.datastructures import FormData as Posted

from assent.errors import AssentError, StaleRevision
from assent.identity.model.access import Principal, Scope
from assent.kernel.store.ports import Store
from assent.review.collaboration.reasons import Reasons
from assent.review.inbox import Inbox
from assent.review.model.secrets import MASK
from assent.runs.threads.threads import Threads
from assent.surfaces.http.passkey_origins import Site
from assent.surfaces.web import titles
from assent.surfaces.web.language import gettext as _
from assent.surfaces.web.text import diffs, times, words
from assent.surfaces.web.text.diffs import Change
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views import activity, decisions, forms, looks, outcomes, people
from assent.surfaces.web.views.activity import Entry
from assent.surfaces.web.views.decisions import Choice
from assent.surfaces.web.views.looks import Look
from assent.surfaces.web.views.outcomes import Outcome
from assent.surfaces.web.views.people import Names
from assent.surfaces.web.views.threads import context as contexts
from assent.surfaces.web.views.threads.context import Context

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


@dataclass(frozen=True)
class ItemPage:
    """Without slots: what is read for every action is computed once."""

    item: View
    revisions: Sequence[View]
    comments: Sequence[View]
    timeline: Sequence[View]
    names: Names
    caller: Principal
    site: Site
    context: Context = field(default_factory=Context)
    before: Sequence[View] = ()
    """The items that this one follows, the latest first."""

    after: Sequence[View] = ()
    """The items that follow this one."""

    reasons: Sequence[View] = ()
    """The saved reasons of the tenant."""

    def saved_reasons(self, use: str) -> list[View]:
        """Those for a rejection (`reject`), or for a request for a revision (`revision`)."""
        return [reason for reason in self.reasons if reason["use"] in (use, "both")]

    @cached_property
    def heading(self) -> str:
        return titles.heading(self.item)

    def sentence(self, action: View) -> str:
        return titles.sentence(self.item, action)

    def outcome(self, action: View) -> Outcome | None:
        return outcomes.of_action(self.item, action, self.context.said)

    @property
    def activity(self) -> list[Entry]:
        return activity.feed(self.revisions, self.comments, self.timeline)

    @property
    def requested(self) -> list[Request]:
        """The requests for a revision that led to this one, here and in the items before, with the changes since."""
        here = [
            Request(decision, self.item, self.changed_since(self._seen_in(decision))) for decision in _asked(self.item)
        ]
        earlier = [
            Request(decision, item, diffs.between(_beyond(item), _beyond(self.revisions[-1])))
            for item in self.before
            for decision in _asked(item)[-1:]
        ]
        return [*earlier[::-1], *here][-_MOST_REQUESTS:] if self.open else []

    def _seen_in(self, decision: View) -> View | None:
        return next((view for view in self.revisions if view["revision"] == decision["revision"]), None)

    @property
    def explanation(self) -> str | None:
        """The description of the item, unless the description of its only action is the same text."""
        text, calls = self.item["description"], self.item["actions"]
        if text and len(calls) == 1 and text == calls[0]["description"]:
            text = said_beyond(calls[0])
        if not text or text == self.heading or any(choice.says(text) for choice in self.choices):
            return None
        return str(text)

    @property
    def hearing(self) -> str:
        """How comments reach the agent."""
        heard, allowed = set(self.item["hears"]), {str(verb) for choice in self.choices for verb in choice.allowed}
        deaf = [word for verb, word in words.VERBS.items() if verb in allowed - heard]
        if not deaf:
            return _("The agent receives the comments with the decision.")
        if not heard:
            return _("This agent’s format has no text for comments: they are only in the metadata of the run.")
        told = _("The agent receives the comments with the decision; with %(verbs)s only in the run’s metadata.")
        return told % {"verbs": ", ".join(_("“%(verb)s”") % {"verb": _(word)} for word in deaf)}

    # The decision bar

    @property
    def says(self) -> str:
        """The effect of the primary button; the status of an item that cannot be decided."""
        if not self.decidable:
            return _("Waiting for a new revision from the agent.") if self.awaited else self._stands
        if len(self.choices) > 1:
            return _("%(n)s actions: choose for each, or approve all") % {"n": len(self.choices)}
        forward, [action] = self.choices[0].forward, self.item["actions"]
        if self.item["dialect"] == "breakpoint":
            return self.continues
        if forward in ("approve", "edit"):
            return _("Approve the request") if self.is_request(action) else _("Run %(name)s") % {"name": action["name"]}
        return _("Send your answer") if forward else _("Nothing to decide")

    def is_request(self, action: View) -> bool:
        """Whether the action is a request or a question, not a call of a tool."""
        return looks.is_named_after_its_type(self.item, action)

    def cautions(self, action: View) -> list[View]:
        return looks.cautions(action)

    @property
    def told(self) -> str:
        """A sentence that says what the person approves; empty if the bar names it already."""
        going = len(self.choices) == 1 and self.choices[0].forward in ("approve", "edit")
        return self.heading if going and self.decidable and self.heading != self.item["actions"][0]["name"] else ""

    @property
    def _stands(self) -> str:
        state = _(self.state.word)
        if self.item["decided_by"] is None:
            return state
        return _("%(state)s by %(name)s") % {"state": state, "name": self.names.of(self.item["decided_by"])}

    @property
    def continues(self) -> str:
        """The effect of approving a breakpoint."""
        asked = self.item["asked"]
        nodes = asked.get("next") if isinstance(asked, dict) else None
        return _("Continue to %(node)s") % {"node": ", ".join(map(str, nodes))} if nodes else _("Continue")

    @property
    def ends(self) -> str:
        return _("End thread")

    @property
    def runs(self) -> bool:
        """Whether something can be approved here, so that a high risk asks twice."""
        return any(choice.forward not in (None, "respond") for choice in self.choices)

    @property
    def edits_possible(self) -> bool:
        return any(choice.editable for choice in self.choices)

    def changes(self, kept: View) -> int:
        """The number of changed arguments in the person's input."""
        return sum(choice.changes(kept) for choice in self.choices)

    def refusals(self, verb: str) -> bool:
        """Whether this verb turns down the whole item."""
        several = len(self.choices) > 1
        return (not several or verb == "reject") and all(verb in choice.allowed for choice in self.choices)

    @property
    def offered_refusals(self) -> list[str]:
        return [verb for verb in words.REFUSE if self.choices and self.refusals(verb)]

    def description(self, action: View) -> str | None:
        """The agent's explanation, without a text that only repeats the call."""
        return said_beyond(action)

    @property
    def confirms(self) -> bool:
        """Whether an approval needs the caller's passkey."""
        return self.item["confirm"] is not None

    @cached_property
    def choices(self) -> list[Choice]:
        return decisions.choices(self.item)

    @property
    def shared(self) -> list[str]:
        """The verbs that apply to all actions at once."""
        return [verb for verb in ("approve", "reject") if all(verb in choice.allowed for choice in self.choices)]

    def look(self, choice: Choice) -> Look:
        """The human view of an action."""
        asks = bool(choice.form) and self.decidable
        return looks.of_action(self.item, choice.action, self.heading, asks=asks)

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

    @cached_property
    def edits(self) -> list[Change]:
        """Reviewers' changes in the current revision, compared with the agent's last one."""
        by_reviewer = {event["payload"].get("revision") for event in self._events(_BY_A_REVIEWER)}
        if not by_reviewer:
            return []
        asked = next((view for view in reversed(self.revisions) if view["revision"] not in by_reviewer), None)
        return diffs.between(asked, self.revisions[-1]) if asked else []

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
        return "undo" in self.item["can"]

    def changed_since(self, seen: View | None) -> list[Change]:
        return diffs.between(seen, self.revisions[-1]) if seen else []

    def _events(self, kind: str) -> list[View]:
        return [event for event in self.timeline if event["kind"] == kind and isinstance(event["payload"], dict)]


@dataclass(frozen=True, slots=True)
class Request:
    """A request for a revision, and what changed since."""

    decision: View
    item: View
    changes: Sequence[Change]


def _beyond(view: View) -> View:
    """The view without a title and a description that only repeat its calls."""
    calls = view["actions"]
    named = view["title"] == ", ".join(str(call["name"]) for call in calls)
    repeats = len(calls) == 1 and view["description"] == calls[0]["description"] and said_beyond(calls[0]) is None
    return {**view, "title": None if named else view["title"], "description": None if repeats else view["description"]}


def _asked(item: View) -> list[View]:
    return [decision for decision in item["decisions"] if decision["kind"] == "revision_request" and decision["notes"]]


_BOILERPLATE = re.compile(r"(?P<prefix>.*?)\n\nTool: (?P<name>[^\n]*)\nArgs: \{.*\}\s*", re.DOTALL)
_DEFAULT_PREFIX = "Tool execution requires approval"


def said_beyond(action: View) -> str | None:
    """The description of an action without LangChain's default text, which repeats the name and the arguments."""
    description = action["description"]
    repeats = _BOILERPLATE.fullmatch(description) if description else None
    if repeats is None or repeats["name"] != action["name"]:
        return description or None
    prefix = str(repeats["prefix"]).strip()
    return None if prefix == _DEFAULT_PREFIX else prefix or None


async def gather(
    inbox: Inbox,
    store: Store,
    caller: Principal,
    item_id: str,
    site: Site | None = None,
    threads: Threads | None = None,
    reasons: Reasons | None = None,
) -> ItemPage:
    item, revisions, comments, timeline = await inbox.opened(caller, item_id)
    before, after = await _around(inbox, caller, item)
    context = await contexts.gather(threads, caller, item)
    actors = [item["requester"], item["decided_by"], item["owner"], (item["claim"] or {}).get("by")]
    actors += [entry["actor"] for entry in (*comments, *timeline, *item["decisions"])]
    actors += [actor for comment in comments for actor in comment["mentions"]]
    actors += [(event["payload"] or {}).get("owner") for event in timeline if event["kind"] == "item.assigned"]
    actors += [revision["author"] for revision in revisions]
    actors += [decision["actor"] for earlier in before for decision in earlier["decisions"]]
    names = await people.names(store, caller, actors)
    saved = await reasons.list(caller) if reasons and "decide" in item["can"] else []
    return ItemPage(item, revisions, comments, timeline, names, caller, site or Site(), context, before, after, saved)


async def _around(inbox: Inbox, caller: Principal, item: View) -> tuple[list[View], list[View]]:
    """The items before and after this one in its trail, as far as the caller sees them."""
    before, last = list[View](), item
    while last["follows"] and len(before) < _MOST_REQUESTS:
        earlier = await _seen(inbox, caller, last["follows"])
        if earlier is None:
            break
        before.append(earlier)
        last = earlier
    after = [await _seen(inbox, caller, item_id) for item_id in item["followed_by"]]
    return before, [view for view in after if view is not None]


async def _seen(inbox: Inbox, caller: Principal, item_id: str) -> View | None:
    try:
        return await inbox.get(caller, item_id)
    except AssentError:
        return None


_MOST_REQUESTS = 5


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
