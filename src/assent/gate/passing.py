"""The path of a call through the gate, written once for threads and coroutines.

`through` is a generator: it yields the next step (a store function to run, the call itself to make) and receives its
result; `drive` and `adrive` execute the steps. A grant is consumed first. Only without a grant is a person asked, and
after the answer the gate looks for the grant again: an answer alone, from any sender, never runs a call. Answers come
from the keeper's records, never from the values that a caller resumes the graph with.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from typing import Any, NoReturn, Protocol, TypeAlias

from langgraph.errors import GraphInterrupt

from assent.errors import Unavailable
from assent.gate import results
from assent.gate.keeper import Keeper, Pending, current_grant, granted, take_over
from assent.gate.questions import Asking, doubt
from assent.gate.task import Task, questions_in
from assent.kernel import canonical
from assent.kernel.canonical import Json
from assent.kernel.store.transaction import Tx
from assent.review.decisions.consequences import heard_after
from assent.review.model.grants import Call, Grant, Passage, Passing, covers
from assent.review.model.policies import Effect
from assent.review.model.questions import Verb, Verdict
from assent.review.rows import gate, grants
from assent.review.rows.gate import Judged
from assent.threads.rows.checkpoints import Attempt

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

    function: Callable[[Tx], Passage]


@dataclass(frozen=True, slots=True)
class Keep:
    """Record the result of the call: retried while the store is busy, and not cancellable."""

    function: Callable[[Tx], Any]


Step: TypeAlias = Callable[[Tx], Any] | Make | Take | Keep
Steps: TypeAlias = Generator[Step, Any, Any]
Standing: TypeAlias = Callable[[Tx], bool]


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
    made = Call(task.thread_id, call_id, guarded.name, args, task.ns, guarded.idempotent)
    held = current_grant()
    if held is not None and (yield lambda tx: covers(held, tx.tenant, made)) and take_over(held):
        return (yield Make(args, held))
    judged, begun, asked = yield _first_look(task, keeper, made)
    task.hide(asked.by_position)
    if judged.effect is Effect.NEVER and not begun:
        return guarded.forbidden(judged.rule)
    if _is_free(judged, guarded.listed) and not begun and not asked.exist:  # an open question stays open
        return (yield Make(args))
    return (yield from _granted(task, keeper, guarded, made, asked, judged))


def _first_look(task: Task, keeper: Keeper, call: Call) -> Callable[[Tx], tuple[Judged, bool, _Questions]]:
    """The policy's judgement, whether the call has started (then the judgement comes too late for it), and the gate's
    questions about it."""
    judging, asked = _judging(task, keeper, call), partial(_asked, task, keeper, call)
    return lambda tx: (judging(tx), grants.was_begun(tx, call), asked(tx))


@dataclass(frozen=True, slots=True)
class _Questions:
    """The gate's questions about one call in one task. `answered` has the answers, oldest first; those of `decided`
    questions are valid. `items` are the items of all of them. `next_id` is the id of the open question, or of the next
    one."""

    answered: Mapping[str, Json]
    decided: Collection[str]
    items: Collection[str]
    next_id: str
    exist: bool
    by_position: Collection[str]
    """The questions about any call that this task has asked by position, as the gate did up to 0.2.0."""


def _asked(task: Task, keeper: Keeper, call: Call, tx: Tx) -> _Questions:
    by_position = gate.asked(tx, call, task.positions)
    earlier = [id for id, question in by_position.items() if question.about_call]
    answered = dict[str, Json]()
    for next_id in chain(earlier, map(partial(task.question_id, call), count())):
        answer = keeper.answer(tx, call.thread_id, next_id)
        if answer is None:
            break
        answered[next_id] = answer
    questions = gate.asked(tx, call, [*answered, next_id])
    decided = {id for id, question in questions.items() if question.decided}
    items = {question.item_id for question in questions.values()}
    return _Questions(answered, decided, items, next_id, bool(questions or answered), by_position.keys())


def _judging(task: Task, keeper: Keeper, call: Call) -> Callable[[Tx], Judged]:
    return partial(gate.judged, tool=call.tool, args=call.args, graph=task.graph_id, attempt=keeper.attempt)


def _standing(task: Task, keeper: Keeper, call: Call, judged: Judged) -> Standing | None:
    if not judged.sound or not judged.alone:
        return None
    return partial(gate.stands_approved, tool=call.tool, args=call.args, graph=task.graph_id, attempt=keeper.attempt)


def _is_free(judged: Judged, listed: bool | None) -> bool:
    """The author's True always asks; then a rule that names the call decides, then the author's False. Anything else
    asks."""
    if listed:
        return False
    return judged.effect is Effect.ALLOW if judged.named else listed is False


def _granted(task: Task, keeper: Keeper, guarded: Guarded, made: Call, asked: _Questions, judged: Judged) -> Steps:
    """Before the first question about the call, a standing approval may replace it."""
    mark_answers = keeper.mark_used(made.thread_id, list(asked.answered))
    asking = guarded.asking()
    valid = (answer for id, answer in asked.answered.items() if id in asked.decided)
    verdicts = [verdict for answer in valid if (verdict := asking.read(made, answer)) is not None]
    declined = next((verdict for verdict in verdicts if verdict.verb in (Verb.REJECT, Verb.RESPOND)), None)
    changed = (replace(made, args=edit.args) for edit in verdicts if edit.verb is Verb.EDIT)
    edits = [edit for edit in changed if canonical.text(edit.args) != canonical.text(made.args)]
    forbidden = judged if judged.effect is Effect.NEVER else (yield from _forbidden(task, keeper, edits))
    standing = None if asked.exist else _standing(task, keeper, made, judged)
    passing = partial(_consuming, task) if forbidden is None else _recalling
    if declined is not None:  # starts nothing, so that an equal call keeps its grant
        passing = partial(_recalling, of_items=asked.items)
    call, passage = yield from _consumed(keeper, made, edits, passing)
    match passage:
        case Passage(Passing.ASK) if declined is not None:
            yield from _noted(mark_answers)
            return guarded.declined(declined)
        case Passage(Passing.ASK) if forbidden is not None:
            return guarded.forbidden(forbidden.rule)
        case Passage(Passing.GO, Grant() as grant):
            result = yield from _made(keeper, grant, call.args)
        case Passage(Passing.REPEAT, Grant() as grant):
            result = guarded.again(grant.result)
        case Passage(Passing.WAIT, Grant() as grant):
            task.ask_again(grant.result[gate.PAUSED])
        case Passage(Passing.IN_DOUBT, Grant() as grant):
            yield partial(gate.announce_doubt, grant_id=grant.id, interrupt_id=asked.next_id, attempt=keeper.attempt)
            yield from _ask(task, keeper, asked, *doubt(grant, call))
        case Passage(doubtful=False) if standing is not None and (yield standing):
            return (yield Make(made.args))
        case _:
            reason = passage.reason if asked.answered or passage.reason != FIRST else None
            yield from _ask(task, keeper, asked, *asking.question(made, reason))
    yield from _noted(mark_answers)
    ran = result if call is made else guarded.edited(result, call.args)
    return guarded.commented(ran, passage.comments) if passage.comments else ran


def _forbidden(task: Task, keeper: Keeper, calls: Sequence[Call]) -> Generator[Step, Any, Judged | None]:
    """The judgement of the first of these calls that the policy forbids: an edit cannot bypass the policy."""
    for call in calls:
        judged: Judged = yield _judging(task, keeper, call)
        if judged.effect is Effect.NEVER:
            return judged
    return None


def _consumed(
    keeper: Keeper, made: Call, edits: Sequence[Call], passing: Callable[[Keeper, Call], Callable[[Tx], Passage]]
) -> Generator[Step, Any, tuple[Call, Passage]]:
    """The edited call or else the original one: the first with a grant. Edits come first, because the state of the
    original call does not apply to them."""
    for edit in edits:
        passage: Passage = yield Take(passing(keeper, edit))
        if passage.passing is not Passing.ASK:
            return edit, passage
    return made, (yield Take(passing(keeper, made)))


def _consuming(task: Task, keeper: Keeper, call: Call) -> Callable[[Tx], Passage]:
    return partial(consume, call=call, attempt=keeper.attempt, has_answer=task.has_answer)


def consume(tx: Tx, call: Call, attempt: Attempt | None, has_answer: Callable[[str], bool]) -> Passage:
    """Consumes the grant of the call, with the comments that follow its result."""
    return heard_after(tx, gate.consume(tx, call, attempt, has_answer))


def _recalling(keeper: Keeper, call: Call, of_items: Collection[str] | None = None) -> Callable[[Tx], Passage]:
    return partial(grants.recall, call=call, attempt=keeper.attempt, of_items=of_items)


def _made(keeper: Keeper, grant: Grant, args: Json) -> Steps:
    """Makes the call. If the process dies in between, the grant stays started: in doubt. The same holds if the call
    raises `CutOff`."""
    finish = partial(grants.finish, grant_id=grant.id, attempt=keeper.attempt)
    try:
        result = yield Make(args, grant)
    except GraphInterrupt as raised:
        asked = questions_in(raised)
        yield Keep(partial(gate.pause, grant_id=grant.id, asked=asked, attempt=keeper.attempt))
        raise
    except results.CutOff:
        raise
    except Exception as error:
        yield Keep(partial(finish, result=results.failure(error), failed=True))
        raise
    yield Keep(partial(finish, result=results.recorded(result), failed=results.is_failure(result)))
    return result


def _ask(task: Task, keeper: Keeper, asked: _Questions, value: Json, schema: Json) -> Generator[Step, Any, NoReturn]:
    yield from _noted(keeper.raising(Pending(task.thread_id, asked.next_id, value, schema, list(asked.answered))))
    task.ask(asked.next_id, value, schema)


def _noted(function: Callable[[Tx], None] | None) -> Steps:
    if function is not None:
        yield function


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
        with granted(step.grant):
            return make(step.args)
    if not isinstance(step, Keep):
        return keeper.run(step.function if isinstance(step, Take) else step)
    for wait in _WAITS:
        try:
            return keeper.run(step.function)
        except Unavailable:
            time.sleep(wait)
    return keeper.run(step.function)


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
        with granted(step.grant):
            return await make(step.args)
    if isinstance(step, Take):
        return await _atake(step, keeper)
    if not isinstance(step, Keep):
        return await keeper.arun(step)
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
    taken = asyncio.ensure_future(keeper.arun(step.function))
    try:
        return await asyncio.shield(taken)
    except asyncio.CancelledError:
        with suppress(Exception):  # a cancelled task reports nothing else
            passage = await taken
            await keeper.arun(partial(gate.give_back, passage=passage, attempt=keeper.attempt))
        raise


async def _akeep(step: Keep, keeper: Keeper) -> Any:
    for wait in _WAITS:
        try:
            return await keeper.arun(step.function)
        except Unavailable:
            await asyncio.sleep(wait)
    return await keeper.arun(step.function)
