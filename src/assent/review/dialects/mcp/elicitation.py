"""MCP's answer objects, `{"action": …, "content"?: …}`, shared by forms and logins, and the links they show."""

from __future__ import annotations

import re

from assent.kernel.canonical import Json
from assent.review.dialects.fields import Fields
from assent.review.model.questions import Verb, Verdict

VERBS = {"accept": Verb.ACCEPT, "decline": Verb.DECLINE, "cancel": Verb.CANCEL}
PARTS = {"key": "", "verb": "action", "args": "content"}

# Printable ASCII only, no backslash, no user name: the displayed host is the one that the browser opens.
_LINK = re.compile(r"(?i:https?)://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::\d{1,5})?(?:[/?#][!-\[\]-~]*)?")


def write(verdict: Verdict) -> Json:
    if verdict.verb == Verb.ACCEPT and verdict.args is not None:
        return {"action": "accept", "content": verdict.args}
    return {"action": str(verdict.verb)}


def read(key: str, answer: Fields, verbs: dict[str, Verb] = VERBS) -> Verdict | None:
    verb = answer.choice("action", verbs)
    return None if verb is None else Verdict(key, verb, args=answer.get("content"))


def link(fields: Fields) -> tuple[str, str]:
    """The URL in `url` and its host."""
    url = fields.text("url")
    match = _LINK.fullmatch(url)
    if match is None and isinstance(fields.get("url"), str):
        fields.fault("url", "must be a plain http or https address")
    return url, match[1] if match else ""
