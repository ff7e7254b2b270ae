"""The body of a run's webhook.

The body is LangGraph's: the run's row with its outcome. Our addition distinguishes *waiting for a person* from *done*:
`waiting`, with the questions in `interrupts`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from assent.threads.model.runs import Outcome, Run, RunStatus, run_view


def body(run: Run, outcome: Outcome, pending: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`run` is the row as it ended; `pending` are the open questions of its thread."""
    stopped_on_the_way = outcome.status is RunStatus.SUCCESS and bool(outcome.next)
    return run_view(run) | {
        "status": "rollback" if outcome.rolled_back else outcome.status,
        "run_started_at": run.started_at and run.started_at.isoformat(),
        "run_ended_at": run.ended_at and run.ended_at.isoformat(),
        "values": outcome.values,
        "error": outcome.error,
        "waiting": bool(pending) or stopped_on_the_way,
        "interrupts": list(pending),
        "next": list(outcome.next),
    }


def host_of(target: str) -> str:
    """A receiver's host, without possible credentials: user name, path and query."""
    scheme, _, rest = target.partition("://")
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    return f"{scheme}://{authority.rpartition('@')[2]}" if rest else ""


def addressed_by_host(view: Mapping[str, Any]) -> dict[str, Any]:
    """The view of a run that shows only the host of its receiver."""
    kwargs = view.get("kwargs")
    target = kwargs.get("webhook") if isinstance(kwargs, Mapping) else None
    return {**view, "kwargs": {**kwargs, "webhook": host_of(target)}} if kwargs and target else dict(view)
