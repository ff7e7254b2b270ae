"""Answers given through the LangGraph API: checked against the open questions and recorded once per question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assent.errors import AnswerRefused, Forbidden, InvalidAnswer, InvalidDecision, StaleRevision, ThreadWaits
from assent.identity.model.access import Principal, Scope
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.decisions import confirmation, decide
from assent.review.decisions.consequences import case_of
from assent.review.decisions.rights import is_person, require_right
from assent.review.decisions.views import decision_view
from assent.review.dialects import Answer, UnknownInterrupt, check_resume
from assent.review.model.items import Item
from assent.review.model.questions import Interrupt
from assent.review.rows import decisions, grants, items
from assent.review.thread_items import SYSTEM
from assent.threads.model.threads import Thread
from assent.threads.rows import answers, holds
from assent.threads.rows.answers import Given


@dataclass(frozen=True, slots=True)
class Answers:
    """A command with its answers by interrupt id, and each answer decoded."""

    command: dict[str, Any]
    said: dict[str, Answer]
    asked: Item | None = None
    """An item of the run that asked, which a bare answer continues."""
    items: tuple[Item, ...] = ()
    """The items that it answers."""
    gated: bool = False
    """Whether one of them may be decided only by a person."""


def keyed_answers(tx: Tx, caller: Principal, thread: Thread, command: dict[str, Any] | None) -> Answers:
    """The command with its answers by interrupt id. Refuses invalid answers before the graph runs."""
    command = command or {}
    asked = [Interrupt(row["id"], row.get("value"), row.get("response_schema")) for row in thread.pending]
    resume = command.get("resume")
    waiting = items.open_of_thread(tx, thread.id)
    gated = {str(item.interrupt_id) for item in waiting if item.gated}
    exact = gated | {str(item.interrupt_id) for item in waiting if item.policy.get("question")}
    try:
        decoded = check_resume(asked, resume, exact=exact)
    except UnknownInterrupt as error:
        raise _too_late(tx, thread, error) from None
    except InvalidAnswer as error:
        raise InvalidAnswer(problems=error.problems, pending=thread.pending) from None
    if not _names_ids(resume, decoded) and not thread.shown:
        raise AnswerRefused("nobody has seen this question yet; answer it by its id", pending=thread.pending)
    answered = tuple(item for item in waiting if item.interrupt_id in decoded)
    asked_by = next((item for item in (*answered, *waiting) if item.requester != SYSTEM), None)
    keyed = {**command, "resume": {id: answer.value for id, answer in decoded.items()}}
    return Answers(keyed, decoded, asked_by, answered, gated=bool(gated & decoded.keys()))


def record_answers(tx: Tx, caller: Principal, thread: Thread, run_id: str, given: Answers) -> None:
    """Each answer closes its item, as a decision in the inbox does; all are recorded, or none."""
    open_items = {item.interrupt_id: item for item in items.open_of_thread(tx, thread.id)}
    for interrupt_id, answer in given.said.items():
        item = open_items.get(interrupt_id)
        if item is None:
            _refuse_decided(tx, caller, thread, interrupt_id)
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
            raise AnswerRefused(pending=thread.pending, decision=_answer_view(winner))


def require_alone(tx: Tx, thread: Thread, given: Answers, *, bare: bool) -> None:
    """Refuses a gated answer combined with anything else, which the reviewer has not seen, and any answer while another
    node of the thread is stopped at a breakpoint."""
    if given.gated and not bare:
        raise AnswerRefused(
            "an answer to a gated question must be alone: without goto, update, input, context, configurable or "
            "metadata, and before the run that asked is deleted",
            pending=thread.pending,
        )
    if holds.is_stopped(tx, thread.id):
        raise AnswerRefused("the thread is stopped at a breakpoint; decide that first", pending=thread.pending)


def require_withdrawal(tx: Tx, caller: Principal, thread: Thread, *, run_id: str | None = None) -> None:
    """Requires the right to remove a thread, or one of its runs, with its questions. Gated questions may be ended by a
    person who may decide, by the agent that asked, and by the thread's owner. Programs may not remove a call in doubt
    before a person has settled it, nor a decision before its delivery."""
    _require_arrived(tx, caller, thread, run_id)
    if is_person(caller):
        return
    _require_settled(tx, thread, run_id)
    asked = [item for item in items.open_of_thread(tx, thread.id) if item.gated and run_id in (None, item.run_id)]
    others = [] if caller.actor == thread.owner else [item for item in asked if item.requester != caller.actor]
    if others:
        raise Forbidden(
            f"{caller.kind} {caller.name!r} may not end another agent's question",
            hint="let its agent withdraw the question, or a person decide it",
            missing=[Scope.DECIDE.value],
            items=[item.id for item in others],
        )


def _require_arrived(tx: Tx, caller: Principal, thread: Thread, run_id: str | None) -> None:
    """An undelivered decision may be stopped by its author and by principals who may decide the item."""
    for item in items.decided_of_thread(tx, thread.id):
        decision = decisions.closing(tx, item.id) if run_id in (None, item.run_id) else None
        if decision is not None and decision.actor != caller.actor:
            require_right_to_stop(tx, caller, item)


def require_right_to_stop(tx: Tx, caller: Principal, item: Item) -> None:
    try:
        require_right(tx, caller, case_of(tx, item))
    except Forbidden as error:
        raise Forbidden(
            f"a person's decision is not delivered yet, and {caller.kind} {caller.name!r} may not stop it",
            hint="wait until the run that delivers it begins, or let a person who may decide the item stop it",
            missing=error.extra.get("missing", [Scope.DECIDE.value]),
            items=[item.id],
        ) from None


def _require_settled(tx: Tx, thread: Thread, run_id: str | None) -> None:
    doubtful = [item for item in items.left_in_doubt(tx, thread.id) if run_id in (None, item.run_id)]
    if doubtful:
        raise ThreadWaits(
            "a call of the thread is in doubt, and only a person who may decide can remove it before it is settled",
            hint="let a person settle the call, then remove the thread",
            pending=thread.pending,
            items=[item.id for item in doubtful],
        )


def require_free(tx: Tx, caller: Principal, thread: Thread) -> None:
    """A caller who may not decide cannot bypass a gated item, neither by new input nor by a state update. An item that
    needs a passkey cannot be bypassed at all."""
    gated = items.gated_of_thread(tx, thread.id)
    if is_person(caller):
        return confirmation.require_unneeded(gated)
    if gated:
        raise ThreadWaits(
            "the thread waits for a person's decision, and only a person who may decide can bypass it",
            pending=thread.pending,
            items=[item.id for item in gated],
        )


def _answered(tx: Tx, caller: Principal, thread: Thread, item: Item, answer: Answer) -> None:
    try:
        decide.answered(tx, caller, item, answer.verdicts)
    except InvalidDecision as error:
        raise InvalidAnswer(error.message, problems=error.problems, pending=thread.pending) from None
    except Forbidden as error:
        extra = {**error.extra, "pending": thread.pending, "items": [item.id]}
        raise type(error)(error.message, hint=error.hint, **extra) from None


def _require_seen(thread: Thread, item: Item) -> None:
    """Refuses an answer by interrupt id alone if the question has changed, since its author may have seen an earlier
    revision. A gated item is then decided by revision and hash."""
    if (item.gated and item.reworded) or (item.revision > 1 and not thread.shown):
        hint = "decide it in the inbox, which names the revision" if item.gated else StaleRevision.hint
        raise StaleRevision(revision=item.revision, hash=item.hash, hint=hint, pending=thread.pending, items=[item.id])


def _refuse_decided(tx: Tx, caller: Principal, thread: Thread, interrupt_id: str) -> None:
    """Refuses an answer to a question without an open item: it was decided, it has expired, or its call is in doubt,
    which only the inbox settles. A question that has lost its item is for people only."""
    if grants.is_doubt(tx, thread.id, interrupt_id):
        raise AnswerRefused("a call in doubt is settled in the inbox", pending=thread.pending)
    item = items.latest_of_interrupt(tx, thread.id, interrupt_id)
    if item is not None and thread_items.is_answered(tx, item):
        closing, answer = decisions.closing(tx, item.id), _answer_view(answers.standing(tx, thread.id, interrupt_id))
        decision = {**((closing and decision_view(tx, closing)) or {}), **(answer or {})}
        raise AnswerRefused("the question is already decided", pending=thread.pending, decision=decision or None)
    if (item is None or item.gated) and not is_person(caller):
        raise Forbidden("only a person can answer this question", missing=[Scope.DECIDE.value], pending=thread.pending)


def _names_ids(resume: Any, decoded: dict[str, Any]) -> bool:
    return isinstance(resume, dict) and resume.keys() == decoded.keys()


def _too_late(tx: Tx, thread: Thread, error: UnknownInterrupt) -> AnswerRefused:
    standing = [answers.standing(tx, thread.id, interrupt_id) for interrupt_id in error.ids]
    winner = next(filter(None, standing), None) if error.ids else answers.latest(tx, thread.id)
    return AnswerRefused(str(error), pending=thread.pending, decision=_answer_view(winner))


def _answer_view(given: Given | None) -> dict[str, Any] | None:
    if given is None:
        return None
    return {
        "interrupt_id": given.interrupt_id,
        "run_id": given.run_id,
        "actor": given.actor,
        "value": given.value,
        "at": given.at.isoformat(),
    }
