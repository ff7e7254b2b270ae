"""A login or another page that the person must visit before a call can continue (MCP's URL elicitation).

The title shows the host, because the person has to judge it. `accept` means that they visited it: the agent then
retries the same approved call.
"""

from __future__ import annotations

from collections.abc import Sequence

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects import raw
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields
from assent.review.dialects.mcp import elicitation
from assent.review.dialects.verdicts import DECISION, NOTHING, RULES, Layout, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict

NAME = "oauth_url"
EXACT = False
HEARS = frozenset[Verb]()

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


def approves(question: Question) -> bool:
    return True


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.DECLINE)


def feedback(question: Question, notes: str) -> None:
    """None: a link cannot be revised."""
