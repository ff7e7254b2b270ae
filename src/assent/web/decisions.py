"""From what a person sent with the item's form to the decision that it means, about exactly the revision they saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import FormData as Posted

from assent import dialects
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import Action, ItemType, Question, Verb, Verdict
from assent.domain.secrets import MASK
from assent.errors import InvalidDecision
from assent.services.deciding import Proposal
from assent.web import forms
from assent.web.forms import Field, FieldProblem
from assent.web.words import ASKS_TWICE

VIA = "web"
_GOING_AHEAD = frozenset({Verb.APPROVE, Verb.EDIT, Verb.ACCEPT})

View = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """One action as the page offers it. `prefix` names its inputs."""

    action: View
    prefix: str
    fields: tuple[Field, ...]
    form: tuple[Field, ...]

    @property
    def allowed(self) -> tuple[Verb, ...]:
        return tuple(map(Verb, self.action["allowed"]))

    @property
    def raw(self) -> str:
        return self.prefix + "raw"

    @property
    def link(self) -> str | None:
        """The page to visit, where that is what is asked. An argument that happens to be called `url` is no link."""
        visits = Verb.ACCEPT in self.allowed and self.action["schema"] is None
        url = self.action["args"].get("url") if visits and isinstance(self.action["args"], dict) else None
        return url if isinstance(url, str) and urlsplit(url).scheme in ("http", "https") else None

    @property
    def masked(self) -> bool:
        return MASK in self.action["args_text"]

    def touched(self, kept: View) -> bool:
        """Whether its arguments are among what a person had typed."""
        return any(name == self.raw or name.startswith(f"{self.prefix}arg.") for name in kept)

    def says(self, text: str) -> bool:
        """Whether this text stands among the arguments already."""
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
    """Whether who asked can be sent back to it with notes."""
    if item["source"]["interrupt_id"] is None:
        return True
    actions = tuple(_plain(one) for one in item["actions"])
    question = Question(item["dialect"], ItemType.TOOL, item["title"], None, actions)
    return dialects.feedback(question, "notes") is not None


def _plain(action: View) -> Action:
    return Action(action["key"], action["name"], None, "null", allowed=tuple(map(Verb, action["allowed"])))


def proposal(item: View, posted: Posted, *, grace: timedelta) -> Proposal:
    """What was decided. The inputs are read against the item as it is now; the store refuses another revision."""
    offered = choices(item)
    try:
        verdicts = tuple(_verdict(one, _verb(one, posted), posted) for one in offered)
    except FieldProblem as problem:
        raise InvalidDecision(str(problem), errors=[{"path": problem.label, "message": problem.message}]) from None
    ahead = any(one.verb in _GOING_AHEAD for one in verdicts)
    if ahead and item["risk"] in ASKS_TWICE and not posted.get("sure"):
        raise InvalidDecision(f"this is {item['risk']} risk: tick that you have read what will run")
    return Proposal(
        number(posted), str(posted.get("hash", "")), verdicts, notes=text(posted, "notes"), grace=grace, via=VIA
    )


def number(posted: Posted) -> int:
    sent = str(posted.get("revision", ""))
    return int(sent) if sent.isdecimal() and len(sent) < 10 else 0


def text(posted: Posted, name: str) -> str | None:
    """What was written, if it says anything; with the line ends that people mean."""
    written = str(posted.get(name) or "").replace("\r\n", "\n")
    return written if written.strip() else None


def _verb(choice: Choice, posted: Posted) -> Verb:
    """Said for this action, or for all of them."""
    said = str(posted.get(f"{choice.prefix}verb") or posted.get("verb") or "")
    if said not in {*choice.allowed}:
        what = f"{said} is not offered" if said else "choose what to do with it"
        raise FieldProblem(choice.action["name"], what)
    return Verb(said)


def _verdict(choice: Choice, verb: Verb, posted: Posted) -> Verdict:
    key, message = choice.action["key"], text(posted, f"{choice.prefix}message")
    if verb is Verb.EDIT:
        args = edited(choice, posted)
        if canonical.text(args) != choice.action["args_text"]:
            return Verdict(key, verb, args, message=message)
        return replace(_unchanged(choice), message=message)
    _require_unchanged(choice, posted)
    if verb is Verb.ACCEPT:
        return Verdict(key, verb, forms.filled(choice.form, f"{choice.prefix}form.", posted) if choice.form else None)
    if verb is Verb.RESPOND and (written := text(posted, choice.raw)) is not None:
        return Verdict(key, verb, forms.parsed("JSON", written), message=message)
    return Verdict(key, verb, message=message)


def _unchanged(choice: Choice) -> Verdict:
    """An edit that changes nothing is an approval, where that is allowed."""
    if Verb.APPROVE not in choice.allowed:
        raise FieldProblem(choice.action["name"], "nothing was changed")
    return Verdict(choice.action["key"], Verb.APPROVE)


def _require_unchanged(choice: Choice, posted: Posted) -> None:
    """What was typed must not get lost because another button was pressed."""
    if choice.fields and choice.raw in posted and canonical.text(edited(choice, posted)) != choice.action["args_text"]:
        raise FieldProblem(choice.action["name"], "arguments were changed: choose Edit, or put them back")


def edited(choice: Choice, posted: Posted) -> Json:
    """The arguments as they were changed, field by field or as a whole."""
    args, raw = choice.action["args"], text(posted, choice.raw)
    by_field = forms.edited(args, choice.fields, f"{choice.prefix}arg.", posted)
    if raw is None or raw.strip() == choice.action["args_text"]:
        return by_field
    if canonical.text(by_field) != choice.action["args_text"]:
        raise FieldProblem(choice.action["name"], "change the fields or the JSON, not both")
    return forms.parsed("JSON", raw)
