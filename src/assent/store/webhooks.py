"""Webhooks of runs: written beside the outcome they tell, so that none is lost and none tells what did not happen."""

from __future__ import annotations

from assent.domain.runs import Outcome, Run
from assent.store.transaction import Tx


def announce(tx: Tx, run: Run, outcome: Outcome) -> None:
    if run.webhook is None:
        return
