"""Answers given through the LangGraph API: checked against what waits, made exact, and recorded once per question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assent.dialects import Answer, UnknownInterrupt, breakpoint, check_resume
from assent.dialects import InvalidAnswer as DialectRefusal
from assent.domain import questions
from assent.domain.access import Principal
from assent.domain.items import Item
from assent.domain.questions import Interrupt, Verb, Verdict
from assent.domain.threads import Thread
from assent.errors import AnswerRefused, Forbidden, InvalidAnswer, StaleRevision, ThreadWaits
from assent.services import deciding
from assent.services.decision_views import decision_view
from assent.services.rights import is_person
from assent.store import answers, asking, decisions, grants, items
from assent.store.answers import Given
from assent.store.transaction import Tx


@dataclass(frozen=True, slots=True)
class Answers:
    """A command with its answers by interrupt id, and what each of them says."""

    command: dict[str, Any]
    said: dict[str, Answer]
    asked_by: str | None = None
    """Who started the run that asked: the one that goes on is theirs as well."""


def keyed_answers(tx: Tx, caller: Principal, thread: Thread, command: dict[str, Any] | None) -> Answers:
    """The command with its answer by interrupt id; refuses what does not fit, before it can touch the graph."""
    command = command or {}
    asked = [Interrupt(one["id"], one.get("value"), one.get("response_schema")) for one in thread.pending]
    resume = command.get("resume")
    waiting = items.open_of_thread(tx, thread.id)
    gated = {str(item.interrupt_id) for item in waiting if item.gated}
    try:
        found = check_resume(asked, resume, gated=gated)
    except UnknownInterrupt as error:
        raise _too_late(tx, thread, error) from None
    except DialectRefusal as error:
        problems = [{"path": one.path, "message": one.message} for one in error.problems]
        raise InvalidAnswer(str(error), errors=problems, pending=thread.pending) from None
    if not _names_ids(resume, found) and not thread.shown:
        raise AnswerRefused("nobody has seen this question yet; answer it by its id", pending=thread.pending)
    return Answers({**command, "resume": {id: answer.value for id, answer in found.items()}}, found, _asker(waiting))


def _asker(waiting: Sequence[Item]) -> str | None:
    return next((item.requester for item in waiting if item.requester != "system"), None)


def record_answers(tx: Tx, caller: Principal, thread: Thread, run_id: str, given: Answers) -> None:
    """Each answer closes its item, in the same way as if it had been decided in the inbox; or none of them counts."""
    open_items = {item.interrupt_id: item for item in items.open_of_thread(tx, thread.id)}
    for interrupt_id, answer in given.said.items():
        item = open_items.get(interrupt_id)
        if item is None:
            _refuse_decided(tx, thread, interrupt_id)
        else:
            _require_seen(thread, item)
            _answered(tx, caller, thread, item, answer)
        taken = answers.give(
            tx,
            thread_id=thread.id,
            run_id=run_id,
            interrupt_id=interrupt_id,
            actor=caller.actor,
            value=given.command["resume"][interrupt_id],
        )
        if not taken:
            winner = answers.standing(tx, thread.id, interrupt_id)
            raise AnswerRefused(pending=thread.pending, decision=_told(winner))


def go_past_breakpoint(tx: Tx, caller: Principal, thread: Thread) -> None:
    """A run without input on a thread that stopped before a node says: go on."""
    for item in items.open_of_thread(tx, thread.id):
        if item.dialect == breakpoint.NAME:
            deciding.answered(tx, caller, item, [Verdict("0", Verb.APPROVE)])


def require_settled(tx: Tx, caller: Principal, thread: Thread) -> None:
    """Whoever may not decide must not remove the thread from under a call of which nobody knows whether it was made."""
    doubtful = [] if is_person(caller) else items.left_in_doubt(tx, thread.id)
    if doubtful:
        raise ThreadWaits(
            "a call of the thread was cut off, and only who may decide can remove it before that is settled",
            hint="let a person say what became of the call, then remove the thread",
            pending=thread.pending,
            items=[item.id for item in doubtful],
        )


def require_free(tx: Tx, caller: Principal, thread: Thread) -> None:
    """Whoever may not decide must not get past what is gated: not by new input, nor by moving the thread's state."""
    if is_person(caller):
        return
    gated = items.gated_of_thread(tx, thread.id)
    if gated:
        raise ThreadWaits(
            "the thread waits for a person's decision, and only who may decide can move it",
            pending=thread.pending,
            items=[item.id for item in gated],
        )


def _answered(tx: Tx, caller: Principal, thread: Thread, item: Item, answer: Answer) -> None:
    try:
        deciding.answered(tx, caller, item, answer.verdicts)
    except questions.InvalidDecision as error:
        problems = [{"path": one.path, "message": one.message} for one in error.problems]
        raise InvalidAnswer(str(error), errors=problems, pending=thread.pending) from None
    except Forbidden as error:
        told = {**error.extra, "pending": thread.pending, "items": [item.id]}
        raise type(error)(error.message, hint=error.hint, **told) from None


def _require_seen(thread: Thread, item: Item) -> None:
    """An answer without a hash means the revision that was shown; one that nobody has seen is another matter."""
    if item.revision > 1 and not thread.shown:
        raise StaleRevision(revision=item.revision, hash=item.hash, pending=thread.pending)


def _refuse_decided(tx: Tx, thread: Thread, interrupt_id: str) -> None:
    """Someone has decided it in the inbox, and that is on its way; or the gate asks what only the inbox can answer."""
    if grants.is_doubt(tx, thread.id, interrupt_id):
        raise AnswerRefused("whether a call was made is said in the inbox", pending=thread.pending)
    before = items.latest_of_interrupt(tx, thread.id, interrupt_id)
    winner = decisions.closing(tx, before.id) if before and asking.is_answered(tx, before) else None
    if winner is not None:
        given = _told(answers.standing(tx, thread.id, interrupt_id))
        decision = {**(decision_view(tx, winner) or {}), **(given or {})}
        raise AnswerRefused("it was decided already", pending=thread.pending, decision=decision)


def _names_ids(resume: Any, found: dict[str, Any]) -> bool:
    return isinstance(resume, dict) and resume.keys() == found.keys()


def _too_late(tx: Tx, thread: Thread, error: UnknownInterrupt) -> AnswerRefused:
    named = [answers.standing(tx, thread.id, interrupt_id) for interrupt_id in error.ids]
    winner = next(filter(None, named), None) if error.ids else answers.latest(tx, thread.id)
    return AnswerRefused(str(error), pending=thread.pending, decision=_told(winner))


def _told(given: Given | None) -> dict[str, Any] | None:
    if given is None:
        return None
    return {
        "interrupt_id": given.interrupt_id,
        "run_id": given.run_id,
        "actor": given.actor,
        "value": given.value,
        "at": given.at.isoformat(),
    }
