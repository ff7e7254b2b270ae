"""Answers given through the LangGraph API: checked against what waits, made exact, and recorded once per question."""

from __future__ import annotations

from typing import Any

from assent.dialects import InvalidAnswer as DialectRefusal
from assent.dialects import UnknownInterrupt, check_resume
from assent.domain.access import Principal
from assent.domain.questions import Interrupt
from assent.domain.threads import Thread
from assent.errors import AnswerRefused, InvalidAnswer
from assent.store import answers
from assent.store.answers import Given
from assent.store.transaction import Tx


def keyed_answers(tx: Tx, thread: Thread, command: dict[str, Any] | None) -> dict[str, Any]:
    """The command with its answer by interrupt id; refuses what does not fit, before it can touch the graph."""
    command = command or {}
    asked = [Interrupt(one["id"], one.get("value"), one.get("response_schema")) for one in thread.pending]
    resume = command.get("resume")
    try:
        found = check_resume(asked, resume)
    except UnknownInterrupt as error:
        raise _too_late(tx, thread, error) from None
    except DialectRefusal as error:
        problems = [{"path": one.path, "message": one.message} for one in error.problems]
        raise InvalidAnswer(str(error), errors=problems, pending=thread.pending) from None
    if not _names_ids(resume, found) and not thread.shown:
        raise AnswerRefused("nobody has seen this question yet; answer it by its id", pending=thread.pending)
    return {**command, "resume": {id: answer.value for id, answer in found.items()}}


def record_answers(tx: Tx, caller: Principal, thread: Thread, run_id: str, resume: dict[str, Any]) -> None:
    for interrupt_id, value in resume.items():
        given = answers.give(
            tx, thread_id=thread.id, run_id=run_id, interrupt_id=interrupt_id, actor=caller.actor, value=value
        )
        if not given:
            winner = answers.standing(tx, thread.id, interrupt_id)
            raise AnswerRefused(pending=thread.pending, decision=_told(winner))


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
