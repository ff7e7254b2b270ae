"""Executes one attempt of a run: opens its graph, streams it, and records its outcome.

A later attempt continues from the last checkpoint of the same run: finished steps are not repeated, and an answer that
a checkpoint already holds is not sent again. At the end of the attempt, the thread's row, the answers and the next run
change in one transaction, which is fenced to the current attempt.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from assent.errors import AssentError, Forbidden, ThreadWaits, TooLarge
from assent.identity.rows import actors
from assent.kernel import events, fair_threads, jsonable, jsontext
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.threads.secrets import covering as covering_of
from assent.runs.checkpoints.backlog import Backlog
from assent.runs.checkpoints.commands import command_of
from assent.runs.engine import breakpoints, outcomes, states
from assent.runs.engine import stream as streaming
from assent.runs.engine.attempts import is_lasting, uncancelled
from assent.runs.engine.feed import Feed
from assent.runs.engine.records import Recorder, log_failure
from assent.runs.engine.state_reads import read_back, state_of
from assent.runs.project.failures import SHOWN, Failures
from assent.runs.project.project import Project, config_for, has_asked, scope_of
from assent.runs.upstream import STRICT_RESUME
from assent.threads.bus import Bus
from assent.threads.model.configs import clean_tags
from assent.threads.model.runs import Cancel, Outcome, Run, RunStatus, durable
from assent.threads.rows import runs, threads
from assent.threads.rows.state import checkpoints
from assent.threads.rows.state.checkpoints import Attempt, Fenced

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from assent.runs.checkpoints.saver import Found, StoreSaver
    from assent.runs.project.graphs import AnyPregel

log = logging.getLogger(__name__)

_MOST_SECONDS_TO_READ = 30.0
_MOST_CUT_OFF = 1000  # includes attempts aborted by the database, which are no fault of the run


class Runner:
    def __init__(self, store: Store, project: Project, bus: Bus, *, timeout: timedelta, most_attempts: int = 5) -> None:
        self._store = store
        self._project = project
        self._bus = bus
        self._recorder = Recorder(store, bus, project.is_gated, project.failures)
        self._timeout = timeout.total_seconds()
        self._most_attempts = most_attempts

    async def execute(self, tenant: str, run: Run) -> None:
        """Executes the attempt and records its outcome, or returns it to the queue when this process stops.

        Every error of the graph ends the run. Only `Unavailable` is raised to the caller."""
        feed, backlog = Feed(self._bus, tenant, run), Backlog(self._store, tenant)
        try:
            outcome = await self._attempt(tenant, run, feed, backlog)
            await uncancelled(self._record(tenant, run, feed, outcome, backlog))
        except Fenced:
            log.warning("attempt was fenced", extra={"run_id": run.id, "attempt": run.attempt})

    def prepare(self, tx: Tx, run: Run) -> _Standing | None:
        """Reads the facts with which the run begins. An unreadable checkpoint fails the run, not its beginning."""
        try:
            return _standing(tx, run, self._project.saver) if run.graph_id in self._project.graphs else None
        except AssentError:
            return None

    async def _presentable(self, feed: Feed, outcome: Outcome) -> Outcome:
        """Fails a run whose question cannot be shown to a person."""
        if not outcome.pending:
            return outcome
        flaw = await fair_threads.beside(thread_items.flaw, self._store.limits, outcome.pending)
        if flaw is None:
            return outcome
        error = {"error": TooLarge.__name__, "message": f"the question of the run cannot be shown to a person: {flaw}"}
        await feed.send("error", error)
        return replace(outcome, status=RunStatus.ERROR, interrupts={}, error=error)

    async def _record(self, tenant: str, run: Run, feed: Feed, outcome: Outcome | None, backlog: Backlog) -> None:
        if outcome is not None:
            shown = await self._presentable(feed, outcome)
            return await self._recorder.record(tenant, run, feed, shown, await backlog.rest())
        await feed.keep()
        await self._store.write(tenant, runs.hand_back, Attempt(run.id, run.attempt))

    async def _attempt(self, tenant: str, run: Run, feed: Feed, backlog: Backlog) -> Outcome | None:
        """The outcome; None if the attempt was interrupted because this process stops."""
        if run.cancel is not None:  # cancelled while no worker executed it
            return await uncancelled(self._stopped(tenant, run))
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                return await self._begun(tenant, run, feed, backlog)
        except BaseException as error:
            if is_lasting(error):
                return await uncancelled(self._cut_short(tenant, run, feed, error, late=limit.expired()))
            if not isinstance(error, asyncio.CancelledError):
                raise
            return await uncancelled(self._stopped(tenant, run))

    async def _begun(self, tenant: str, run: Run, feed: Feed, backlog: Backlog) -> Outcome:
        """The outcome of the graph, or a failure if the run has used up its attempts or its actor was dismissed."""
        if reason := await self._given_up(tenant, run):
            return await uncancelled(self._failed(tenant, run, feed, RuntimeError(reason), SHOWN))
        standing = run.prepared or await self._store.write(tenant, _standing, run, self._project.saver)
        if standing.dismissed is not None:
            return await uncancelled(self._refused(tenant, run, feed, standing.dismissed))
        return await self._stream(tenant, run, feed, backlog, standing)

    async def _given_up(self, tenant: str, run: Run) -> str | None:
        """The reason not to retry the run: too many attempts ended without a finished step."""
        most = self._most_attempts
        if run.attempt > _MOST_CUT_OFF:
            return f"the run was aborted {run.attempt - 1} times and is not retried"
        if run.lost < most or await self._store.read(tenant, _last_stored, run) > run.attempt - most:
            return None
        return f"the run's process ended {run.lost} times during its execution, and it is not retried"

    async def _refused(self, tenant: str, run: Run, feed: Feed, reason: str) -> Outcome:
        """Ends a run whose actor has lost its rights. The thread is unchanged."""
        error = SHOWN.of_run(Forbidden(f"the run does not begin: {reason} after the run was requested"), run.id)
        await feed.send("error", error)
        await self._store.write(tenant, _note_refusal, run, reason)
        log.warning("run refused", extra={"run_id": run.id, "thread_id": run.thread_id, "reason": reason})
        return Outcome(RunStatus.ERROR, error=error, unread=True)

    async def _stream(self, tenant: str, run: Run, feed: Feed, backlog: Backlog, standing: _Standing) -> Outcome:
        await feed.send("metadata", {"run_id": run.id, "attempt": run.attempt})
        config = _config(tenant, run, backlog=backlog, heads={run.thread_id: standing.head})
        async with self._project.open(run.graph_id, config, context=run.kwargs.get("context")) as graph, backlog:
            outcome = await self._execute(graph, tenant, run, feed, config, backlog, stamped=standing.stamped)
            return replace(outcome, output=outcomes.output_of(graph))

    async def _execute(
        self,
        graph: AnyPregel,
        tenant: str,
        run: Run,
        feed: Feed,
        config: dict[str, Any],
        backlog: Backlog,
        *,
        stamped: bool,
    ) -> Outcome:
        kwargs = durable(run.kwargs) if self._project.is_gated(run.graph_id) else run.kwargs
        commanded = run.attempt > 1 and await self._store.read(tenant, _is_commanded, run)
        input, config, done = await _starting_point(graph, run, config, commanded=commanded)
        if done is not None:
            return await _ended_before(graph, done, kwargs, feed)
        decided = breakpoints.Decided(self._store, tenant, run)
        stopped = await breakpoints.stop(graph, run, input, config, decided)
        if stopped is not None:
            return stopped
        if not stamped:
            await self._store.write(tenant, runs.stamp, run)
        if kwargs.get("durability") != "sync":
            backlog.open()
        modes = kwargs["stream_mode"]
        translator = streaming.Translator(modes, self._project.failures)
        stream = streaming.chunks(
            graph, input, config, modes=modes, subgraphs=kwargs["subgraphs"], **_options(graph, kwargs)
        )
        async for chunk in stream:
            for event, data in translator.events(chunk):
                await feed.send(event, data)
        from assent.gate.task import calls_ended  # slow to import before a graph is

        await calls_ended(run.id)
        return await _ended(graph, run, config, translator, decided, backlog)

    async def _stopped(self, tenant: str, run: Run) -> Outcome | None:
        current = await self._store.read(tenant, runs.get, run.id)
        if current is None or current.cancel is None:
            return None
        if current.cancel is Cancel.ROLLBACK:
            return Outcome(RunStatus.INTERRUPTED, rolled_back=True, error=_user("UserRollback", "rollback"))
        outcome = await self._outcome(tenant, run, RunStatus.INTERRUPTED, _user("UserInterrupt", "interrupt"))
        return outcome if outcome.next else replace(outcome, error=None)

    async def _cut_short(self, tenant: str, run: Run, feed: Feed, error: BaseException, *, late: bool) -> Outcome:
        if not late:
            outcome = await self._failed(tenant, run, feed, error, self._project.failures)
            return replace(outcome, refused=isinstance(error, ThreadWaits))
        timeout = TimeoutError("the run took too long")
        return await self._failed(tenant, run, feed, timeout, SHOWN, RunStatus.TIMEOUT)

    async def _failed(
        self,
        tenant: str,
        run: Run,
        feed: Feed,
        error: BaseException,
        failures: Failures,
        status: RunStatus = RunStatus.ERROR,
    ) -> Outcome:
        shown = failures.of_run(error, run.id)
        await feed.send("error", shown)
        try:
            outcome = await self._outcome(tenant, run, status, shown)
        except BaseException:  # without the state, the secrets to mask are unknown
            log_failure("run failed", run, error, cover=lambda text: "")
            raise
        await self._log(tenant, run, error, outcome)
        return outcome

    async def _log(self, tenant: str, run: Run, error: BaseException, outcome: Outcome) -> None:
        """Logs the failure without the thread's secrets, which error texts often contain."""
        try:
            covering = await self._store.read(tenant, covering_of, run.thread_id)
            await fair_threads.beside(covering, outcome.values)
        except AssentError:  # the secrets to mask are unknown
            return log_failure("run failed", run, error, cover=lambda text: "")
        log_failure("run failed", run, error, cover=covering.text)

    async def _outcome(self, tenant: str, run: Run, status: RunStatus, error: dict[str, str]) -> Outcome:
        """The outcome with the readable part of the state. Does not read it if reading may have crashed the
        processes."""
        config = config_for(tenant, run.thread_id)
        try:
            if run.lost <= self._most_attempts:
                async with (
                    asyncio.timeout(_MOST_SECONDS_TO_READ),
                    self._project.open(run.graph_id, config, access="threads.read") as graph,
                ):
                    if (snapshot := await read_back(graph, config)) is not None:
                        outcome = outcomes.of_state(snapshot, status, error)
                        return replace(outcome, output=outcomes.output_of(graph))
        except BaseException as unreadable:
            if not is_lasting(unreadable):
                raise
            log_failure("read state after run failed", run, unreadable)
        return Outcome(status, error=error, unread=True)


