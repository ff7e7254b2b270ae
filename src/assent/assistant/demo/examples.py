"""Example items for the first start of the demo: one of each common kind."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Collection
from dataclasses import replace
from typing import Any

from assent.assistant.demo import requests
from assent.assistant.talk.service import request_of, thread_of
from assent.errors import AssentError
from assent.identity.model.access import Principal, Scope, local_agent
from assent.review.inbox import Inbox
from assent.runs.runs import Runs
from assent.runs.threads.threads import Threads
from assent.threads.model.threads import Query
from assent.threads.run_requests import RunRequest

log = logging.getLogger(__name__)

TALK = "demo"
"""The assistant's thread with a pending event: `assent chat --thread demo` continues it."""

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
    """Starts the examples unless there are threads already. They pause for approval; a failed one does not affect the
    others."""
    caller = local_agent()
    if not await is_first_start(threads):
        return
    asking = replace(caller, scopes=caller.scopes | {Scope.ITEMS_CREATE})  # as an agent with its own key
    for graph_id, values in _RUNS:
        if graph_id in graphs:
            await _tried(graph_id, _start(threads, runs, caller, graph_id, values))
    for request in requests.ALL:
        await _tried(request.type, inbox.create(asking, request))
    if assistant is not None and assistant in graphs:
        talk = runs.create(caller, thread_of(caller.tenant, TALK), request_of(assistant, TALK, WISH, aloud=True))
        await _tried(assistant, talk)


async def is_first_start(threads: Threads) -> bool:
    return not await threads.count(local_agent(), Query())


async def _start(threads: Threads, runs: Runs, caller: Principal, graph_id: str, values: dict[str, Any]) -> None:
    thread = await threads.create(caller)
    await runs.create(caller, thread.id, RunRequest(assistant_id=graph_id, input=values))


async def _tried(example: str, start: Awaitable[object]) -> None:
    try:
        await start
    except AssentError as error:
        log.warning("start example failed", extra={"example": example, "reason": error.message})
