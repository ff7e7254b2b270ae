"""A login or another page that the person must visit before a call can go on (MCP's URL elicitation).

The title names the host, because that is what the person has to judge. `accept` says that they have been there: the
agent then retries the same approved call.
"""

from __future__ import annotations

from collections.abc import Sequence

from assent.dialects import elicitation, raw
from assent.dialects.dialect import Decoded
from assent.dialects.fields import Fields
from assent.dialects.verdicts import DECISION, NOTHING, RULES, Layout, pair, uniform
from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.questions import Action, Interrupt, ItemType, Question, Verb, Verdict

NAME = "oauth_url"
EXACT = False

_RULES = {**RULES, Verb.ACCEPT: NOTHING}
_VERBS = {"accept": Verb.ACCEPT, "decline": Verb.DECLINE}
_ANSWER = Layout("", lambda index: "", elicitation.PARTS)


def recognise(interrupt: Interrupt) -> Question | None:
    if not isinstance(interrupt.value, dict) or interrupt.value.get("kind") != NAME:
        return None
    fields = Fields(interrupt.value)
    url, host = elicitation.link(fields)
    message, elicitation_id = fields.optional_text("message"), fields.optional_text("elicitation_id")
    if fields.problems:
        return raw.question(interrupt, fields.problems)
    args = {"url": url}
    action = Action("0", NAME, args, canonical.text(args), message, (Verb.ACCEPT, Verb.DECLINE), call_id=elicitation_id)
    return Question(NAME, ItemType.OAUTH, f"Sign in at {host}", message, (action,), (), interrupt)


def encode(question: Question, verdicts: Sequence[Verdict], layout: Layout = DECISION) -> Json:
    [(_, verdict)] = pair(question, verdicts, _RULES, layout)
    return elicitation.write(verdict)


def decode(question: Question, value: Json) -> Decoded:
    fields = Fields(value)
    verdict = elicitation.read("0", fields, _VERBS)
    fields.refuse()
    read = () if verdict is None else (verdict,)
    return Decoded(read, encode(question, read, _ANSWER))


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.DECLINE)


def feedback(question: Question, notes: str) -> None:
    """None: there is nothing to try again differently."""
