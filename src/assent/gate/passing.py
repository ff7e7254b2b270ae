"""The way of a call through the gate, written once for threads and coroutines.

`through` is a generator: it yields what has to be done next (a store function to run, the call itself to make) and is
sent what came of it; `drive` and `adrive` do it. A grant is consumed first. Only where there is none is a person asked,
and after the answer the grant is looked for again: an answer alone, whoever sent it, never runs anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn, Protocol, TypeAlias

from langgraph.errors import GraphInterrupt

from assent.domain import canonical
from assent.domain.canonical import Json
from assent.domain.grants import Call, Grant, Passage, Passing, covers
from assent.domain.policies import Effect
from assent.domain.questions import Verb, Verdict
from assent.errors import Unavailable
from assent.gate import results
from assent.gate.keeper import Keeper, Pending, current_grant, granted, take_over
from assent.gate.questions import Asking, doubt
from assent.gate.task import Task
from assent.store import gate, grants
from assent.store.gate import Asked, Judged
from assent.store.transaction import Tx

_WAITS = (0.1, 0.3, 1.0, 3.0)
"""Seconds between tries to write down what came of a call. After the last one it stays in doubt."""

FIRST = "nobody has approved this call"
"""Why a call is asked about for the first time: no reason that its reviewer has to be told."""


@dataclass(frozen=True, slots=True)
class Make:
    """Make the call now, with these arguments."""

    args: Json
    grant: Grant | None = None


@dataclass(frozen=True, slots=True)
class Keep:
    """What came of the call must be written down: a busy store is tried again, and nothing cuts it short."""

    function: Callable[[Tx], Any]


Step: TypeAlias = Callable[[Tx], Any] | Make | Keep
Steps: TypeAlias = Generator[Step, Any, Any]
Standing: TypeAlias = Callable[[Tx], bool]


class Guarded(Protocol):
    """What stands behind the gate: a tool of an agent, or a function."""

    name: str
    idempotent: bool
    listed: bool | None
    """Whether the author wants it to ask; None where nothing was said about it."""

    conditional: bool
    """Whether that may be another answer the next time: then a call that was asked about stays asked about."""

    def asking(self) -> Asking:
        """How to ask for it."""
        ...

    def declined(self, verdict: Verdict) -> Any:
        """What its caller gets instead of a result."""
        ...

    def forbidden(self, rule: str) -> Any:
        """The same where the policy never lets it run."""
        ...

    def edited(self, result: Any, args: Json) -> Any:
        """The result of a call that a person has changed before it was made."""
        ...

    def again(self, recorded: Json) -> Any:
        """The result of a call that was made already, as it was recorded."""
        ...


def through(task: Task, keeper: Keeper, guarded: Guarded, args: Json, call_id: str) -> Steps:
    if "\0" in f"{call_id}{guarded.name}":  # which no database can be trusted to keep
        raise ValueError(f"the call of {guarded.name!r} has a NUL in its name or id: no approval could be bound to it")
    made = Call(task.thread_id, call_id, guarded.name, args, task.ns, guarded.idempotent)
    held = current_grant()
    if held is not None and (yield lambda tx: covers(held, tx.tenant, made)) and take_over(held):
        return (yield Make(args, held))
    judged, begun = yield _first_look(task, keeper, made)
    if judged.effect is Effect.NEVER and not begun:
        return guarded.forbidden(judged.rule)
    free = _is_free(judged, guarded.listed) and not begun
    if free and not guarded.conditional:
        return (yield Make(args))
    known = yield partial(gate.asked, thread_id=task.thread_id, call_id=call_id, interrupt_ids=task.interrupt_ids)
    own = {id: asked for id, asked in known.items() if asked.call_id == call_id}
    if free and not own:
        return (yield Make(args))
    return (yield from _granted(task, keeper, guarded, made, own, judged))


def _first_look(task: Task, keeper: Keeper, call: Call) -> Callable[[Tx], tuple[Judged, bool]]:
    """What the policy says, and whether the call was begun before: then what it says now comes too late for it."""
    judging = _judging(task, keeper, call)
    return lambda tx: (judging(tx), grants.was_begun(tx, call))


def _judging(task: Task, keeper: Keeper, call: Call) -> Callable[[Tx], Judged]:
    return partial(gate.judged, tool=call.tool, args=call.args, graph=task.graph_id, attempt=keeper.attempt)


def _standing(task: Task, keeper: Keeper, call: Call, judged: Judged) -> Standing | None:
    if not judged.sound or not judged.alone:
        return None
    return partial(gate.stands_approved, tool=call.tool, args=call.args, graph=task.graph_id, attempt=keeper.attempt)


def _is_free(judged: Judged, listed: bool | None) -> bool:
    """What the author lists to be asked is asked; then a rule that names the call counts, then the author's word that
    it may run freely. Whatever nobody has spoken of is asked."""
    if listed:
        return False
    return judged.effect is Effect.ALLOW if judged.named else listed is False


def _granted(
    task: Task, keeper: Keeper, guarded: Guarded, made: Call, own: Mapping[str, Asked], judged: Judged
) -> Steps:
    """`own` are the questions that this task has asked about the call so far. Before the first one, a standing approval
    may answer instead."""
    replies = task.answers(own.__contains__)
    before = [id for id, _ in replies]
    heard = keeper.heard(made.thread_id, before)
    asking = guarded.asking()
    said = [one for id, answer in replies if own[id].decided and (one := asking.read(made, answer)) is not None]
    declined = next((one for one in said if one.verb in (Verb.REJECT, Verb.RESPOND)), None)
    if declined is not None:  # first, so that the grant of a call that looks the same is left to that one
        yield from _noted(heard)
        return guarded.declined(declined)
    changed = (replace(made, args=one.args) for one in said if one.verb is Verb.EDIT)
    edits = [one for one in changed if canonical.text(one.args) != canonical.text(made.args)]
    forbidden = judged if judged.effect is Effect.NEVER else (yield from _forbidden(task, keeper, edits))
    standing = None if own else _standing(task, keeper, made, judged)
    call, passage = yield from _consumed(keeper, made, edits, _consuming if forbidden is None else _recalling)
    match passage:
        case Passage(Passing.ASK) if forbidden is not None:
            return guarded.forbidden(forbidden.rule)
        case Passage(Passing.GO, Grant() as grant):
            task.skip(len(replies))
            result = yield from _made(keeper, grant, call.args)
        case Passage(Passing.REPEAT, Grant() as grant):
            result = guarded.again(grant.result)
        case Passage(Passing.IN_DOUBT, Grant() as grant):
            yield from _ask(task, keeper, before, *doubt(grant, call))
        case Passage(doubtful=False) if standing is not None and (yield standing):
            return (yield Make(made.args))
        case _:
            reason = passage.reason if replies or passage.reason != FIRST else None
            yield from _ask(task, keeper, before, *asking.question(made, reason))
    yield from _noted(heard)
    return result if call is made else guarded.edited(result, call.args)


def _forbidden(task: Task, keeper: Keeper, calls: Sequence[Call]) -> Generator[Step, Any, Judged | None]:
    """What the policy says about the first of these calls that it never lets run: an edit is no way past it."""
    for call in calls:
        judged: Judged = yield _judging(task, keeper, call)
        if judged.effect is Effect.NEVER:
            return judged
    return None


def _consumed(
    keeper: Keeper, made: Call, edits: Sequence[Call], passing: Callable[[Keeper, Call], Callable[[Tx], Passage]]
) -> Generator[Step, Any, tuple[Call, Passage]]:
    """The call as a person has changed it, or else as it was made: whichever there is a grant for. Changes come first,
    because what became of the call as it was made says nothing about them."""
    for edit in edits:
        passage: Passage = yield passing(keeper, edit)
        if passage.passing is not Passing.ASK:
            return edit, passage
    return made, (yield passing(keeper, made))


def _consuming(keeper: Keeper, call: Call) -> Callable[[Tx], Passage]:
    return partial(gate.consume, call=call, attempt=keeper.attempt)


def _recalling(keeper: Keeper, call: Call) -> Callable[[Tx], Passage]:
    return partial(grants.recall, call=call, attempt=keeper.attempt)


def _made(keeper: Keeper, grant: Grant, args: Json) -> Steps:
    """The call itself. Whatever ends this process in between leaves the grant started: in doubt. So does a call that
    says so of itself."""
    finish = partial(grants.finish, grant_id=grant.id, attempt=keeper.attempt)
    try:
        result = yield Make(args, grant)
    except GraphInterrupt:
        yield Keep(partial(gate.pause, grant_id=grant.id, attempt=keeper.attempt))
        raise
    except results.CutOff:
        raise
    except Exception as error:
        yield Keep(partial(finish, result=results.failure(error), failed=True))
        raise
    yield Keep(partial(finish, result=results.recorded(result), failed=results.is_failure(result)))
    return result


def _ask(
    task: Task, keeper: Keeper, before: Sequence[str], value: Json, schema: Json
) -> Generator[Step, Any, NoReturn]:
    yield from _noted(keeper.raising(Pending(task.thread_id, task.next_id, value, schema, before)))
    task.ask(value, schema)


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
            reply = _done(step, keeper, make)
        except Exception as error:  # noqa: BLE001 - the generator decides what comes of it
            failure = error


def _done(step: Step, keeper: Keeper, make: Callable[[Json], Any]) -> Any:
    if isinstance(step, Make):
        with granted(step.grant):
            return make(step.args)
    if not isinstance(step, Keep):
        return keeper.run(step)
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
            reply = await _adone(step, keeper, make)
        except Exception as error:  # noqa: BLE001 - the generator decides what comes of it
            failure = error


async def _adone(step: Step, keeper: Keeper, make: Callable[[Json], Awaitable[Any]]) -> Any:
    if isinstance(step, Make):
        with granted(step.grant):
            return await make(step.args)
    if not isinstance(step, Keep):
        return await keeper.arun(step)
    kept = asyncio.ensure_future(_akept(step, keeper))
    try:
        return await asyncio.shield(kept)
    except asyncio.CancelledError:
        with suppress(Exception):  # who is cancelled hears of nothing else
            await kept
        raise


async def _akept(step: Keep, keeper: Keeper) -> Any:
    for wait in _WAITS:
        try:
            return await keeper.arun(step.function)
        except Unavailable:
            await asyncio.sleep(wait)
    return await keeper.arun(step.function)
