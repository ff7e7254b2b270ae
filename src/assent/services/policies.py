"""Policies: what is in force, every version there was, what another one would have done, and standing approvals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from assent.domain import canonical, conditions, policies
from assent.domain.access import Kind, Principal, Scope
from assent.domain.canonical import Json
from assent.domain.filters import Filter
from assent.domain.ids import new_id
from assent.domain.items import Item
from assent.domain.policies import Call, Difference, Effect, Policy
from assent.domain.questions import ItemType
from assent.errors import Conflict, Forbidden, Invalid, InvalidPolicy, NotFound
from assent.ports import Store
from assent.services.access import is_answerable
from assent.services.carrying import case_of
from assent.services.deciding import found
from assent.store import events, item_search, requests
from assent.store import policies as rows
from assent.store.agents import agent_of
from assent.store.paging import Page
from assent.store.policies import Version
from assent.store.transaction import Tx

BUILT_IN, FILE, API = "built-in", "file", "api"
MOST_REPLAYED = 10_000
LONGEST_APPROVAL = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Replay:
    """What a policy would have done with the calls that were asked about before."""

    looked_at: int
    differences: list[tuple[str, Difference]]


class Policies:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def in_force(self, caller: Principal) -> Version:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, rows.in_force)

    async def versions(self, caller: Principal, *, limit: int = 50, cursor: str | None = None) -> Page[Version]:
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, rows.page, limit=limit, cursor=cursor)

    async def put(self, caller: Principal, document: Json, *, source: str = API, after: int | None = None) -> Version:
        """Puts a policy in force; what was asked before keeps the one it was asked under. `after` is the version that
        this one was made from: where another has come in between, nothing is changed. A program cannot: one that may
        say what runs without being asked needs no approval any more."""
        _require_author(caller, "say what may run without being asked")
        return await self._store.write(caller.tenant, _put, caller, read(document), source, after)

    async def provide(self, tenant: str, policy: Policy, source: str) -> None:
        """At start: puts in force what the operator's file says, or what this way of serving does by itself, unless
        that is what it put in force the last time, or people have written their own."""
        await self._store.write(tenant, _provide, policy, source)

    async def test(self, caller: Principal, document: Json) -> Replay:
        """What this policy would have done with what was asked before, newest first. Its conditions see the arguments
        with their secrets, and what they say of them shows: only who may put it in force tries it."""
        _require_author(caller, "ask about the secrets of what was asked before")
        return await self._store.read(caller.tenant, _test, caller, read(document))

    async def allow_always(
        self,
        caller: Principal,
        item_id: str,
        *,
        lifetime: timedelta,
        uses: int | None = None,
        condition: str | None = None,
        same_args: bool = True,
        key: str | None = None,
    ) -> list[dict[str, Any]]:
        """Lets calls like those of an item run without asking, for a while. Only who may write policies can."""
        if caller.kind is not Kind.REVIEWER:
            raise Forbidden("only a person says what may always run", missing=[Scope.POLICY_WRITE.value])
        caller.require(Scope.POLICY_WRITE)
        _check_terms(lifetime, uses, condition)
        request = ("allow always", item_id, lifetime.total_seconds(), uses, condition, same_args)

        def act(tx: Tx) -> list[dict[str, Any]]:
            return _allow(tx, caller, item_id, lifetime, uses, condition, same_args)

        given: list[dict[str, Any]] = await self._store.write(
            caller.tenant, requests.once, caller.actor, key, request, act
        )
        return given

    async def standing(self, caller: Principal, *, limit: int = 50, cursor: str | None = None) -> Page[dict[str, Any]]:
        caller.require(Scope.ITEMS_READ)
        page = await self._store.read(caller.tenant, rows.approvals, limit=limit, cursor=cursor)
        return Page([approval_view(row) for row in page.items], page.next)

    async def standing_one(self, caller: Principal, approval_id: str) -> dict[str, Any]:
        caller.require(Scope.ITEMS_READ)
        return approval_view(await self._store.read(caller.tenant, _approval, approval_id))

    async def revoke(self, caller: Principal, approval_id: str) -> dict[str, Any]:
        caller.require(Scope.POLICY_WRITE)
        return await self._store.write(caller.tenant, _revoke, caller, approval_id)


def _require_author(caller: Principal, what: str) -> None:
    """Who may write policies, as a person or as whoever holds the database."""
    caller.require(Scope.POLICY_WRITE)
    if not is_answerable(caller):
        raise Forbidden(
            f"a {caller.kind} does not {what}",
            hint="let a person do it, or whoever holds the database: assent policy",
            missing=[Kind.REVIEWER.value],
        )


def read(document: Json) -> Policy:
    """The policy in a TOML text or a JSON document, or `InvalidPolicy` naming rule and field."""
    try:
        return policies.parse(document) if isinstance(document, str) else policies.from_json(document)
    except policies.InvalidPolicy as error:
        found = [{"path": one.path, "message": one.message} for one in error.problems]
        raise InvalidPolicy(str(error), errors=found) from None
    except RecursionError:
        raise InvalidPolicy("it is nested too deep", errors=[{"path": "", "message": "is nested too deep"}]) from None


def approval_view(row: Any) -> dict[str, Any]:
    facts = {
        name: getattr(row, name) for name in ("tool", "graph", "condition", "item_id", "actor", "uses", "uses_left")
    }
    times = {name: getattr(row, name) for name in ("created_at", "expires_at", "revoked_at")}
    told = {name: None if at is None else at.isoformat() for name, at in times.items()}
    return {"id": row.approval_id, "same_args": row.args_hash is not None, **facts, **told}


def _put(tx: Tx, caller: Principal, policy: Policy, source: str, after: int | None) -> Version:
    """The same policy again is no new version: repeating a request that got lost is safe."""
    events.lock(tx)
    current = rows.in_force(tx)
    if current.number and current.hash == policies.digest(policy):
        return current
    if after is not None and after != current.number:
        raise Conflict(
            f"version {current.number} was put in force meanwhile",
            hint="look at what it changed",
            version=current.number,
        )
    version = rows.put(tx, policy, source=source, actor=caller.actor)
    events.append(tx, caller, "policy.changed", "policy", _told(version))
    return version


def _provide(tx: Tx, policy: Policy, source: str) -> None:
    """Servers that start together each say what they bring; the first one puts it in force."""
    events.lock(tx)
    current, before = rows.in_force(tx), rows.latest_of(tx, source)
    own = current.source in (API, FILE) and source == BUILT_IN
    if own or (before is not None and before.hash == policies.digest(policy) and source == FILE):
        return
    if current.hash == policies.digest(policy):
        return
    version = rows.put(tx, policy, source=source, actor="system")
    events.append(tx, "system", "policy.changed", "policy", _told(version))


def _told(version: Version) -> dict[str, Any]:
    return {"version": version.number, "hash": version.hash, "source": version.source}


def _test(tx: Tx, caller: Principal, policy: Policy) -> Replay:
    past = list(_past(tx, caller))
    differences = [
        (item_id, difference)
        for item_id, call, before in past
        for difference in policies.replay(policy, [(call, before)])
    ]
    return Replay(len(past), differences)


def _past(tx: Tx, caller: Principal) -> Iterator[tuple[str, Call, Effect]]:
    cursor, seen = None, 0
    while seen < MOST_REPLAYED:
        page = item_search.page(tx, Filter(), caller.actor, None, sort="-created_at", limit=500, cursor=cursor)
        for item in page.items:
            seen += 1
            yield from _calls(tx, item)
        cursor = page.next
        if cursor is None:
            return


def _calls(tx: Tx, item: Item) -> Iterator[tuple[str, Call, Effect]]:
    case = case_of(tx, item)
    agent = agent_of(tx, item.requester)
    for action in case.asked.actions:
        call = Call(action.name, action.args, item.graph_id or "", agent.name, tx.tenant, agent.id)
        yield item.id, call, case.terms.effect


def _check_terms(lifetime: timedelta, uses: int | None, condition: str | None) -> None:
    if not timedelta() < lifetime <= LONGEST_APPROVAL:
        raise Invalid(f"an approval stands for at most {LONGEST_APPROVAL.days} days")
    if uses is not None and uses < 1:
        raise Invalid("uses must be at least 1")
    if condition is not None:
        try:
            conditions.compile(condition)
        except conditions.InvalidCondition as error:
            raise Invalid(f"condition: {error}") from None


def _allow(
    tx: Tx,
    caller: Principal,
    item_id: str,
    lifetime: timedelta,
    uses: int | None,
    condition: str | None,
    same_args: bool,
) -> list[dict[str, Any]]:
    item = found(tx, item_id)
    question = case_of(tx, item).question
    if question.type is not ItemType.TOOL or item.held:
        raise Invalid("only calls of tools can be allowed once and for all")
    made = []
    for action in question.actions:
        approval_id = new_id()
        rows.insert_approval(
            tx,
            approval_id=approval_id,
            tool=action.name,
            graph=item.graph_id,
            condition=condition,
            args_hash=canonical.digest(action.args) if same_args else None,
            item_id=item.id,
            actor=caller.actor,
            expires_at=tx.now() + lifetime,
            uses_left=uses,
        )
        told = {"approval": approval_id, "tool": action.name, "graph": item.graph_id, "uses": uses}
        events.append(tx, caller, "approval.given", item.subject, told)
        made.append(approval_view(rows.approval(tx, approval_id)))
    return made


def _approval(tx: Tx, approval_id: str) -> Any:
    row = rows.approval(tx, approval_id)
    if row is None:
        raise NotFound(f"there is no standing approval {approval_id!r}")
    return row


def _revoke(tx: Tx, caller: Principal, approval_id: str) -> dict[str, Any]:
    row = _approval(tx, approval_id)
    if rows.revoke_approval(tx, approval_id):
        subject = f"item:{row.item_id}" if row.item_id else "policy"
        events.append(tx, caller, "approval.revoked", subject, {"approval": approval_id})
    return approval_view(rows.approval(tx, approval_id))
