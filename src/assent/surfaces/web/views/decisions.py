"""Parses the item's form into a decision on the revision that the person saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import FormData as Posted

from assent.errors import InvalidDecision, Problem
from assent.identity.model.passkeys import Party, Proof
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review import dialects
from assent.review.decisions.decide import Proposal
from assent.review.model.questions import Action, ItemType, Question, Verb, Verdict
from assent.review.model.secrets import MASK
from assent.surfaces.web.text.words import ASKS_TWICE
from assent.surfaces.web.views import forms
from assent.surfaces.web.views.forms import Field, FieldProblem

VIA = "web"
_GOING_AHEAD = frozenset({Verb.APPROVE, Verb.EDIT, Verb.ACCEPT})
_FORWARD = (Verb.APPROVE, Verb.ACCEPT, Verb.EDIT, Verb.RESPOND)
_NEGATIVE = (Verb.REJECT, Verb.IGNORE, Verb.DECLINE, Verb.CANCEL)

View = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """One action with its inputs; input names start with `prefix`."""

    action: View
    prefix: str
    fields: tuple[Field, ...]
    form: tuple[Field, ...]

    @property
    def allowed(self) -> tuple[Verb, ...]:
        return tuple(map(Verb, self.action["allowed"]))

    @property
    def editable(self) -> bool:
        return Verb.EDIT in self.allowed

    @property
    def raw(self) -> str:
        """Name of the JSON input: the arguments if editable, otherwise the answer."""
        return self.prefix + "raw"

    @property
    def link(self) -> str | None:
        """The page to visit, if the action asks for a visit. Any other `url` argument is not a link."""
        visits = Verb.ACCEPT in self.allowed and self.action["schema"] is None
        url = self.action["args"].get("url") if visits and isinstance(self.action["args"], dict) else None
        return url if isinstance(url, str) and urlsplit(url).scheme in ("http", "https") else None

    @property
    def masked(self) -> bool:
        return MASK in self.action["args_text"]

    def touched(self, kept: View) -> bool:
        """Whether the person's input contains arguments of this action."""
        return self.changes(kept) > 0

    def changes(self, kept: View) -> int:
        """The number of inputs in which the person changed this action's arguments."""
        names = {f"{self.prefix}arg.{field.name}": field.shown for field in self.fields}
        names[self.raw] = self.action["args_text"]
        return sum(name in kept and kept[name] != shown for name, shown in names.items()) if self.editable else 0

    @property
    def refusal(self) -> Verb | None:
        """The verb that turns the action down."""
        return next((verb for verb in _NEGATIVE if verb in self.allowed), None)

    @property
    def forward(self) -> Verb | None:
        """The verb of the primary button: it lets the call run, or sends the answer."""
        return next((verb for verb in _FORWARD if verb in self.allowed), None)

    def says(self, text: str) -> bool:
        """Whether an argument equals this text."""
        args = self.action["args"]
        return isinstance(args, dict) and text in args.values()


def choices(item: View) -> list[Choice]:
    return [_choice(index, action) for index, action in enumerate(item["actions"])]


def _choice(index: int, action: View) -> Choice:
    editable = "edit" in action["allowed"]
    asks = "accept" in action["allowed"] and action["schema"] is not None
    return Choice(
        action,
        f"a{index}.",
        tuple(forms.of_args(action["args"], action["schema"])) if editable else (),
        tuple(forms.of_schema(action["schema"])) if asks else (),
    )


def takes_revisions(item: View) -> bool:
    """Whether the requester supports revision requests."""
    if item["source"]["interrupt_id"] is None:
        return True
    actions = tuple(_plain(action) for action in item["actions"])
    question = Question(item["dialect"], ItemType.TOOL, item["title"], None, actions)
    return dialects.feedback(question, "notes") is not None


def _plain(action: View) -> Action:
    return Action(action["key"], action["name"], None, "null", allowed=tuple(map(Verb, action["allowed"])))


