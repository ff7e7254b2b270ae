"""Creates, changes, finds and deletes crons. `firing` starts their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from assent.errors import AssentError, BadRequest, Invalid, NotFound, Unavailable
from assent.identity import mandates
from assent.identity.authorization import Authorizer, named
from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import Visible
from assent.kernel import events
from assent.kernel.ids import as_uuid, new_id
from assent.kernel.quotas import documents, quotas
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.model.secrets import SECRET_NAMES
from assent.runs.assistants.assistants import Assistants
from assent.runs.crons.access import CronAccess
from assent.runs.crons.payloads import merged, request_of, with_cron_id
from assent.runs.runs import Runs
from assent.threads.access import ThreadAccess
from assent.threads.model.configs import clean_metadata
from assent.threads.model.crons import Completion, Cron, require_schedule
from assent.threads.model.threads import Visibility
from assent.threads.rows import crons, threads
from assent.threads.rows.crons import Query, SortBy
from assent.threads.visible_threads import no_thread


@dataclass(frozen=True, slots=True)
class Wanted:
    """A caller's request for a new cron, or for a change of one. `payload` is the body of its runs."""

    given: Mapping[str, Any]
    """The named fields: schedule, timezone, end_time, enabled, on_run_completed."""
    payload: dict[str, Any] = field(default_factory=dict)
    """The body as the caller sent it."""
    metadata: dict[str, Any] | None = None


class StoredCrons:
    """Crons as they are stored: enough to find and delete them, also beside a server."""

    def __init__(self, store: Store, authorizer: Authorizer | None = None) -> None:
        self._store = store
        self._may = CronAccess(authorizer)

    async def get(self, caller: Principal, cron_id: str) -> Cron:
        visible = await self._may.read(caller, _uuid(cron_id))
        return _shown(await self._store.read(caller.tenant, crons.get, cron_id), cron_id, visible)

    async def delete(self, caller: Principal, cron_id: str) -> None:
        visible = await self._may.delete(caller, _uuid(cron_id))
        await self._store.write(caller.tenant, _delete, caller, cron_id, visible)

    async def search(
        self,
        caller: Principal,
        query: Query,
        *,
        sort_by: SortBy = "created_at",
        descending: bool = True,
        limit: int = 10,
        offset: int = 0,
    ) -> tuple[list[Cron], int]:
        """One page, and the number of all matches."""
        query = _unguessed(caller, await self._may.search(caller, query, limit=limit, offset=offset))
        order: dict[str, Any] = {"sort_by": sort_by, "descending": descending}
        return await self._store.read(caller.tenant, crons.search, query, **order, limit=limit, offset=offset)

    async def count(self, caller: Principal, query: Query) -> int:
        query = _unguessed(caller, await self._may.search(caller, query))
        return await self._store.read(caller.tenant, crons.count, query)


class Crons(StoredCrons):
    def __init__(
        self,
        store: Store,
        runs: Runs,
        assistants: Assistants,
        *,
        authorizer: Authorizer | None = None,
        visibility: Visibility = Visibility.SHARED,
    ) -> None:
        """`visibility`: of new crons."""
        super().__init__(store, authorizer)
        self._runs = runs
        self._assistants = assistants
        self._threads = ThreadAccess(authorizer)
        self._visibility = visibility

    async def create(
        self, caller: Principal, assistant_id: str, wanted: Wanted, *, thread_id: str | None = None
    ) -> Cron:
        """With a thread, its runs continue that thread; otherwise each run has a thread of its own."""
        caller.require(Scope.RUNS_WRITE)
        cron_id = new_id()
        given = wanted.given
        facts = {name: given.get(name) for name in ("schedule", "end_time")}
        facts |= {"cron_id": named(cron_id), "thread_id": named(thread_id), "payload": wanted.payload}
        metadata = clean_metadata(await self._may.create(caller, wanted.metadata or {}, facts))
        assistant = await self._assistant(caller, assistant_id)
        visible = await self._threads.read(caller, thread_id) if thread_id is not None else None
        draft = {
            "id": cron_id,
            "assistant_id": assistant,
            "thread_id": thread_id,
            "owner": caller.actor,
            "visibility": self._visibility,
            "mandate": mandates.record(caller),
            "schedule": given["schedule"],
            "timezone": given.get("timezone"),
            "end_time": given.get("end_time"),
            "enabled": given.get("enabled", True),
            "on_run_completed": _completion(given) if thread_id is None else None,
            "payload": with_cron_id({**wanted.payload, "assistant_id": assistant}, cron_id),
            "metadata": metadata,
        }
        await self._check(caller, draft)
        return await self._store.write(caller.tenant, _create, caller, draft, visible)

    async def update(self, caller: Principal, cron_id: str, wanted: Wanted) -> Cron:
        if not wanted.payload:
            raise BadRequest("Request body cannot be empty")
        facts = {name: wanted.given.get(name) for name in ("schedule", "end_time", "enabled", "on_run_completed")}
        asked = wanted.metadata or {}
        visible, metadata = await self._may.update(caller, _uuid(cron_id), asked, facts | {"payload": wanted.payload})
        wanted = replace(wanted, metadata=clean_metadata(metadata))
        present = _shown(await self._store.read(caller.tenant, crons.get, cron_id), cron_id, visible)
        await self._check(caller, _facts(present) | _draft(present, wanted))
        return await self._store.write(caller.tenant, self._change, caller, cron_id, visible, wanted)

    def _change(self, tx: Tx, caller: Principal, cron_id: str, visible: Visible | None, wanted: Wanted) -> Cron:
        present = _shown(crons.lock(tx, cron_id), cron_id, visible)
        given = {name: value for name, value in wanted.given.items() if value is not None or name == "end_time"}
        if present.thread_id is not None:
            given.pop("on_run_completed", None)
        changed = replace(present, **given, **_draft(present, wanted), updated_at=tx.now(), problem=None)
        if not _only_stops(present, wanted):
            self._may.require_author(caller, present)
            changed = replace(changed, owner=caller.actor, mandate=mandates.record(caller))
        if given.keys() & {"schedule", "timezone", "end_time"} or (changed.enabled and not present.enabled):
            require_schedule(changed.schedule, changed.timezone, tx.now())
            changed = replace(changed, next_run_at=changed.following(tx.now()))
        documents.require(tx, payload=changed.payload, metadata=changed.metadata)
        crons.put(tx, changed)
        events.append(tx, caller, "cron.changed", f"cron:{changed.id}", _told(changed))
        return changed

    async def _assistant(self, caller: Principal, name_or_id: str) -> str:
        try:
            return (await self._assistants.resolve(caller, name_or_id)).id
        except Unavailable:
            raise
        except (NotFound, Invalid):
            raise NotFound(f"Assistant '{name_or_id[:80]}' not found") from None

    async def _check(self, caller: Principal, draft: Mapping[str, Any]) -> None:
        """Refuses a cron whose runs would be refused for their body."""
        request = request_of(draft)
        await self._runs.check(request)
        if request.context and (request.config or {}).get("configurable"):
            raise BadRequest("Cannot specify both configurable and context. Prefer setting context alone.")
        await documents.require_given(self._store.limits, payload=draft["payload"], metadata=draft["metadata"])


