"""Enforces gated breakpoints.

LangGraph stops before a node of `interrupt_before` only when it arrives there. A resumed thread passes it: by a run
without input, a command, a replay from a checkpoint, or the next attempt of a run whose process died between a step
and its stop. So this module checks which nodes such a run would enter before it begins. Only a decision, which names
the checkpoint, lets a run pass a gated breakpoint.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from assent.errors import ThreadWaits
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.threads.breakpoints import has_stopped, is_gated
from assent.runs.engine import outcomes
from assent.runs.engine.attempts import is_lasting
from assent.runs.engine.namespaces import has_ended, is_hidden, is_of
from assent.runs.engine.state_reads import state_of
from assent.runs.project.project import config_for
from assent.threads.model.runs import Outcome, Run, RunStatus
from assent.threads.rows import runs
from assent.threads.rows.state import checkpoints

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

    from assent.runs.project.graphs import AnyPregel, Saver

_ALL = "*"
_HIDDEN = "langsmith:hidden"
"""The tag of nodes that LangGraph excludes from `*`."""
_FORKS = ("checkpoint_id", "checkpoint_ns")


class Decided:
    """Decisions and policy on the breakpoints of a run."""

    def __init__(self, store: Store, tenant: str, run: Run) -> None:
        self._store = store
        self.tenant = tenant
        self._run = run

    async def gates(self, nodes: Sequence[str]) -> bool:
        """Whether the policy gates a stop before these nodes."""
        return await self._store.read(self.tenant, is_gated, self._run, nodes)

    async def lets_pass(self) -> bool:
        """Whether a decision lets the run pass the thread's breakpoint. It applies to the first attempt only: after a
        crash it is in doubt which nodes that attempt has begun."""
        if self._run.passes is None or self._run.attempt > 1:
            return False
        return await self._store.read(self.tenant, checkpoints.heads, self._run.thread_id) == self._run.passes

    async def inside(self, graph: AnyPregel, snapshot: StateSnapshot) -> set[str]:
        """The asking tasks that the run only continues, with the same settings as the run that asked."""
        askers = await self._askers(graph, snapshot)
        return {task for task, asker in askers.items() if asker is not None and asker.setting == self._run.setting}

    async def asking(self, graph: AnyPregel, snapshot: StateSnapshot) -> set[str]:
        """The asking tasks whose graphs are not stopped at a breakpoint."""
        return set(await self._askers(graph, snapshot))

    async def calls_graphs(self) -> bool:
        """Whether any subgraph has begun."""
        return any(await self._newest())

    async def hidden(
        self, graph: AnyPregel, snapshot: StateSnapshot, *, sent: Collection[str] = (), forked: bool, ended: bool
    ) -> set[str]:
        """The nodes, including those that the run is `sent` to, which may be stopped at a breakpoint of a graph that
        they call at run time and that cannot be looked up. If no such stop was ever recorded, a fork restarts those
        graphs, which then stop by themselves, and a retried run may have been anywhere in them."""
        heads = {ns: at for ns, at in (await self._newest()).items() if ns and is_hidden(graph, ns)}
        tasks = [(task.name, task.id) for task in snapshot.tasks] + [(node, "") for node in sent]
        calling = [task for task in tasks if any(is_of(ns, *task) for ns in heads)]
        if not calling:
            return set()
        seen = await self._store.read(self.tenant, has_stopped, self._run.graph_id)
        if not ended and (forked or self._run.attempt > 1):
            return {node for node, _ in calling if seen}
        return {
            node for node, task in calling if (seen and task) or await self._may_be_stopped(graph, heads, node, task)
        }

    async def _newest(self) -> dict[str, str]:
        return await self._store.read(self.tenant, checkpoints.newest, self._run.thread_id)

    async def _askers(self, graph: AnyPregel, snapshot: StateSnapshot) -> dict[str, Run | None]:
        """The run that asked first, by task. Omits tasks whose graph has continued to a breakpoint: their old question
        remains stored, and an answer would pass the breakpoint."""
        at = str(snapshot.config["configurable"].get("checkpoint_id"))
        asked = await self._store.read(self.tenant, _askers, self._run.thread_id, at)
        named = [(task.name, task.id) for task in snapshot.tasks if task.id in asked]
        heads = await self._newest() if named else {}
        return {task: asked[task] for node, task in named if not await self._may_be_stopped(graph, heads, node, task)}

    async def _may_be_stopped(self, graph: AnyPregel, heads: Mapping[str, str], node: str, task: str) -> bool:
        """Whether a graph that the task calls may be stopped at a breakpoint: it neither asks nor has ended."""
        called = {ns: at for ns, at in heads.items() if is_of(ns, node, task)}
        asking = await self._store.read(self.tenant, _asking, self._run.thread_id, called) if called else set[str]()
        return not all([await self._has_ended(graph, ns, at) for ns, at in called.items() if ns not in asking])

    async def _has_ended(self, graph: AnyPregel, ns: str, checkpoint_id: str) -> bool:
        at: Any = config_for(self.tenant, self._run.thread_id, checkpoint_ns=ns, checkpoint_id=checkpoint_id)
        try:
            saved = await cast("Saver", graph.checkpointer).aget_tuple(at)
        except BaseException as error:
            if not is_lasting(error):
                raise
            return False  # an unreadable graph may be stopped anywhere
        return saved is not None and has_ended(saved.checkpoint)


async def stop(graph: AnyPregel, run: Run, input: Any, config: Mapping[str, Any], decided: Decided) -> Outcome | None:
    """The outcome of a run that ends at a gated breakpoint before it begins; None if it may begin. A run that is
    steered past a breakpoint fails, because the skipped stop cannot be asked."""
    if not _resumes(input) or not (may_stop(graph, run) or await decided.calls_graphs()):
        return None
    snapshot = await state_of(graph, _at_root(config))
    forked = any(config["configurable"].get(name) for name in _FORKS)
    before, after = _breakpoints(graph, run)
    started = _started(graph, input)
    before |= await decided.hidden(graph, snapshot, sent=started, forked=forked, ended=False)
    steered = forked or _steers(input)
    inside = await decided.inside(graph, snapshot) if _is_command(input) and not steered else set[str]()
    targets = [node for node in started if after or _names(before, node)]
    entered = [*_entered(snapshot, before, after, inside, steered=steered), *targets]
    if config["configurable"].get("checkpoint_ns"):  # nodes inside a subgraph are not checked
        entered = sorted(before | after)
    if not entered or (not steered and await decided.lets_pass()) or not await decided.gates(entered):
        return None
    if input is not None or forked:
        raise ThreadWaits(
            f"the graph stops before {', '.join(map(repr, entered))} for a person, and this run would bypass that stop",
            hint="run the thread with plain input, and let a person decide when it stops",
        )
    outcome = outcomes.of_state(snapshot, RunStatus.SUCCESS)
    return replace(outcome, stopped=await beside(graph, run, snapshot, decided)) if outcome.pending else outcome


async def beside(graph: AnyPregel, run: Run, snapshot: StateSnapshot, decided: Decided) -> tuple[str, ...]:
    """The nodes that the graph stopped before while another node asks."""
    before, after = _breakpoints(graph, run)
    before |= await decided.hidden(graph, snapshot, forked=False, ended=True)
    if not (before or after):
        return ()
    return tuple(_entered(snapshot, before, after, await decided.asking(graph, snapshot), steered=False))


def may_stop(graph: AnyPregel, run: Run) -> bool:
    """Whether the graph or the run has any breakpoint."""
    return any(_breakpoints(graph, run))


def stops(graph: AnyPregel, kwargs: Mapping[str, Any]) -> dict[str, list[str]]:
    """LangGraph's options for a run with breakpoints. They include the graph's own, which LangGraph would otherwise
    ignore."""
    own = {"interrupt_before": graph.interrupt_before_nodes, "interrupt_after": graph.interrupt_after_nodes}
    return {name: _all_of(graph, nodes, kwargs[name]) for name, nodes in own.items() if kwargs.get(name)}


def _all_of(graph: AnyPregel, *lists: str | Sequence[str]) -> list[str]:
    """The nodes that any of the lists names. `*` excludes hidden nodes, which another list may name."""
    named = {node for names in lists for node in _nodes(names)}
    shown = (name for name, node in graph.nodes.items() if _HIDDEN not in (node.tags or ()))
    return sorted(named.union(shown) - {_ALL} if _ALL in named else named)


def _breakpoints(graph: AnyPregel, run: Run) -> tuple[set[str], set[str]]:
    """The nodes to stop before and after: those of the graph, of the run, and nodes whose own graph has breakpoints."""
    before = {*_nodes(graph.interrupt_before_nodes), *_nodes(run.kwargs.get("interrupt_before"))}
    after = {*_nodes(graph.interrupt_after_nodes), *_nodes(run.kwargs.get("interrupt_after"))}
    return before | {name for name, node in graph.nodes.items() if any(map(_stops, node.subgraphs))}, after


def _stops(graph: Any) -> bool:
    """Whether the subgraph, or one nested in it, has breakpoints."""
    if getattr(graph, "interrupt_before_nodes", ()) or getattr(graph, "interrupt_after_nodes", ()):
        return True
    nodes = getattr(graph, "nodes", {}).values()
    return any(_stops(inner) for node in nodes for inner in getattr(node, "subgraphs", ()))


def _nodes(named: str | Sequence[str] | None) -> list[str]:
    return [named] if isinstance(named, str) else list(named or ())


def _names(nodes: Collection[str], node: str) -> bool:
    return _ALL in nodes or node in nodes


def _at_root(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config without the fork of a subgraph, which still resumes the root graph."""
    configurable = {name: value for name, value in config["configurable"].items() if name not in _FORKS}
    inside = config["configurable"].get("checkpoint_ns")
    return {**config, "configurable": configurable} if inside else dict(config)


