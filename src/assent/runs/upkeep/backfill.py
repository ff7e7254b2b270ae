"""Creates the items that paused threads lack. One transaction per thread: an interrupted backfill loses nothing, and a
repeated one finds nothing to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from assent.errors import AssentError, Unavailable
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.threads.missing_items import missing_items, stopped_at
from assent.runs.continuation import asking_run
from assent.runs.project.project import Project
from assent.threads.model.threads import Thread
from assent.threads.rows import threads

_AT_ONCE = 100
OnProgress = Callable[[int, int], None]
"""Called with the number of processed threads and the total."""


@dataclass
class Report:
    """`created` counts the items, or those that a dry run would create. `problems` names threads that failed."""

    threads: int = 0
    created: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)


class ItemBackfill:
    def __init__(self, store: Store, project: Project) -> None:
        self._store = store
        self._project = project

    async def run(self, on_progress: OnProgress, *, tenant: str | None = None, dry_run: bool = False) -> Report:
        """Of all tenants, or of one."""
        report, after = Report(), ("", "")
        total = await self._store.read(None, threads.count_paused, tenant)
        while batch := await self._store.read(None, threads.paused, tenant, after, _AT_ONCE):
            for place in batch:
                await self._fill(*place, report, dry_run=dry_run)
                report.threads += 1
                on_progress(report.threads, max(total, report.threads))
            after = batch[-1]
        return report

    async def _fill(self, tenant: str, thread_id: str, report: Report, *, dry_run: bool) -> None:
        try:
            if dry_run:
                report.created += await self._store.read(tenant, _count_missing, thread_id)
            else:
                report.created += await self._store.write(tenant, _create_missing, thread_id, self._project)
        except Unavailable:
            raise
        except AssentError as error:
            report.problems.append((thread_id, error.message))


def _count_missing(tx: Tx, thread_id: str) -> int:
    thread = threads.get(tx, thread_id)
    return 0 if thread is None else len(missing_items(tx, thread))


def _create_missing(tx: Tx, thread_id: str, project: Project) -> int:
    thread = threads.lock(tx, thread_id)
    missing = [] if thread is None else missing_items(tx, thread)
    if thread is not None and missing:
        thread_items.follow(tx, _waiting(tx, thread, project))
    return len(missing)


def _waiting(tx: Tx, thread: Thread, project: Project) -> thread_items.Waiting:
    gated = thread.graph_id is not None and project.is_gated(thread.graph_id)
    facts = {"run": asking_run(tx, thread), "gated": gated, "upcoming": stopped_at(tx, thread)}
    return thread_items.Waiting.of(thread, thread.pending, thread.values, **facts)
