"""What receivers named by a run are told, left in the outbox by the transaction in which it happens."""

from __future__ import annotations

from dataclasses import replace

from assent.domain import webhooks
from assent.domain.deliveries import WEBHOOK
from assent.domain.runs import Outcome, Run
from assent.store import deliveries, jsontext, threads
from assent.store.transaction import Tx


def announce(tx: Tx, run: Run, outcome: Outcome) -> None:
    """Tells the receiver a run named how it ended. Called where the outcome is recorded, after the thread's row."""
    if run.webhook is None:
        return
    now = tx.now()
    ended = replace(run, status=outcome.status, error=outcome.error, ended_at=now, updated_at=now)
    thread = threads.get(tx, run.thread_id)
    body = webhooks.body(ended, outcome, thread.pending if thread else [])
    deliveries.add(tx, WEBHOOK, subject=f"run:{run.id}", target=run.webhook, body=jsontext.dump(body))
