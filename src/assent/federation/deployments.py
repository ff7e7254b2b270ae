"""Deployments: add, check, change, pause and remove them. Only administrators may: a deployment is an address that this
server calls, and a check must not become a way to probe its network."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from assent.errors import AlreadyExists, Conflict, DeploymentFailed, Invalid, NotFound
from assent.federation.connection import Connection
from assent.federation.failures import failed
from assent.federation.sealing import Sealing
from assent.identity.model.access import Principal, Scope, operator
from assent.kernel import events
from assent.kernel.ids import as_uuid, new_id, new_token, token_hash
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.outbox import deliveries
from assent.review.model.questions import Resolution
from assent.review.threads import elsewhere
from assent.threads.model.deployments import LONGEST_NAME, MOST_GRAPHS, Credentials, Deployment, Trouble
from assent.threads.rows.remote import deployments

if TYPE_CHECKING:
    from assent.outbox.client import Outbound

log = logging.getLogger(__name__)

_LONGEST_KEY = 4_000
_MOST_HEADERS = 20
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OURS = frozenset({"host", "content-length", "content-type", "connection", "transfer-encoding", "accept-encoding"})


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requested settings of a deployment."""

    name: str
    url: str
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    graphs: Sequence[str] = ()
    stringify_args: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a connection check."""

    problem: Trouble | None = None
    message: str | None = None
    info: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Rotated:
    """A deployment with its new key; `webhook` is the new secret of its webhook, if it has one."""

    deployment: Deployment
    webhook: str | None


class RemoteDeployments:
    def __init__(self, store: Store, sealing: Sealing, outbound: Callable[[], Outbound]) -> None:
        self._store = store
        self._sealing = sealing
        self._make_outbound = outbound
        self._made: Outbound | None = None

    async def close(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            await made.close()

    def _outbound(self) -> Outbound:
        """Made on first use: the client is slow to import."""
        self._made = self._made or self._make_outbound()
        return self._made

    async def list(self, caller: Principal) -> list[Deployment]:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, deployments.all_of)

    async def get(self, caller: Principal, deployment_id: str) -> Deployment:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, require, deployment_id)

    async def add(self, caller: Principal, wanted: Wanted) -> Deployment:
        """Stores the deployment and checks the connection. One that cannot be used now is stored with its problem."""
        caller.require(Scope.ADMIN)
        deployment_id, columns = new_id(), self._columns(wanted)
        credentials = self._credentials(caller.tenant, deployment_id, wanted.key, wanted.headers)
        await self._store.write(caller.tenant, _insert, caller, deployment_id, {**columns, "credentials": credentials})
        return await self.check(caller, deployment_id)

    async def check(self, caller: Principal, deployment_id: str) -> Deployment:
        caller.require(Scope.ADMIN)
        deployment = await self.get(caller, deployment_id)
        checked = await self._checked(caller.tenant, deployment)
        return await self._store.write(caller.tenant, _note_check, deployment_id, checked)

    async def change(self, caller: Principal, deployment_id: str, changes: Mapping[str, Any]) -> Deployment:
        """Changes the name, the graphs, `stringify_args` or the headers. Another URL is another deployment."""
        caller.require(Scope.ADMIN)
        before = await self.get(caller, deployment_id)
        merged = Wanted(
            changes.get("name") or before.name,
            before.url,
            graphs=changes.get("graphs", before.graphs),
            stringify_args=changes.get("stringify_args", before.stringify_args),
        )
        columns = self._columns(merged)
        if "headers" in changes:
            held = self._sealing.open(caller.tenant, before.id, before.credentials)
            columns["credentials"] = self._credentials(caller.tenant, before.id, held.key, changes["headers"])
        await self._store.write(caller.tenant, _change, caller, deployment_id, columns, "changed", sorted(changes))
        return await self.check(caller, deployment_id)

    async def rotate(self, caller: Principal, deployment_id: str, key: str | None) -> Rotated:
        """Replaces the key; None removes it. The webhook, if there is one, gets a new secret with it."""
        caller.require(Scope.ADMIN)
        before = await self.get(caller, deployment_id)
        held = self._sealing.open(caller.tenant, before.id, before.credentials)
        sealed = self._credentials(caller.tenant, before.id, key, held.headers)
        secret = new_webhook_secret()
        renewed = await self._store.write(caller.tenant, _rotate, caller, deployment_id, sealed, token_hash(secret))
        return Rotated(await self.check(caller, deployment_id), secret if renewed else None)

    async def pause(self, caller: Principal, deployment_id: str, paused: bool = True) -> Deployment:
        """A paused deployment is not followed; its items stay, and decisions wait until it is resumed."""
        caller.require(Scope.ADMIN)
        kind = "paused" if paused else "resumed"
        await self._store.write(caller.tenant, _change, caller, deployment_id, {"paused": paused}, kind, [])
        return await self.get(caller, deployment_id)

    async def remove(self, caller: Principal, deployment_id: str) -> Deployment:
        """Removes the deployment here; its open items are closed. Nothing changes on its server."""
        caller.require(Scope.ADMIN)
        return await self._store.write(caller.tenant, _remove, caller, deployment_id)

    async def provide(self, tenant: str, named: Iterable[Wanted]) -> None:
        """Makes the deployments of the operator's file exist as they are written there; those that were taken out of
        the file are removed."""
        caller, kept = operator(tenant), set[str]()
        for wanted in named:
            kept.add(wanted.name)
            await self._provide(caller, wanted)
        stored = await self._store.read(tenant, deployments.all_of)
        for deployment in stored:
            if deployment.in_file and deployment.name not in kept:
                await self._store.write(tenant, _remove, caller, deployment.id, by_file=True)

    async def _provide(self, caller: Principal, wanted: Wanted) -> None:
        columns = {**self._columns(wanted), "in_file": True}
        before = await self._store.read(caller.tenant, deployments.named, wanted.name)
        if before is not None and before.url != columns["url"]:
            await self._store.write(caller.tenant, _remove, caller, before.id, by_file=True)
            before = None
        deployment_id = before.id if before else new_id()
        sealed = self._credentials(caller.tenant, deployment_id, wanted.key, wanted.headers)
        if before is None:
            await self._store.write(caller.tenant, _insert, caller, deployment_id, {**columns, "credentials": sealed})
            return
        held = self._sealing.open(caller.tenant, before.id, before.credentials)
        same = {name: getattr(before, name) for name in columns} == {**columns, "graphs": tuple(columns["graphs"])}
        given = Credentials(wanted.key, dict(wanted.headers))
        if not same or held != given:
            columns["credentials"] = sealed
            if held.key != given.key and before.has_webhook:
                columns["webhook_hash"] = None
                log.warning("remove webhook of deployment: its key has changed", extra={"deployment": before.id})
            await self._store.write(
                caller.tenant, _change, caller, before.id, columns, "changed", sorted(columns), by_file=True
            )

    def connection(self, tenant: str, deployment: Deployment) -> Connection:
        credentials = self._sealing.open(tenant, deployment.id, deployment.credentials)
        return Connection(self._outbound(), deployment.url, credentials.as_headers())

    async def _checked(self, tenant: str, deployment: Deployment) -> Checked:
        info: Mapping[str, Any] | None = None
        try:
            connection = self.connection(tenant, deployment)
            info = await connection.info()
            await connection.threads("interrupted", {}, limit=1, offset=0)
            await require_graphs(connection, deployment)
        except DeploymentFailed as error:
            return Checked(Trouble(error.problem), error.message, info)
        return Checked(info=info)

    def _columns(self, wanted: Wanted) -> dict[str, Any]:
        graphs = [graph.strip() for graph in wanted.graphs if graph.strip()]
        if len(graphs) > MOST_GRAPHS or any(len(graph) > LONGEST_NAME or not graph.isprintable() for graph in graphs):
            raise Invalid(f"name at most {MOST_GRAPHS} graphs or assistants, of at most {LONGEST_NAME} characters")

        url = self._url(wanted.url)
        name = _name(wanted.name or urlsplit(url).netloc)
        facts = {"graphs": list(dict.fromkeys(graphs)), "stringify_args": wanted.stringify_args}
        return {"name": name, "url": url, **facts}

    def _url(self, url: str) -> str:
        """The URL without a trailing slash. Only http and https, without credentials, and only where the address rules
        allow a call."""
        parts = urlsplit(url.strip())
        if parts.query or parts.fragment:
            raise Invalid("the deployment URL has no query", hint="such as https://agents.example.com")
        return str(self._outbound().targets.check_url(url.strip())).rstrip("/")

    def _credentials(
        self, tenant: str, deployment_id: str, key: str | None, headers: Mapping[str, str]
    ) -> bytes | None:
        if key is not None and (len(key) > _LONGEST_KEY or not (key.isascii() and key.isprintable())):
            raise Invalid("the key of the deployment has invalid characters")
        problem = next((name for name, value in headers.items() if not _is_header(name, value)), None)
        if problem is not None or len(headers) > _MOST_HEADERS:
            raise Invalid(f"the header {problem!r} cannot be sent" if problem else f"at most {_MOST_HEADERS} headers")
        return self._sealing.seal(tenant, deployment_id, Credentials(key or None, dict(headers)))

    def header_names(self, tenant: str, deployment: Deployment) -> tuple[bool, Sequence[str]]:
        """Whether a key is stored, and the names of the other headers."""
        held = self._sealing.open(tenant, deployment.id, deployment.credentials)
        return held.key is not None, sorted(held.headers)


async def require_graphs(connection: Connection, deployment: Deployment) -> None:
    for graph in deployment.graphs:
        if not await connection.has_graph(graph, is_assistant=as_uuid(graph) is not None):
            raise failed(Trouble.UNKNOWN_GRAPH, f"{deployment.url} has no graph or assistant {graph!r}")


def new_webhook_secret() -> str:
    return new_token("look")


def require(tx: Tx, deployment_id: str, *, lock: bool = False) -> Deployment:
    deployment = (deployments.lock if lock else deployments.get)(tx, deployment_id)
    if deployment is None:
        raise NotFound(f"deployment {deployment_id!r} not found", hint="see those that exist: assent deployments list")
    return deployment


def _is_header(name: str, value: str) -> bool:
    known = _HEADER.fullmatch(name) is not None and name.lower() not in _OURS
    return known and len(value) <= _LONGEST_KEY and value.isascii() and value.isprintable()


def _name(name: str) -> str:
    stripped = name.strip()
    if not stripped or len(stripped) > LONGEST_NAME or not stripped.isprintable():
        raise Invalid(f"the name of a deployment has at most {LONGEST_NAME} printable characters")
    return stripped


def _insert(tx: Tx, caller: Principal, deployment_id: str, columns: Mapping[str, Any]) -> None:
    if not deployments.insert(tx, deployment_id, **columns):
        raise AlreadyExists(f"a deployment named {columns['name']!r} exists", hint="choose another name")
    details = {"name": columns["name"], "url": columns["url"], "graphs": columns["graphs"]}
    events.append(tx, caller, "deployment.added", f"deployment:{deployment_id}", details)


def _change(
    tx: Tx,
    caller: Principal,
    deployment_id: str,
    columns: Mapping[str, Any],
    kind: str,
    names: Sequence[str],
    *,
    by_file: bool = False,
) -> None:
    before = require(tx, deployment_id, lock=True)
    _require_free(before, by_file=by_file or kind in ("paused", "resumed"))
    taken = deployments.named(tx, columns["name"]) if "name" in columns else None
    if taken is not None and taken.id != deployment_id:
        raise AlreadyExists(f"a deployment named {columns['name']!r} exists", hint="choose another name")
    deployments.change(tx, deployment_id, **columns)
    if kind == "resumed":
        deliveries.hasten(tx, f"deployment:{deployment_id}")
    events.append(tx, caller, f"deployment.{kind}", f"deployment:{deployment_id}", {"fields": list(names)})


def _rotate(tx: Tx, caller: Principal, deployment_id: str, credentials: bytes | None, webhook_hash: str) -> bool:
    """Returns whether there was a webhook, which then has the new secret."""
    has_webhook = require(tx, deployment_id, lock=True).has_webhook
    columns = {"credentials": credentials, **({"webhook_hash": webhook_hash} if has_webhook else {})}
    names = ["key", "webhook"] if has_webhook else ["key"]
    _change(tx, caller, deployment_id, columns, "rotated", names)
    return has_webhook


def _remove(tx: Tx, caller: Principal, deployment_id: str, *, by_file: bool = False) -> Deployment:
    removed = require(tx, deployment_id, lock=True)
    _require_free(removed, by_file=by_file)
    closed = elsewhere.close_all(tx, deployment_id, Resolution.WITHDRAWN, caller.actor)
    deployments.remove(tx, deployment_id)
    details = {"name": removed.name, "items": closed}
    events.append(tx, caller, "deployment.removed", f"deployment:{deployment_id}", details)
    return removed


def _require_free(deployment: Deployment, *, by_file: bool) -> None:
    if deployment.in_file and not by_file:
        raise Conflict(f"the deployment {deployment.name!r} is set in assent.toml", hint="change it there, and restart")


def _note_check(tx: Tx, deployment_id: str, checked: Checked) -> Deployment:
    deployment = require(tx, deployment_id, lock=True)
    info = checked.info if checked.info is not None else deployment.info
    since = None if checked.problem is None else (deployment.failing_since or tx.now())
    facts = {"problem": checked.problem, "message": checked.message, "info": info, "failing_since": since}
    deployments.change(tx, deployment_id, **facts)
    return require(tx, deployment_id)
