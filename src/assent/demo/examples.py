"""What waits for a decision when the demo starts for the first time."""

from __future__ import annotations

from assent.domain.access import Principal, local_agent
from assent.domain.threads import Query
from assent.services.runs import Runs
from assent.services.starting import RunRequest
from assent.services.threads import Threads

_DRAFTS = (
    {"to": "mira@example.com", "about": "the invoice of October"},
    {"to": "tomas@example.com", "about": "moving our meeting to Thursday"},
)


async def prepare(threads: Threads, runs: Runs) -> None:
    """Starts the example runs unless there are threads already. They stop where a person must agree."""
    caller = local_agent()
    if await threads.count(caller, Query()):
        return
    for draft in _DRAFTS:
        await _start(threads, runs, caller, draft)


async def _start(threads: Threads, runs: Runs, caller: Principal, draft: dict[str, str]) -> None:
    thread = await threads.create(caller)
    await runs.create(caller, thread.id, RunRequest(assistant_id="email_draft", input=draft))