@dataclass(frozen=True, slots=True)
class _Standing:
    """The facts with which a run begins."""

    dismissed: str | None
    """The reason why it must not begin."""
    stamped: bool = False
    """Whether its thread already has its graph and assistant."""
    head: Found | None = None
    """The newest checkpoint of its thread."""


def _standing(tx: Tx, run: Run, saver: StoreSaver) -> _Standing:
    """Read on the writer's connection, as the checkpoints of runs are."""
    if dismissed := actors.why_dismissed(tx, run.actor):
        return _Standing(dismissed)
    stamped = threads.bears(tx, run.thread_id, run.graph_id, run.assistant_id)
    return _Standing(None, stamped, saver.newest(tx, run.thread_id))


def _note_refusal(tx: Tx, run: Run, reason: str) -> None:
    details = {"run": run.id, "of": run.actor, "reason": reason}
    events.append(tx, thread_items.SYSTEM, "run.refused", f"thread:{run.thread_id}", details)


def _last_stored(tx: Tx, run: Run) -> int:
    """The number of the run's last attempt that finished a step."""
    for newest in checkpoints.history(tx, run.thread_id, None, before=None, limit=1):
        facts = jsontext.load(newest.metadata)
        return int(facts.get("run_attempt") or 0) if facts.get("run_id") == run.id else 0
    return 0


