"""What waits for a decision when the demo starts for the first time: one of each kind that people meet."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Collection
from dataclasses import replace
from typing import Any

from assent.demo import requests
from assent.domain.access import Principal, Scope, local_agent
from assent.domain.threads import Query
from assent.errors import AssentError
from assent.services.assistant import request_of, thread_of
from assent.services.inbox import Inbox
from assent.services.runs import Runs
from assent.services.starting import RunRequest
from assent.services.threads import Threads

log = logging.getLogger(__name__)

TALK = "demo"
"""The thread of the assistant in which an event waits: `assent chat --thread demo` goes on with it."""

WISH = "create a meeting called Standup tomorrow at 9am"

DRAFTS = "email_draft"

_RUNS: tuple[tuple[str, dict[str, Any]], ...] = (
    (DRAFTS, {"to": "mira@example.com", "about": "the invoice of October"}),
    (DRAFTS, {"to": "tomas@example.com", "about": "moving our meeting to Thursday"}),
    ("trip", {"traveller": "Ana"}),
    ("trip", {"traveller": "Ben", "destination": "Marenby"}),
)


async def prepare(
    threads: Threads, runs: Runs, inbox: Inbox, *, graphs: Collection[str], assistant: str | None = None
) -> None:
    """Starts the examples unless there are threads already. They stop where a person must agree; one that cannot be
    started does not keep the others."""
    caller = local_agent()
    if await threads.count(caller, Query()):
        return
    asking = replace(caller, scopes=caller.scopes | {Scope.ITEMS_CREATE})  # as an agent with a key of its own
    for graph_id, given in _RUNS:
        if graph_id in graphs:
            await _tried(graph_id, _start(threads, runs, caller, graph_id, given))
    for request in requests.ALL:
        await _tried(request.type, inbox.create(asking, request))
    if assistant is not None and assistant in graphs:
        talk = runs.create(caller, thread_of(caller.tenant, TALK), request_of(assistant, TALK, WISH, aloud=True))
        await _tried(assistant, talk)


async def _start(threads: Threads, runs: Runs, caller: Principal, graph_id: str, given: dict[str, Any]) -> None:
    thread = await threads.create(caller)
    await runs.create(caller, thread.id, RunRequest(assistant_id=graph_id, input=given))


async def _tried(example: str, start: Awaitable[object]) -> None:
    try:
        await start
    except AssentError as error:
        log.warning("an example was not started", extra={"example": example, "reason": error.message})
