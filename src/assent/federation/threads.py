"""Threads of other deployments, read from there for the people who decide: state, messages and history."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from assent.errors import DeploymentFailed, NotFound
from assent.federation.deployments import RemoteDeployments
from assent.federation.failures import not_reached
from assent.federation.seen import Seen, is_plain
from assent.identity.authorization import owned_by
from assent.identity.model.access import Principal, Scope
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.threads.secrets import Secrets
from assent.threads.model.deployments import Deployment
from assent.threads.model.threads import Thread, ThreadStatus
from assent.threads.rows.remote import deployments, remote_threads
from assent.threads.rows.remote.remote_threads import RemoteThread
from assent.threads.studio import studio_link

_HISTORY = 25
_PATIENCE_SECONDS = 5.0
_STATUSES = frozenset(ThreadStatus)


@dataclass(frozen=True, slots=True)
class FarThread:
    """`thread` has its id here, and its secrets are masked. `problem`: the deployment did not answer."""

    deployment: Deployment
    thread: Thread
    states: Sequence[Mapping[str, Any]]
    studio: str
    problem: DeploymentFailed | None = None
    run_id: str | None = None


class RemoteThreads:
    def __init__(self, store: Store, remote: RemoteDeployments) -> None:
        self._store = store
        self._remote = remote
        self._secrets = Secrets(store)

    async def get(self, caller: Principal, key: str) -> FarThread:
        """The thread by its id here. For people and administrators: a deployment does not say whose threads it has."""
        deployment, known = await self._known_to(caller, key)
        connection = self._remote.connection(caller.tenant, deployment)
        try:
            seen = await connection.thread(known.thread_id)
            states = await connection.history(known.thread_id, _HISTORY) if seen else []
        except DeploymentFailed as problem:
            return self._far(deployment, known, _unread(known), [], problem)
        shown = await self._masked(caller, _thread(known, seen, states[0] if states else {}))
        return self._far(deployment, known, shown, [_outline(state) for state in states])

    async def latest(self, caller: Principal, key: str) -> FarThread:
        """The thread as it is now, and its latest run. A deployment that does not answer soon is a problem."""
        deployment, known = await self._known_to(caller, key)
        connection = self._remote.connection(caller.tenant, deployment)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                seen = await connection.thread(known.thread_id)
                state = await connection.state(known.thread_id) if seen else None
                run = await connection.latest_run(known.thread_id) if seen else {}
        except TimeoutError as error:
            problem = not_reached(deployment.url, error, _PATIENCE_SECONDS, "")
            return self._far(deployment, known, _unread(known), [], problem)
        except DeploymentFailed as problem:
            return self._far(deployment, known, _unread(known), [], problem)
        shown = await self._masked(caller, _thread(known, seen, state or {}))
        run_id = run.get("run_id")
        return replace(self._far(deployment, known, shown, []), run_id=str(run_id) if is_plain(run_id) else None)

    async def _known_to(self, caller: Principal, key: str) -> tuple[Deployment, RemoteThread]:
        caller.require(Scope.ITEMS_READ)
        if caller.user is not None or owned_by(caller) is not None:
            raise NotFound(f"Thread with ID {key} not found")
        return await self._store.read(caller.tenant, _known, key)

    async def _masked(self, caller: Principal, thread: Thread) -> Thread:
        view = await self._secrets.view(caller, thread, reveal=False)
        values = await view.of(thread.values)
        return replace(thread, values=values, metadata=await view.of(thread.metadata))

    def _far(
        self,
        deployment: Deployment,
        known: RemoteThread,
        thread: Thread,
        states: Sequence[Mapping[str, Any]],
        problem: DeploymentFailed | None = None,
    ) -> FarThread:
        return FarThread(deployment, thread, states, studio_link(deployment, known.thread_id), problem)


def _known(tx: Tx, key: str) -> tuple[Deployment, RemoteThread]:
    thread = remote_threads.by_key(tx, key)
    deployment = deployments.get(tx, thread.deployment_id) if thread else None
    if thread is None or deployment is None:
        raise NotFound(f"Thread with ID {key} not found")
    return deployment, thread


def _unread(known: RemoteThread) -> Thread:
    return replace(_thread(known, None, {}), status=ThreadStatus.ERROR)


def _thread(known: RemoteThread, seen: Seen | None, state: Mapping[str, Any]) -> Thread:
    following, status = state.get("next"), seen.status if seen else "idle"
    at = _moment(state.get("created_at"))
    return Thread(
        id=known.key,
        status=ThreadStatus(status) if status in _STATUSES else ThreadStatus.IDLE,
        metadata={"graph_id": known.graph_id, "assistant_id": known.assistant_id, "title": seen and seen.title},
        config={},
        values=state.get("values"),
        interrupts=None,
        error=None,
        next=[str(node) for node in following] if isinstance(following, list) else None,
        shown=False,
        created_at=at,
        updated_at=at,
        state_updated_at=at,
    )


def _outline(state: Mapping[str, Any]) -> dict[str, Any]:
    """A past state without its values: its place in the history, in the form of this server's own."""
    checkpoint = state.get("checkpoint")
    named = checkpoint.get("checkpoint_id") if isinstance(checkpoint, dict) else state.get("checkpoint_id")
    following = state.get("next")
    metadata = state.get("metadata")
    return {
        "checkpoint_id": str(named or ""),
        "metadata": metadata if isinstance(metadata, dict) else {},
        "next": [str(node) for node in following] if isinstance(following, list) else [],
        "created_at": _moment(state.get("created_at")).isoformat(),
    }


def _moment(text: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