def proposal(item: View, posted: Posted, *, grace: timedelta) -> Proposal:
    """The proposed decision. `item` has the revision that the person saw; the store rejects stale revisions."""
    offered = choices(item)
    try:
        verdicts = tuple(_verdict(choice, _verb(choice, posted), posted) for choice in offered)
    except FieldProblem as problem:
        raise InvalidDecision(str(problem), problems=[Problem(problem.label, problem.message)]) from None
    ahead = any(verdict.verb in _GOING_AHEAD for verdict in verdicts)
    if ahead and item["risk"] in ASKS_TWICE and not posted.get("sure"):
        raise InvalidDecision(f"this is {item['risk']} risk: confirm that you reviewed the arguments")
    return Proposal(
        number(posted), str(posted.get("hash", "")), verdicts, notes=text(posted, "notes"), grace=grace, via=VIA
    )


def proof(posted: Posted, party: Party | None) -> Proof | None:
    """The passkey assertion from the page's script, if any."""
    assertion = text(posted, "assertion")
    if assertion is None:
        return None
    try:
        answer = canonical.parse(assertion)
    except canonical.JsonError:
        answer = None
    return Proof(answer if isinstance(answer, dict) else {}, party)


def number(posted: Posted) -> int:
    sent = str(posted.get("revision", ""))
    return int(sent) if sent.isdecimal() and len(sent) < 10 else 0


def text(posted: Posted, name: str) -> str | None:
    """The field's text with normalised line ends; None if blank."""
    written = str(posted.get(name) or "").replace("\r\n", "\n")
    return written if written.strip() else None


def _verb(choice: Choice, posted: Posted) -> Verb:
    """The verb for this action, or for all actions. A button for all actions never overrules a choice for one."""
    own, common = str(posted.get(f"{choice.prefix}verb") or ""), str(posted.get("verb") or "")
    if own and common and own != common and not {own, common} <= _GOING_AHEAD:
        raise FieldProblem(choice.action["name"], f"you chose {own} here and {common} for all: keep one of them")
    verb = own or (common if common != Verb.EDIT or choice.editable else Verb.APPROVE)
    if verb not in {*choice.allowed}:
        problem = f"{verb} is not allowed here" if verb else "choose a decision"
        raise FieldProblem(choice.action["name"], problem)
    return Verb(verb)


def _verdict(choice: Choice, verb: Verb, posted: Posted) -> Verdict:
    key, message = choice.action["key"], text(posted, f"{choice.prefix}message")
    if message is None and verb is Verb.REJECT:
        message = text(posted, "message") or text(posted, "saved")
    if verb is Verb.EDIT:
        args = edited(choice, posted)
        if canonical.text(args) != choice.action["args_text"]:
            return Verdict(key, verb, args, message=message)
        return replace(_unchanged(choice), message=message)
    if verb in _GOING_AHEAD:
        _require_unchanged(choice, posted)
    if verb is Verb.ACCEPT:
        return Verdict(key, verb, forms.filled(choice.form, f"{choice.prefix}form.", posted) if choice.form else None)
    if verb is Verb.RESPOND and not choice.editable and (written := text(posted, choice.raw)) is not None:
        return Verdict(key, verb, forms.parsed("JSON", written), message=message)
    return Verdict(key, verb, message=message)


def _unchanged(choice: Choice) -> Verdict:
    """An edit without changes counts as an approval, if allowed."""
    if Verb.APPROVE not in choice.allowed:
        raise FieldProblem(choice.action["name"], "nothing was changed")
    return Verdict(choice.action["key"], Verb.APPROVE)


def _require_unchanged(choice: Choice, posted: Posted) -> None:
    """Raises if the person changed arguments, and the button did not say that the call runs with the changes."""
    if (
        choice.editable
        and choice.raw in posted
        and canonical.text(edited(choice, posted)) != choice.action["args_text"]
    ):
        raise FieldProblem(choice.action["name"], "you changed arguments: approve with the changes, or discard them")


def edited(choice: Choice, posted: Posted) -> Json:
    """The edited arguments, from the fields or from the JSON."""
    args, raw = choice.action["args"], text(posted, choice.raw)
    by_field = forms.edited(args, choice.fields, f"{choice.prefix}arg.", posted)
    if raw is None or raw.strip() == choice.action["args_text"]:
        return by_field
    if canonical.text(by_field) != choice.action["args_text"]:
        raise FieldProblem(choice.action["name"], "change the fields or the JSON, not both")
    return forms.parsed("JSON", raw)
