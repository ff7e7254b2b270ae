"""An agent's request to review its work: a text, the proposed changes and the path that they are for.

Approval resumes the run. A request for a revision resumes it with the notes as `responseMarkdown`. A rejection has no
answer: the thread ends, and the agent does not run again.
"""

from __future__ import annotations

from collections.abc import Sequence

from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.dialects import raw
from assent.review.dialects.dialect import Decoded
from assent.review.dialects.fields import Fields
from assent.review.dialects.verdicts import RULES, pair, uniform
from assent.review.model.questions import Action, Interrupt, ItemType, Question, Verb, Verdict, headline

NAME = "workspace_review"
EXACT = False
HEARS = frozenset[Verb]()
EVENT = "review.requested"

ALLOWED = (Verb.APPROVE, Verb.REJECT)
_DECISIONS = {"approved": Verb.APPROVE, "revision_requested": Verb.RESPOND, "rejected": Verb.REJECT}
_WORDS = {verb: word for word, verb in _DECISIONS.items()}


def recognise(interrupt: Interrupt) -> Question | None:
    value = interrupt.value
    if not isinstance(value, dict) or interrupt.response_schema is not None:
        return None
    if value.get("kind") != NAME and value.get("type") != EVENT:
        return None
    fields = Fields(value)
    fields.text("body")
    fields.optional_text("target_path")
    if fields.get("proposed_changes") is not None:
        fields.sequence("proposed_changes")
    return raw.question(interrupt, fields.problems) if fields.problems else question(interrupt)


def question(interrupt: Interrupt) -> Question:
    """The review in any value: a system agent may stop with a plain text as well."""
    args = config_of(interrupt.value)
    action = Action("0", NAME, args, canonical.text(args), allowed=ALLOWED)
    body = args.get("body")
    text = body if isinstance(body, str) else None
    title = headline(str(args.get("target_path") or text or ""), "Workspace")
    return Question(NAME, ItemType.WORKSPACE_REVIEW, title, text, (action,), (), interrupt)


def config_of(value: Json) -> dict[str, Json]:
    """Body, proposed changes, target path and the agent's other fields."""
    if not isinstance(value, dict):
        return {"body": value if isinstance(value, str) else canonical.text(value)}
    return {name: part for name, part in value.items() if (name, part) not in (("kind", NAME), ("type", EVENT))}


def encode(question: Question, verdicts: Sequence[Verdict]) -> Json:
    """None: the thread ends."""
    if [verdict.verb for verdict in verdicts] == [Verb.RESPOND]:
        return _answer(Verb.RESPOND, verdicts[0].message)
    [(_, verdict)] = pair(question, verdicts, RULES)
    return None if verdict.verb is Verb.REJECT else _answer(verdict.verb, verdict.message)


def decode(question: Question, value: Json) -> Decoded:
    fields = Fields(value)
    verb, message = fields.choice("decision", _DECISIONS), fields.optional_text("responseMarkdown")
    if verb is Verb.RESPOND and not (message or "").strip():
        fields.fault("responseMarkdown", "is required with revision_requested")
    if verb is not Verb.RESPOND and message:
        fields.fault("responseMarkdown", "is allowed with revision_requested only")
    fields.refuse()
    assert verb is not None
    return Decoded((Verdict("0", verb, message=message),), _answer(verb, message))


def approves(question: Question) -> bool:
    return True


def negative(question: Question, reason: str) -> tuple[Verdict, ...] | None:
    return uniform(question, Verb.REJECT)


def feedback(question: Question, notes: str) -> tuple[Verdict, ...] | None:
    return (Verdict("0", Verb.RESPOND, message=notes),)


def _answer(verb: Verb, message: str | None) -> dict[str, Json]:
    return {"decision": _WORDS[verb], "responseMarkdown": message}