def _entered(
    snapshot: StateSnapshot, before: Collection[str], after: Collection[str], inside: Collection[str], *, steered: bool
) -> list[str]:
    """The nodes that would begin or restart at a breakpoint. Finished tasks do not, and tasks `inside` their nodes only
    continue, unless the run is steered: LangGraph reruns all tasks of a fork. The node after which a thread stopped is
    not stored, so if the graph stops after any node, every upcoming node counts."""
    beginning = [task.name for task in snapshot.tasks if steered or not (task.id in inside or task.result)]
    return [name for name in beginning if after or _names(before, name)]


def _askers(tx: Tx, thread_id: str, checkpoint_id: str) -> dict[str, Run | None]:
    """The run that asked first, by task."""
    asked = checkpoints.askers(tx, thread_id, "", checkpoint_id)
    return {task: runs.get(tx, run_id) if run_id else None for task, run_id in asked.items()}


def _asking(tx: Tx, thread_id: str, heads: Mapping[str, str]) -> set[str]:
    """The namespaces in which a task asks."""
    return {ns for ns, at in heads.items() if checkpoints.askers(tx, thread_id, ns, at)}


def _resumes(input: Any) -> bool:
    """Whether LangGraph would pass a breakpoint with this input."""
    return input is None or _is_command(input)


def _steers(input: Any) -> bool:
    return _is_command(input) and bool(input.goto or input.update)


def _started(graph: AnyPregel, input: Any) -> list[str]:
    """The nodes that a command starts: by name, or by an updated channel that triggers them."""
    if not _is_command(input):
        return []
    goto = input.goto if isinstance(input.goto, list | tuple) else [input.goto]
    sent = [str(getattr(target, "node", target)) for target in goto]
    triggered = [node for name in _updated(input.update) for node in graph.trigger_to_nodes.get(name, ())]
    return [*sent, *triggered]


def _updated(update: Any) -> list[str]:
    """The keys that an update writes."""
    pairs = update if isinstance(update, list | tuple) else ()
    return (
        list(update) if isinstance(update, Mapping) else [pair[0] for pair in pairs if isinstance(pair, tuple) and pair]
    )


def _is_command(input: Any) -> bool:
    from langgraph.types import Command

    return isinstance(input, Command)
