"""The runs of a deployment's thread, as far as they answer its questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

DELIVERY = "assent_delivery"
"""In the metadata of a run that answers: the id of the delivery, by which it is found."""

_ACTIVE = ("pending", "running")

Run = Mapping[str, Any]


def delivery_of(run: Run) -> str | None:
    """The delivery that the run carries: in its metadata, or in that of its config where a server keeps no other."""
    config = run.get("config")
    kept = (run.get("metadata"), config.get("metadata") if isinstance(config, dict) else None)
    return next((marked[DELIVERY] for marked in kept if isinstance(marked, dict) and DELIVERY in marked), None)


def is_active(run: Run) -> bool:
    return run.get("status") in _ACTIVE


def is_answered(runs: Iterable[Run]) -> bool:
    """Whether an answer from here is under way on the thread."""
    return any(is_active(run) and delivery_of(run) is not None for run in runs)


def resumes(run: Run) -> bool:
    """Whether the run resumes the thread. A server that does not show that leaves only the guess that it does."""
    asked = run.get("kwargs")
    if not isinstance(asked, dict):
        return True
    command = asked.get("command")
    return isinstance(command, dict) and command.get("resume") is not None
