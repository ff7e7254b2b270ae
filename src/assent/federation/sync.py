"""Follows all deployments. Each is followed by one process at a time: the holder of its lease in the database.

A process that dies loses its leases when they are over, by the database's clock; another takes them within a second.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from random import SystemRandom

from assent.errors import AssentError, ConfigError, DeploymentFailed, Unavailable
from assent.federation.deployments import RemoteDeployments, require_graphs
from assent.federation.following import Follower
from assent.federation.recording import LeaseLost
from assent.kernel.background import Repeating
from assent.kernel.ids import new_id
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.threads.model.deployments import Deployment, Trouble
from assent.threads.rows.remote import deployments

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=2.5)
RENEW_SECONDS = 0.75
_IDLE_SECONDS = 5.0  # for deployments that other processes add
_SOON, _LATEST = 0.25, 1.0
_FIRST_RETRY, _LONGEST_RETRY = 0.5, 30.0
_NOTE_SECONDS = 2.0

Name = tuple[str, str]
"""A tenant and the id of its deployment."""


@dataclass
class _Followed:
    deployment: Deployment
    polling: _Polling
    task: Repeating

    def notice(self, current: Deployment) -> None:
        """Looks at once if the webhook of the deployment was called since."""
        if current.called_at != self.deployment.called_at:
            self.polling.hasten()
            self.task.wake()
        self.deployment = current


class Sync:
    def __init__(self, store: Store, remote: RemoteDeployments) -> None:
        self._store = store
        self._remote = remote
        self.who = new_id()
        self._followed: dict[Name, _Followed] = {}
        self.leading = Repeating("deployments", self._lead, longest_retry=2.0)

    async def open(self) -> None:
        self._store.bells[deployments.BELL] = self.leading.wake
        self.leading.start()

    async def close(self) -> None:
        self._store.bells.pop(deployments.BELL, None)
        await self.leading.stop()
        had_leases = bool(self._followed)
        await self._follow({})
        if had_leases:
            try:
                await self._store.write(None, deployments.release, self.who)
            except Unavailable:
                log.debug("release leases failed")  # they end by themselves

    async def _lead(self) -> float:
        if not await self._store.read(None, deployments.any_followed):
            await self._follow({})
            return _IDLE_SECONDS
        led = await self._store.write(None, deployments.lead, self.who, LEASE)
        await self._follow({(tenant, deployment.id): deployment for tenant, deployment in led})
        return RENEW_SECONDS

    async def _follow(self, led: dict[Name, Deployment]) -> None:
        for name, followed in list(self._followed.items()):
            current = led.get(name)
            if current is None or current.updated_at != followed.deployment.updated_at:
                await self._followed.pop(name).task.stop()
        for name, deployment in led.items():
            if name in self._followed:
                self._followed[name].notice(deployment)
            else:
                polling = _Polling(self._store, self._remote, name[0], deployment, self.who)
                task = Repeating(f"deployment {deployment.id}", polling.round)
                self._followed[name] = _Followed(deployment, polling, task)
                task.start()


class _Polling:
    """The rounds of one deployment: frequent while something happens, rarer when it is quiet, and with a growing delay
    while it cannot be reached."""

    def __init__(self, store: Store, remote: RemoteDeployments, tenant: str, deployment: Deployment, who: str) -> None:
        self._store = store
        self._remote = remote
        self._tenant = tenant
        self._deployment = deployment
        self._who = who
        self._follower: Follower | None = None
        self._pause = _SOON
        self._retry = _FIRST_RETRY
        self._problem: Trouble | None = deployment.problem
        self._noted_at = 0.0

    def hasten(self) -> None:
        """The next rounds are frequent: a webhook may be called just before its change can be read."""
        self._pause = _SOON

    async def round(self) -> float | None:
        try:
            changed, unknown = await self._looked(), await self._unknown_graph()
        except LeaseLost:
            self._follower = None  # what it knows may be outdated
            return _LATEST
        except Unavailable:
            raise
        except DeploymentFailed as failed:
            return await self._failed(Trouble(failed.problem), failed.message)
        except (AssentError, ConfigError) as failed:
            return await self._failed(Trouble.FAILING, failed.message)
        self._retry = _FIRST_RETRY
        recovered = self._problem is not None and unknown is None
        if recovered or changed or _now() - self._noted_at > _NOTE_SECONDS:
            self._problem, self._noted_at = (Trouble.UNKNOWN_GRAPH if unknown else None), _now()
            await self._store.write(self._tenant, _note_read, self._deployment, unknown, recovered=recovered)
        self._pause = _SOON if changed else min(self._pause * 1.5, _LATEST)
        return self._pause

    async def _looked(self) -> bool:
        if self._follower is None:
            connection = self._remote.connection(self._tenant, self._deployment)
            self._follower = Follower(self._store, self._tenant, self._deployment, connection, self._who)
        return await self._follower.look()

    async def _unknown_graph(self) -> str | None:
        """After a problem, the graphs are looked for: one may be missing still, although threads of others are read."""
        if self._problem is None:
            return None
        try:
            await require_graphs(self._remote.connection(self._tenant, self._deployment), self._deployment)
        except DeploymentFailed as failed:
            if failed.problem != Trouble.UNKNOWN_GRAPH:
                raise
            return failed.message
        return None

    async def _failed(self, problem: Trouble, message: str) -> float:
        if problem is not self._problem:
            facts = {"deployment": self._deployment.id, "problem": problem, "reason": message}
            log.warning("follow deployment failed", extra=facts)
        self._problem = problem
        await self._store.write(self._tenant, deployments.note_failure, self._deployment.id, problem, message)
        retry, self._retry = self._retry, min(self._retry * 2, _LONGEST_RETRY)
        return retry * (0.5 + SystemRandom().random())


def _now() -> float:
    return asyncio.get_running_loop().time()


def _note_read(tx: Tx, deployment: Deployment, unknown_graph: str | None, *, recovered: bool) -> None:
    if unknown_graph is not None:
        deployments.note_failure(tx, deployment.id, Trouble.UNKNOWN_GRAPH, unknown_graph, read=True)
    else:
        deployments.note_read(tx, deployment.id, has_graphs=recovered)
    if recovered:
        deliveries.hasten(tx, f"deployment:{deployment.id}")
