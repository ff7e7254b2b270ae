"""Verdicts for several actions on one command line: `1=approve 2=edit:args.json 3=reject:"too much"`.

The numbers are positions, from 1, as `assent inbox get` shows them. An item is decided as a whole, so each action needs
a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assent.errors import Invalid
from assent.kernel.canonical import Json
from assent.review.model.questions import Verb
from assent.surfaces.cli.escapes import escaped
from assent.surfaces.cli.inbox import edits

View = dict[str, Any]

FORM = "write each as N=VERB, such as 1=approve 2=edit:args.json 3=reject:reason"
_WITH_JSON = (Verb.EDIT, Verb.ACCEPT)
_WITH_TEXT = (Verb.REJECT, Verb.RESPOND)


class Each:
    """The verdict on each action of an item, by position."""

    verb = "decide"

    def __init__(self, words: Sequence[str]) -> None:
        self._verdicts: dict[int, tuple[Verb, str | None]] = {}
        for word in words:
            place, verdict = _read(word)
            if place in self._verdicts:
                raise Invalid(f"action {place} has two verdicts", hint=FORM)
            self._verdicts[place] = verdict

    def verdicts(self, actions: Sequence[View]) -> list[View]:
        numbered = dict(enumerate(actions, start=1))
        unknown = sorted(self._verdicts.keys() - numbered.keys())
        if unknown:
            raise Invalid(f"there is no action {unknown[0]}", hint=f"the item has {len(numbered)}")
        missing = [
            f"{place} ({escaped(act['name'])})" for place, act in numbered.items() if place not in self._verdicts
        ]
        if missing:
            raise Invalid(f"no verdict on {', '.join(missing)}", hint="all actions are decided at once")
        return [_verdict(place, action, *self._verdicts[place]) for place, action in numbered.items()]


def _read(word: str) -> tuple[int, tuple[Verb, str | None]]:
    place, sign, rest = word.partition("=")
    verb, colon, more = rest.partition(":")
    if not (sign and place.isdecimal() and len(place) < 5):
        raise Invalid(f"{escaped(word)} does not name an action", hint=FORM)
    if verb not in set(Verb):
        raise Invalid(f"{escaped(verb)} is not a verb", hint=f"one of: {', '.join(Verb)}")
    return int(place), (Verb(verb), more if colon else None)


def _verdict(place: int, action: View, verb: Verb, more: str | None) -> View:
    verdict: View = {"key": action["key"], "verb": str(verb)}
    if more is None:
        if verb in (Verb.EDIT, Verb.RESPOND):
            raise Invalid(
                f"{place}={verb} needs a value", hint=f"{place}={verb}:{'FILE' if verb is Verb.EDIT else 'TEXT'}"
            )
        return verdict
    if verb in _WITH_TEXT:
        return {**verdict, "message": more}
    if verb not in _WITH_JSON:
        raise Invalid(f"{place}={verb} takes no value", hint="reject takes a reason, respond an answer")
    args = _json(more)
    if verb is Verb.EDIT and not list(edits.changes(action["args"], args)):
        raise Invalid(f"{place}=edit would change nothing", hint=f"use {place}=approve")
    return {**verdict, "args": args}


def _json(text: str) -> Json:
    """A JSON object, or the name of a file with JSON."""
    if text.lstrip().startswith("{"):
        return edits.parsed(text, "the JSON")
    return edits.parsed(edits.read(Path(text)), text)
