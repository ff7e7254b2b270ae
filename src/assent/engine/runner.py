"""Executes one attempt of a run: opens its graph, streams it, and records how it ended.

A later attempt goes on from the last checkpoint of this very run: what it finished is not done again, and an answer
that a checkpoint holds already is not sent a second time. Whatever ends the attempt, the thread's row, the answers and
the next run in line change in one transaction, which only the attempt that still counts can make.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from assent.domain.runs import Cancel, Outcome, Run, RunStatus, durable
from assent.engine import jsonable, outcomes, states, streaming
from assent.engine.attempts import patiently, to_the_end
from assent.engine.endings import finish
from assent.engine.feed import Feed
from assent.engine.project import Project, config_for
from assent.errors import AssentError, Unavailable
from assent.ports import Bus, Store
from assent.store import runs
from assent.store.checkpoints import Attempt, Fenced

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from assent.engine.graphs import AnyPregel

log = logging.getLogger(__name__)

_STRICT_RESUME = "__pregel_strict_resume"
_MOST_SECONDS_TO_FINISH = 10.0


class Runner:
    def __init__(
        self, store: Store, project: Project, bus: Bus, *, timeout: timedelta, most_attempts: int = 100
    ) -> None:
        self._store = store
        self._project = project
        self._bus = bus
        self._timeout = timeout.total_seconds()
        self._most_attempts = most_attempts

    async def execute(self, tenant: str, run: Run) -> None:
        """Runs until the attempt has ended and that is recorded; or hands it back when this process stops."""
        feed = Feed(self._bus, tenant, run)
        try:
            outcome = await self._attempt(tenant, run, feed)
            await to_the_end(self._record(tenant, run, feed, outcome))
        except Fenced:
            log.warning("attempt was taken over", extra={"run_id": run.id, "attempt": run.attempt})

    async def _record(self, tenant: str, run: Run, feed: Feed, outcome: Outcome | None) -> None:
        attempt = Attempt(run.id, run.attempt)
        await feed.keep()
        if outcome is None:
            return await self._store.write(tenant, runs.hand_back, attempt)
        last, asked = feed.last(outcome.result), False

        async def try_to_finish() -> None:
            """After a try whose commit was not answered, being fenced means that it was committed."""
            nonlocal asked
            again, asked = asked, True
            try:
                shown = self._bus.is_followed(run.id)
                kept = (feed.stream, feed.kept(last))
                gated = self._project.is_gated(run.graph_id)
                await self._store.write(tenant, finish, run, attempt, outcome, shown=shown, last=kept, gated=gated)
            except Fenced:
                if not again:
                    raise

        await patiently(try_to_finish, most_seconds=_MOST_SECONDS_TO_FINISH)
        await feed.end(last)

    async def _attempt(self, tenant: str, run: Run, feed: Feed) -> Outcome | None:
        """How it ended, or None where it was only interrupted by this process stopping."""
        if run.cancel is not None:  # asked for while nobody was at it
            return await to_the_end(self._stopped(tenant, run))
        if run.attempt > self._most_attempts:
            given_up = RuntimeError(f"the run was cut off {self._most_attempts} times and is not tried again")
            return await to_the_end(self._failed(tenant, run, feed, RunStatus.ERROR, given_up))
        try:
            async with asyncio.timeout(self._timeout):
                return await self._stream(tenant, run, feed)
        except asyncio.CancelledError:
            return await to_the_end(self._stopped(tenant, run))
        except (Fenced, Unavailable):
            raise
        except TimeoutError:
            timeout = TimeoutError("the run took too long")
            return await to_the_end(self._failed(tenant, run, feed, RunStatus.TIMEOUT, timeout))
        except Exception as error:  # noqa: BLE001 - whatever the author's graph raises is the run's error
            return await to_the_end(self._failed(tenant, run, feed, RunStatus.ERROR, error))

    async def _stream(self, tenant: str, run: Run, feed: Feed) -> Outcome:
        await feed.send("metadata", {"run_id": run.id, "attempt": run.attempt})
        config = _config(tenant, run)
        modes = run.kwargs["stream_mode"]
        translator = streaming.Translator(modes)
        async with self._project.open(run.graph_id, config, context=run.kwargs.get("context")) as graph:
            kwargs = durable(run.kwargs) if self._project.is_gated(run.graph_id) else run.kwargs
            input, config, done = await _whence(graph, run, config)
            if done is not None:
                return outcomes.of_state(done, RunStatus.SUCCESS)
            stream = streaming.chunks(
                graph, input, config, modes=modes, subgraphs=kwargs["subgraphs"], **_options(graph, kwargs)
            )
            async for chunk in stream:
                for event, data in translator.events(chunk):
                    await feed.send(event, data)
            return await _ended(graph, tenant, run, translator)

    async def _stopped(self, tenant: str, run: Run) -> Outcome | None:
        current = await self._store.read(tenant, runs.get, run.id)
        if current is None or current.cancel is None:
            return None
        if current.cancel is Cancel.ROLLBACK:
            return Outcome(RunStatus.INTERRUPTED, rolled_back=True, error=_user("UserRollback", "rollback"))
        snapshot = await self._snapshot(tenant, run)
        error = _user("UserInterrupt", "interrupt") if snapshot.next else None
        return outcomes.of_state(snapshot, RunStatus.INTERRUPTED, error)

    async def _failed(self, tenant: str, run: Run, feed: Feed, status: RunStatus, error: Exception) -> Outcome:
        log.info("run failed", extra={"run_id": run.id, "graph": run.graph_id, "error": repr(error)}, exc_info=error)
        shown = {"error": type(error).__name__, "message": str(error)}
        await feed.send("error", shown)
        try:
            return outcomes.of_state(await self._snapshot(tenant, run), status, shown)
        except Unavailable:
            raise
        except AssentError:  # the graph itself cannot be opened: there is no state to show
            return Outcome(status, error=shown)

    async def _snapshot(self, tenant: str, run: Run) -> StateSnapshot:
        config = config_for(tenant, run.thread_id)
        async with self._project.open(run.graph_id, config, access="threads.read") as graph:
            return await graph.aget_state(config)  # type: ignore[arg-type]


def _config(tenant: str, run: Run) -> dict[str, Any]:
    """The config of the run as it was asked for, plus what only we may put into it."""
    asked = run.kwargs["config"]
    named = {**asked.get("configurable", {}), _STRICT_RESUME: True}
    named.update(run_id=run.id, graph_id=run.graph_id, assistant_id=run.assistant_id)
    scoped = config_for(tenant, run.thread_id, attempt=Attempt(run.id, run.attempt))["configurable"]
    metadata = {**asked.get("metadata", {}), "run_id": run.id, "run_attempt": run.attempt}
    return {**asked, "configurable": {**named, **scoped, **_fork(run.kwargs)}, "metadata": metadata, "run_id": run.id}


def _fork(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    checkpoint = kwargs.get("checkpoint") or {}
    return {name: checkpoint[name] for name in ("checkpoint_id", "checkpoint_ns") if checkpoint.get(name)}


def _options(graph: AnyPregel, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    options = {
        "durability": kwargs.get("durability"),
        "interrupt_before": kwargs.get("interrupt_before"),
        "interrupt_after": kwargs.get("interrupt_after"),
        "context": outcomes.context_for(graph, kwargs.get("context")),
    }
    return {name: value for name, value in options.items() if value is not None}


async def _whence(
    graph: AnyPregel, run: Run, config: dict[str, Any]
) -> tuple[Any, dict[str, Any], StateSnapshot | None]:
    """Input and config to go on with; the snapshot instead where there is nothing left to do."""
    if run.attempt == 1 and not run.answers:
        return _input(run.kwargs), config, None
    unforked = {**config, "configurable": {k: v for k, v in config["configurable"].items() if k != "checkpoint_id"}}
    snapshot = await graph.aget_state(unforked)  # type: ignore[arg-type]
    if (snapshot.metadata or {}).get("run_id") == run.id:
        return None, unforked, None if snapshot.next or snapshot.tasks else snapshot
    if not run.answers:
        return _input(run.kwargs), config, None
    answer = _still_open(run.kwargs, snapshot)
    goes_on = answer is not None or (not run.kwargs.get("command") and snapshot.next)
    return answer, unforked, None if goes_on else snapshot


def _input(kwargs: Mapping[str, Any]) -> Any:
    command = kwargs.get("command")
    if not command:
        return kwargs.get("input")
    from langgraph.types import Command, Send

    goto = command.get("goto") or ()
    targets = [goto] if isinstance(goto, (str, dict)) else list(goto)
    sends = [Send(one["node"], one.get("input")) if isinstance(one, dict) else one for one in targets]
    return Command(resume=command.get("resume"), update=command.get("update"), goto=sends)


def _still_open(kwargs: Mapping[str, Any], snapshot: StateSnapshot) -> Any:
    """The answer without the questions that are behind the thread: an earlier attempt of this run has answered them, or
    another run, which found what they allow granted already. None where it goes on without one."""
    command = kwargs.get("command")
    if not command:
        return None
    asked = {question["id"] for task in states.interrupts_of(snapshot).values() for question in task}
    resume = {id: value for id, value in command["resume"].items() if id in asked}
    return _input({"command": {**command, "resume": resume}}) if resume else None


async def _ended(graph: AnyPregel, tenant: str, run: Run, translator: streaming.Translator) -> Outcome:
    """A run that asked nothing and could not stop at a breakpoint is done; anything else the state has to say."""
    stops = run.kwargs.get("interrupt_before") or run.kwargs.get("interrupt_after")
    if not translator.asked and not stops and not graph.interrupt_before_nodes and not graph.interrupt_after_nodes:
        return Outcome(RunStatus.SUCCESS, values=jsonable.plain(translator.values))
    snapshot = await graph.aget_state(config_for(tenant, run.thread_id))  # type: ignore[arg-type]
    return outcomes.of_state(snapshot, RunStatus.SUCCESS)


def _user(kind: str, action: str) -> dict[str, str]:
    return {"error": kind, "message": f"{action} requested via POST /threads/{{thread_id}}/runs/{{run_id}}/cancel"}
