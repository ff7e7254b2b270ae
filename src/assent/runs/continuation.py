"""The run that a decision continues: the one that asked. A copied thread gets its own run that asks, so that it
continues independently of the original, with the original's settings."""

from __future__ import annotations

from typing import Any

from assent.kernel.ids import new_id
from assent.kernel.store.transaction import Tx
from assent.review.threads.open_items import open_items
from assent.threads.model.assistants import Assistant
from assent.threads.model.configs import clean_run_metadata, merge
from assent.threads.model.identities import stand_in
from assent.threads.model.runs import Run, RunStatus, Strategy
from assent.threads.model.threads import Thread
from assent.threads.rows import assistants, contributors, runs
from assent.threads.rows.state import checkpoints
from assent.threads.rows.state.checkpoints import Attempt


def run_before(tx: Tx, thread: Thread, run_id: str | None) -> Run | None:
    """The run that asked on the thread; if it was deleted, the last begun run."""
    return asker(tx, thread, run_id) or runs.last_begun(tx, thread.id)


def asker(tx: Tx, thread: Thread, run_id: str | None) -> Run | None:
    run = runs.get(tx, run_id) if run_id else None
    return run if run is not None and run.thread_id == thread.id else None


def copy_asker(tx: Tx, source: Thread, copy: Thread, maker: str) -> Run | None:
    """Inserts the ended run that asks on the copy, with the maker of the copy as actor. The copy has no state yet."""
    before = asking_run(tx, source)
    if before is None:
        return None
    runs.insert_pending(tx, run_id := new_id(), copy.id, **_as_copied(tx, copy, before, maker))
    run = runs.begin(tx, run_id)
    assert run is not None
    runs.end(tx, Attempt(run.id, run.attempt), RunStatus.SUCCESS, None)
    return run


def note_configuration(tx: Tx, assistant: Assistant, thread_id: str) -> None:
    """Records the authors of the assistant as contributors of the thread. The first version of a graph's own assistant
    has no author."""
    if assistant.owner is not None:
        contributors.add(tx, thread_id, assistant.owner, lasting=True)
    if not assistant.is_graphs_own or assistant.version > 1:
        contributors.add_those_of_assistant(tx, assistant.id, thread_id)


def asking_run(tx: Tx, thread: Thread) -> Run | None:
    """The run that asks, preferably of a gated item, since the approval is for that run's call. While a run answers,
    the question has no open item, and the checkpoint names the run."""
    asking = sorted(open_items(tx, thread.id), key=lambda item: not item.gated)
    head = checkpoints.latest(tx, thread.id, "")
    asked = checkpoints.askers(tx, thread.id, "", head.checkpoint_id) if head else {}
    candidates = (asker(tx, thread, run_id) for run_id in (*(item.run_id for item in asking), *asked.values()))
    return next((run for run in candidates if run is not None), None) or runs.last_begun(tx, thread.id)


def _as_copied(tx: Tx, copy: Thread, before: Run, maker: str) -> dict[str, Any]:
    """The columns of a run that continues `before` on the copy, without its webhook. Config, context and metadata are
    kept if the maker of the copy wrote them, and otherwise come from the assistant and the thread. Breakpoints stay."""
    own: tuple[dict[str, Any], dict[str, Any]] = ({}, before.metadata)
    setting, metadata = own if before.actor == maker else _of_assistant(tx, copy, before, maker)
    begins = {"input": None, "command": None, "checkpoint": None, "webhook": None, "temporary": False}
    return {
        "assistant_id": before.assistant_id,
        "graph_id": before.graph_id,
        "actor": maker,
        "answers": False,
        "wake_at": None,
        "temporary": False,
        "multitask_strategy": Strategy.REJECT,
        "metadata": metadata,
        "kwargs": {**before.kwargs, **setting, **begins},
        "webhook": None,
    }


def _of_assistant(tx: Tx, copy: Thread, before: Run, maker: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Config and context of the assistant, and the metadata."""
    assistant = assistants.get(tx, before.assistant_id)
    base = {"config": assistant.config, "context": assistant.context} if assistant else {"config": {}, "context": {}}
    config, context = merge(None, None, base)
    config["configurable"] = {**config["configurable"], **stand_in(maker)}
    if assistant is not None:
        note_configuration(tx, assistant, copy.id)
    labels = {**(assistant.metadata if assistant else {}), **copy.metadata}
    stamp = {"graph_id": before.graph_id, "assistant_id": before.assistant_id}
    return {"config": config, "context": context}, {**clean_run_metadata(labels), **stamp}