def _unguessed(caller: Principal, query: Query) -> Query:
    """A filter by a value that only owners see matches their own crons: to others it would confirm a guess."""
    return replace(query, owner=caller.actor) if SECRET_NAMES.holds(dict(query.metadata)) else query


def _create(tx: Tx, caller: Principal, draft: Mapping[str, Any], visible: Visible | None) -> Cron:
    quotas.require_cron(tx)
    require_schedule(draft["schedule"], draft["timezone"], tx.now())
    if draft["thread_id"] is not None:
        thread = threads.get(tx, draft["thread_id"], values=False)
        if thread is None or not thread.shown_to(visible):
            raise no_thread(draft["thread_id"])
    cron = Cron(**draft, next_run_at=None, created_at=tx.now(), updated_at=tx.now())
    cron = replace(cron, next_run_at=cron.following(tx.now()))
    crons.insert(tx, cron)
    events.append(tx, caller, "cron.created", f"cron:{cron.id}", _told(cron))
    return cron


def _draft(present: Cron, wanted: Wanted) -> dict[str, Any]:
    payload = with_cron_id(merged(present.payload, wanted.payload), present.id)
    return {"payload": payload, "metadata": present.metadata | (wanted.metadata or {})}


def _only_stops(present: Cron, wanted: Wanted) -> bool:
    """Whether the change only disables the cron or ends it earlier, which others may do as well."""
    if wanted.payload.keys() - {"enabled", "end_time"} or wanted.given.get("enabled"):
        return False
    if "end_time" not in wanted.given:
        return True
    end = wanted.given["end_time"]
    return end is not None and (present.end_time is None or end <= present.end_time)


def _delete(tx: Tx, caller: Principal, cron_id: str, visible: Visible | None) -> None:
    cron = _shown(crons.lock(tx, cron_id), cron_id, visible)
    crons.remove(tx, cron.id)
    events.append(tx, caller, "cron.deleted", f"cron:{cron.id}", _told(cron))


def _shown(cron: Cron | None, cron_id: str, visible: Visible | None) -> Cron:
    if cron is None or not cron.shown_to(visible):
        raise _missing(cron_id)
    return cron


def _missing(cron_id: str) -> AssentError:
    return NotFound(f"Cron '{cron_id}' not found")


def _told(cron: Cron) -> dict[str, Any]:
    """For the timeline, which has no inputs of runs."""
    next_run = cron.next_run_at.isoformat() if cron.next_run_at else None
    facts = {name: getattr(cron, name) for name in ("assistant_id", "thread_id", "schedule", "timezone", "enabled")}
    return {**facts, "owner": cron.owner, "next_run_date": next_run}


def _facts(cron: Cron) -> dict[str, Any]:
    return {name: getattr(cron, name) for name in ("id", "assistant_id", "on_run_completed", "payload", "metadata")}


def _completion(given: Mapping[str, Any]) -> Completion:
    return Completion(given.get("on_run_completed") or Completion.DELETE)


def _uuid(cron_id: str) -> str:
    if as_uuid(cron_id) is None:
        raise Invalid("Invalid cron ID: must be a UUID")
    return cron_id