def _config(tenant: str, run: Run, **read: Any) -> dict[str, Any]:
    """The requested config of the run, plus the server's own keys. `read`: what the attempt's scope holds."""
    requested = run.kwargs["config"]
    configurable = {**requested.get("configurable", {}), STRICT_RESUME: True}
    configurable.update(run_id=run.id, graph_id=run.graph_id, assistant_id=run.assistant_id)
    configurable.update(run_id=run.id, graph_id=run.graph_id, assistant_id=run.assistant_id)
    scoped = {"thread_id": run.thread_id, **scope_of(tenant, Attempt(run.id, run.attempt), **read)}
    metadata = {**requested.get("metadata", {}), **run.metadata, "run_id": run.id, "run_attempt": run.attempt}
    config = {
        **requested,
        "configurable": {**configurable, **scoped, **_fork(run.kwargs)},
        "metadata": metadata,
        "run_id": run.id,
    }
    return {**config, "tags": clean_tags(requested.get("tags") or ())}  # earlier releases stored them unchecked


def _fork(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    checkpoint = kwargs.get("checkpoint") or {}
    return {name: checkpoint[name] for name in ("checkpoint_id", "checkpoint_ns") if checkpoint.get(name)}


def _options(graph: AnyPregel, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    options = {
        "durability": kwargs.get("durability"),
        "context": outcomes.context_for(graph, kwargs.get("context")),
        **breakpoints.stops(graph, kwargs),
    }
    return {name: value for name, value in options.items() if value is not None}


async def _starting_point(
    graph: AnyPregel, run: Run, config: dict[str, Any], *, commanded: bool
) -> tuple[Any, dict[str, Any], StateSnapshot | None]:
    """The input and config to continue with; the snapshot if nothing is left to do. `commanded`: an earlier attempt has
    stored the goto and update of the command. LangGraph applies those by itself, and would add the same ones again."""
    if run.attempt == 1 and not run.answers:
        return _input(run.kwargs), config, None
    kwargs = _without_steering(run.kwargs) if commanded else run.kwargs
    unforked = {**config, "configurable": {k: v for k, v in config["configurable"].items() if k != "checkpoint_id"}}
    snapshot = await state_of(graph, unforked)
    if (snapshot.metadata or {}).get("run_id") == run.id:
        return None, unforked, None if snapshot.next or snapshot.tasks else snapshot
    if not run.answers:
        return _input(kwargs), unforked if commanded else config, None
    answer = _still_open(kwargs, snapshot)
    goes_on = bool(snapshot.next) and (commanded or not kwargs.get("command"))
    continues = answer is not None or _is_between_steps(snapshot) or goes_on
    return answer, unforked, None if continues else snapshot


async def _ended_before(graph: AnyPregel, done: StateSnapshot, kwargs: Mapping[str, Any], feed: Feed) -> Outcome:
    """The outcome of an earlier attempt, which ended between its last checkpoint and its end. The last frames may have
    been lost with its process, so the values are sent again."""
    outcome = replace(outcomes.of_state(done, RunStatus.SUCCESS), output=outcomes.output_of(graph))
    if "values" in kwargs["stream_mode"]:
        await feed.send("values", outcome.result)
    return outcome


def _is_commanded(tx: Tx, run: Run) -> bool:
    """Whether an earlier attempt has stored the goto and update of the run's command."""
    return bool(run.kwargs.get("command")) and checkpoints.is_commanded(tx, run.thread_id, run.id)


def _without_steering(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a run with only the answers of its command."""
    resume = kwargs["command"].get("resume")
    return {**kwargs, "input": None, "command": None if resume is None else {"resume": resume}}


def _is_between_steps(snapshot: StateSnapshot) -> bool:
    """Whether all tasks of a step have finished but the step has not: an attempt ended between storing the tasks'
    outputs and storing the next checkpoint."""
    return bool(snapshot.tasks) and not snapshot.next


def _input(kwargs: Mapping[str, Any]) -> Any:
    command = kwargs.get("command")
    return command_of(command) if command else kwargs.get("input")


def _still_open(kwargs: Mapping[str, Any], snapshot: StateSnapshot) -> Any:
    """The answers to questions that are still open. The others were answered by an earlier attempt, or by another run
    whose call was already granted. None if there is nothing to answer."""
    command = kwargs.get("command")
    if not command:
        return None
    asked = {question["id"] for task in states.interrupts_of(snapshot).values() for question in task}
    resume = {id: value for id, value in command["resume"].items() if id in asked}
    return _input({"command": {**command, "resume": resume}}) if resume else None


async def _ended(
    graph: AnyPregel,
    run: Run,
    config: Mapping[str, Any],
    translator: streaming.Translator,
    decided: breakpoints.Decided,
    backlog: Backlog,
) -> Outcome:
    """The outcome of a streamed run. It is read from the state, unless the run has no question and no breakpoint and
    has streamed its whole state."""
    stopped = has_asked(config) or translator.stopped or breakpoints.may_stop(graph, run)
    if not (stopped or outcomes.output_of(graph)):
        return Outcome(RunStatus.SUCCESS, values=jsonable.texts(translator.values))
    await backlog.flush()
    snapshot = await state_of(graph, config_for(decided.tenant, run.thread_id))
    outcome = outcomes.of_state(snapshot, RunStatus.SUCCESS)
    if not outcome.pending:
        return outcome
    return replace(outcome, stopped=await breakpoints.beside(graph, run, snapshot, decided))


def _user(kind: str, action: str) -> dict[str, str]:
    """By a caller, by another run, or because a client went away (`on_disconnect`)."""
    return {"error": kind, "message": f"{action} requested"}
