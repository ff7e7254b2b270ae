"""Webhooks of runs: inserted into the outbox by the transaction that ends the run."""

from __future__ import annotations

from dataclasses import replace

from assent.kernel import jsonable, jsontext
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.outbox.model import WEBHOOK
from assent.review.threads.secrets import covering
from assent.threads.model import webhooks
from assent.threads.model.runs import Outcome, Run
from assent.threads.rows import threads

_MOST_WORK = 400_000
"""About 20,000 secrets or 500,000 candidate positions: 0.2 seconds in the transaction."""


def announce(tx: Tx, run: Run, outcome: Outcome) -> None:
    """Queues the run's outcome for its webhook, without the thread's secrets. Call it after the thread's row is
    written."""
    if run.webhook is None:
        return
    now = tx.now()
    ended = replace(run, status=outcome.status, error=outcome.error, ended_at=now, updated_at=now)
    thread = threads.get(tx, run.thread_id)
    read = replace(outcome, values=jsonable.plain(outcome.values))
    body = webhooks.body(ended, read, thread.pending if thread else [])
    if thread is not None:
        body = covering(tx, thread.id).within(_MOST_WORK)(body)
    deliveries.add(tx, WEBHOOK, subject=f"run:{run.id}", target=run.webhook, body=jsontext.dump(body))
