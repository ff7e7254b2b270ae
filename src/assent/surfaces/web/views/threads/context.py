"""The context of an item: the messages that led to it, and the threads it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assent.errors import AssentError, DeploymentFailed
from assent.federation.threads import RemoteThreads
from assent.identity.model.access import Principal
from assent.runs.threads.threads import Threads
from assent.surfaces.web.views.threads import conversation, thread_page
from assent.surfaces.web.views.threads.conversation import Said

View = Mapping[str, Any]
MOST_MESSAGES = 3
LONGEST = 600
_MOST_THREADS = 10


@dataclass(frozen=True, slots=True)
class Named:
    """A thread with its title; `shown` is false for one that the caller cannot open."""

    id: str
    title: str
    linked: bool = False
    shown: bool = True


@dataclass(frozen=True, slots=True)
class Context:
    said: Sequence[Said] = ()
    """The whole conversation."""

    led_here: Sequence[Said] = ()
    """The last messages with words before the call."""

    threads: Sequence[Named] = ()
    run_id: str | None = None
    problem: DeploymentFailed | None = None
    """Why the deployment of the thread could not be read."""

    @property
    def thread(self) -> Named | None:
        """The item's own thread."""
        return next((thread for thread in self.threads if not thread.linked), None)


async def gather(threads: Threads | None, caller: Principal, item: View) -> Context:
    own = item["source"]["thread_id"]
    ids = [thread for thread in (own, *item["links"]) if thread][:_MOST_THREADS]
    if threads is None or not ids:
        return Context(threads=[Named(id, "", id != own, False) for id in ids], run_id=item["source"]["run_id"])
    by_id = {id: await _thread(threads, caller, id) for id in dict.fromkeys(ids)}
    named = [
        Named(id, thread_page.title(thread) if thread else "", id != own, thread is not None)
        for id, thread in by_id.items()
    ]
    said = conversation.of(by_id[own].values).messages if own and by_id.get(own) else []
    return Context(said, _led_here(said, item), named, item["source"]["run_id"])


async def gather_remote(remote: RemoteThreads, caller: Principal, item: View) -> Context:
    """The context of an item of another deployment, read from there now."""
    far = await remote.latest(caller, item["source"]["thread_id"])
    named = Named(far.thread.id, thread_page.title(far.thread))
    if far.problem:
        return Context(threads=[named], problem=far.problem)
    said = conversation.of(far.thread.values).messages
    return Context(said, _led_here(said, item), [named], far.run_id)


async def _thread(threads: Threads, caller: Principal, thread_id: str) -> Any:
    try:
        return await threads.get(caller, thread_id, reveal=False)
    except AssentError as error:
        if error.status >= 500:
            raise
        return None


def _led_here(said: Sequence[Said], item: View) -> list[Said]:
    """The last messages with words up to the one that makes the call. Of a closed item whose call is not found, none:
    the thread has moved on."""
    wanted = {action["call_id"] for action in item["actions"] if action["call_id"]}
    at = next((place for place, message in enumerate(said) if wanted & {call.id for call in message.calls}), None)
    if at is None and item["status"] not in ("PENDING", "REVISION_REQUESTED"):
        return []
    before = said if at is None else said[: at + 1]
    worded = [message for message in before if message.text.strip() and message.sign.icon in ("person", "agent")]
    return worded[-MOST_MESSAGES:]
