"""The path of a call through the gate, written once for threads and coroutines.

`through` is a generator: it yields the next step (a function over the records, the call itself to make) and receives
its result; `drive` and `adrive` execute the steps. A grant is consumed first. Only without a grant is a person asked,
and after the answer the gate looks for the grant again: an answer alone, from any sender, never runs a call. Answers
come from the keeper's records, never from the values that a caller resumes the graph with.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, Protocol, TypeAlias

from langgraph.errors import GraphInterrupt

from assent.errors import Unavailable
from assent.gate import results
from assent.gate.keeper import current_grant, granted, take_over
from assent.gate.questions import Asking, doubt
from assent.gate.records import Keeper, Look, Pending, Questions, Records
from assent.gate.task import Task, questions_in
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.review.model.grants import Call, Grant, Passage, Passing
from assent.review.model.policies import Effect
from assent.review.model.questions import Verb, Verdict
from assent.review.rows import gate
from assent.review.rows.gate import Judged

_WAITS = (0.1, 0.3, 1.0, 3.0)
"""Seconds between retries to record the result of a call. After the last one the call stays in doubt."""

FIRST = "nobody has approved this call"
"""The reason of a first question; the reviewer does not see it."""


@dataclass(frozen=True, slots=True)
class Make:
    """Make the call now, with these arguments."""

    args: Json
    grant: Grant | None = None


@dataclass(frozen=True, slots=True)
class Take:
    """Consume a grant. Cancelled meanwhile, the call is not made, and the grant is given back."""

    function: Callable[[Records], Passage]


@dataclass(frozen=True, slots=True)
class Keep:
    """Record the result of the call: retried while the store is busy, and not cancellable."""

    function: Callable[[Records], Any]


@dataclass(frozen=True, slots=True)
class Note:
    """Record a question or its use. A server derives both from its runs, and the step results in `otherwise` there."""

    function: Callable[[Records], Any]
    otherwise: Any = None


Step: TypeAlias = Callable[[Records], Any] | Make | Take | Keep | Note
Steps: TypeAlias = Generator[Step, Any, Any]


class Guarded(Protocol):
    """A call behind the gate: a tool of an agent, or a function."""

    name: str
    idempotent: bool
    listed: bool | None
    """Whether the author wants approval; None if the author set nothing."""

    def asking(self) -> Asking:
        """The question for this call."""
        ...

    def declined(self, verdict: Verdict) -> Any:
        """The value its caller gets instead of a result."""
        ...

    def forbidden(self, rule: str) -> Any:
        """The same for a call that the policy forbids."""
        ...

    def edited(self, result: Any, args: Json) -> Any:
        """The result of a call that a person edited before it ran."""
        ...

    def commented(self, result: Any, comments: str) -> Any:
        """The result with the comments of reviewers, if a model reads it."""
        ...

    def again(self, recorded: Json) -> Any:
        """The recorded result of a call that already ran."""
        ...


def through(task: Task, keeper: Keeper, guarded: Guarded, args: Json, call_id: str) -> Steps:
    if "\0" in f"{call_id}{guarded.name}":  # not every database stores NUL
        raise ValueError(f"the call of {guarded.name!r} has a NUL in its name or id: no approval could be bound to it")
    made = Call(task.thread_id, call_id, guarded.name, args, task.ns, guarded.idempotent, task.graph_id)
    held = current_grant()
    if held is not None and (yield lambda records: records.covers(held, made)) and take_over(held):
        return (yield Make(args, held))
    look: Look = yield lambda records: records.look(made, task.positions)
    judged, asked = look.judged, look.questions
    task.hide(asked.by_position)
    if judged.effect is Effect.NEVER and not look.begun:
        return guarded.forbidden(judged.rule)
    if _is_free(judged, guarded.listed) and not look.begun and not asked.exist:  # an open question stays open
        return (yield Make(args))
    return (yield from _granted(task, guarded, made, asked, judged))


def _is_free(judged: Judged, listed: bool | None) -> bool:
    """The author's True always asks; then a rule that names the call decides, then the author's False. Anything else
    asks."""
    if listed:
        return False
    return judged.effect is Effect.ALLOW if judged.named else listed is False


def _granted(task: Task, guarded: Guarded, made: Call, asked: Questions, judged: Judged) -> Steps:
    """Before the first question about the call, a standing approval may replace it."""
    used = list(asked.answered)
    asking = guarded.asking()
    valid = (answer for id, answer in asked.answered.items() if id in asked.decided)
    verdicts = [verdict for answer in valid if (verdict := asking.read(made, answer)) is not None]
    declined = next((verdict for verdict in verdicts if verdict.verb in (Verb.REJECT, Verb.RESPOND)), None)
    changed = (replace(made, args=edit.args, unedited=made.args) for edit in verdicts if edit.verb is Verb.EDIT)
    edits = [edit for edit in changed if canonical.text(edit.args) != canonical.text(made.args)]
    forbidden = judged if judged.effect is Effect.NEVER else (yield from _forbidden(edits))
    may_stand = judged.sound and judged.alone and not asked.exist
    passing = partial(_consuming, task) if forbidden is None else _recalling
    if declined is not None:  # starts nothing, so that an equal call keeps its grant
        passing = partial(_recalling, of_items=asked.items)
    call, passage = yield from _consumed(made, edits, passing)
    match passage:
        case Passage(Passing.ASK) if declined is not None:
            yield from _mark_used(made, used)
            return guarded.declined(declined)
        case Passage(Passing.ASK) if forbidden is not None:
            return guarded.forbidden(forbidden.rule)
        case Passage(Passing.GO, Grant() as grant):
            result = yield from _made(grant, call.args)
        case Passage(Passing.REPEAT, Grant() as grant):
            result = guarded.again(grant.result)
        case Passage(Passing.WAIT, Grant() as grant):
            task.ask_again(grant.result[gate.PAUSED])
        case Passage(Passing.IN_DOUBT, Grant() as grant):
            yield lambda records: records.announce_doubt(grant.id, asked.next_id)
            yield from _ask(task, asked, *doubt(grant, call))
        case Passage(doubtful=False) if may_stand and (yield lambda records: records.use_standing(made)):
            return (yield Make(made.args))
        case _:
            reason = passage.reason if asked.answered or passage.reason != FIRST else None
            yield from _ask(task, asked, *asking.question(made, reason))
    yield from _mark_used(made, used)
    ran = result if call is made else guarded.edited(result, call.args)
    return guarded.commented(ran, passage.comments) if passage.comments else ran


def _forbidden(calls: Sequence[Call]) -> Generator[Step, Any, Judged | None]:
    """The judgement of the first of these calls that the policy forbids: an edit cannot bypass the policy."""
    for call in calls:
        judged: Judged = yield _judging(call)
        if judged.effect is Effect.NEVER:
            return judged
    return None


def _judging(call: Call) -> Callable[[Records], Judged]:
    return lambda records: records.judge(call)


def _consumed(
    made: Call, edits: Sequence[Call], passing: Callable[[Call], Callable[[Records], Passage]]
) -> Generator[Step, Any, tuple[Call, Passage]]:
    """The edited call or else the original one: the first with a grant. Edits come first, because the state of the
    original call does not apply to them."""
    for edit in edits:
        passage: Passage = yield Take(passing(edit))
        if passage.passing is not Passing.ASK:
            return edit, passage
    return made, (yield Take(passing(made)))


def _consuming(task: Task, call: Call) -> Callable[[Records], Passage]:
    return lambda records: records.consume(call, task.answered)


def _recalling(call: Call, of_items: Collection[str] | None = None) -> Callable[[Records], Passage]:
    return lambda records: records.recall(call, of_items)


def _made(grant: Grant, args: Json) -> Steps:
    """Makes the call. If the process dies in between, the grant stays started: in doubt. The same holds if the call
    raises `CutOff`."""
    try:
        result = yield Make(args, grant)
    except GraphInterrupt as raised:
        paused = gate.Pause(questions_in(raised), raised.note if isinstance(raised, results.Stopped) else None)
        yield Keep(lambda records: records.pause(grant.id, paused))
        raise
    except results.CutOff:
        raise
    except Exception as error:
        yield _finish(grant, results.failure(error), failed=True)
        raise
    yield _finish(grant, results.recorded(result), failed=results.is_failure(result))
    return result


def _finish(grant: Grant, result: Json, *, failed: bool) -> Keep:
    return Keep(lambda records: records.finish(grant.id, result, failed=failed))


def _ask(task: Task, asked: Questions, value: Json, schema: Json) -> Generator[Step, Any, NoReturn]:
    pending = Pending(task.thread_id, asked.next_id, value, schema, list(asked.answered), task.graph_id)
    raised: tuple[Json, Json] = yield Note(lambda records: records.ask(pending), (value, schema))
    task.ask(asked.next_id, *raised)


def _mark_used(call: Call, interrupt_ids: Sequence[str]) -> Steps:
    if interrupt_ids:
        yield Note(lambda records: records.mark_used(call.thread_id, interrupt_ids))


def drive(steps: Steps, keeper: Keeper, make: Callable[[Json], Any]) -> Any:
    reply, failure = None, None
    while True:
        try:
            step = steps.send(reply) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value
        reply, failure = None, None
        try:
            reply = _perform(step, keeper, make)
        except Exception as error:  # noqa: BLE001 - the generator decides how to handle it
            failure = _noted_failure(error, step, keeper)


def _noted_failure(error: Exception, step: Step, keeper: Keeper) -> Exception:
    if not isinstance(step, Make):  # the graph handles the errors of a call
        keeper.failed(error)
    return error


def _perform(step: Step, keeper: Keeper, make: Callable[[Json], Any]) -> Any:
    if isinstance(step, Make):
        with keeper.making(step.grant), granted(step.grant):
            return make(step.args)
    if isinstance(step, Note):
        return keeper.perform(step.function) if keeper.notes else step.otherwise
    if not isinstance(step, Keep):
        return keeper.perform(step.function if isinstance(step, Take) else step)
    for wait in _WAITS:
        try:
            return keeper.perform(step.function)
        except Unavailable:
            time.sleep(wait)
    return keeper.perform(step.function)


async def adrive(steps: Steps, keeper: Keeper, make: Callable[[Json], Awaitable[Any]]) -> Any:
    reply, failure = None, None
    while True:
        try:
            step = steps.send(reply) if failure is None else steps.throw(failure)
        except StopIteration as end:
            return end.value
        reply, failure = None, None
        try:
            reply = await _aperform(step, keeper, make)
        except Exception as error:  # noqa: BLE001 - the generator decides how to handle it
            failure = _noted_failure(error, step, keeper)


async def _aperform(step: Step, keeper: Keeper, make: Callable[[Json], Awaitable[Any]]) -> Any:
    if isinstance(step, Make):
        with keeper.making(step.grant), granted(step.grant):
            return await make(step.args)
    if isinstance(step, Take):
        return await _atake(step, keeper)
    if isinstance(step, Note):
        return await keeper.aperform(step.function) if keeper.notes else step.otherwise
    if not isinstance(step, Keep):
        return await keeper.aperform(step)
    write = asyncio.ensure_future(_akeep(step, keeper))
    try:
        return await asyncio.shield(write)
    except asyncio.CancelledError:
        with suppress(Exception):  # the caller gets only the cancellation
            await write
        raise


async def _atake(step: Take, keeper: Keeper) -> Passage:
    """A cancellation does not stop a transaction that is under way, so its result is waited for. A grant that cannot be
    given back stays started: in doubt."""
    taken = asyncio.ensure_future(keeper.aperform(step.function))
    try:
        return await asyncio.shield(taken)
    except asyncio.CancelledError:
        with suppress(Exception):  # a cancelled task reports nothing else
            passage = await taken
            await keeper.aperform(lambda records: records.give_back(passage))
        raise


async def _akeep(step: Keep, keeper: Keeper) -> Any:
    for wait in _WAITS:
        try:
            return await keeper.aperform(step.function)
        except Unavailable:
            await asyncio.sleep(wait)
    return await keeper.aperform(step.function)
