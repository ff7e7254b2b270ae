"""Policies: the version in force, the history, replays of past calls, and standing approvals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from assent.errors import Conflict, Forbidden, Invalid, InvalidPolicy, NotFound, Problem
from assent.identity.access import is_answerable
from assent.identity.model.access import Kind, Principal, Scope
from assent.identity.rows.agents import agent_of
from assent.kernel import canonical, events
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id
from assent.kernel.store import idempotency
from assent.kernel.store.paging import Page
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review import item_terms, passkey_coverage
from assent.review.decisions.consequences import Case, case_of
from assent.review.decisions.decide import require_item, require_seen
from assent.review.dialects import approves
from assent.review.model import conditions, policies
from assent.review.model.filters import Filter
from assent.review.model.items import Item
from assent.review.model.policies import Call, Difference, Effect, Policy
from assent.review.model.questions import ItemType
from assent.review.passkey_coverage import Missing
from assent.review.rows import item_search
from assent.review.rows import policies as rows
from assent.review.rows.policies import Version

BUILT_IN, FILE, API = "built-in", "file", "api"
MOST_REPLAYED = 10_000
LONGEST_APPROVAL = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Replay:
    """The effect that a policy would have had on past calls."""

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

    async def missing_passkeys(self, caller: Principal) -> list[Missing]:
        """Rules that require more passkeys than are registered."""
        caller.require(Scope.ITEMS_READ)
        return await self._store.read(caller.tenant, passkey_coverage.missing)

    async def put(self, caller: Principal, document: Json, *, source: str = API, after: int | None = None) -> Version:
        """Puts a policy in force; existing items keep their terms. `after` is the version that this one is based on: if
        another one is in force by now, nothing changes. Programs may not: a program that could allow its own calls
        would bypass approval."""
        _require_author(caller, "decide which calls run without approval")
        return await self._store.write(caller.tenant, _put, caller, read(document), source, after)

    async def provide(self, tenant: str, policy: Policy, source: str) -> None:
        """At start: puts the operator's file or the built-in default in force, unless that was its last version, or
        people have written their own."""
        await self._store.write(tenant, _provide, policy, source)

    async def test(self, caller: Principal, document: Json) -> Replay:
        """Replays past calls under this policy, newest first. Its conditions read unmasked arguments, and the results
        reveal parts of them: only a caller who may put it in force may test it."""
        _require_author(caller, "test policies against unmasked arguments")
        return await self._store.read(caller.tenant, _test, caller, read(document))

    async def allow_always(
        self,
        caller: Principal,
        item_id: str,
        *,
        revision: int,
        hash: str,
        lifetime: timedelta,
        uses: int | None = None,
        condition: str | None = None,
        same_args: bool = True,
        key: str | None = None,
    ) -> list[dict[str, Any]]:
        """Lets calls like those of an item run without approval, for a limited time. `revision` and `hash` name
        what the caller was shown, as in a decision. Needs the right to write policies."""
        if caller.kind is not Kind.REVIEWER:
            raise Forbidden("only a person can give a standing approval", missing=[Scope.POLICY_WRITE.value])
        caller.require(Scope.POLICY_WRITE)
        _check_terms(lifetime, uses, condition)
        request = ("allow always", item_id, revision, hash, lifetime.total_seconds(), uses, condition, same_args)

        def act(tx: Tx) -> list[dict[str, Any]]:
            item = require_item(tx, item_id, lock=True)
            require_seen(item, revision, hash)
            return _allow(tx, caller, item, lifetime, uses, condition, same_args)

        approvals: list[dict[str, Any]] = await self._store.write(
            caller.tenant, idempotency.once, caller.actor, key, request, act
        )
        return approvals

    async def standing(self, caller: Principal, *, limit: int = 50, cursor: str | None = None) -> Page[dict[str, Any]]:
        caller.require(Scope.ITEMS_READ)
        page = await self._store.read(caller.tenant, rows.approvals, limit=limit, cursor=cursor)
        return Page([approval_view(row) for row in page.items], page.next)

    async def standing_approval(self, caller: Principal, approval_id: str) -> dict[str, Any]:
        caller.require(Scope.ITEMS_READ)
        return approval_view(await self._store.read(caller.tenant, _approval, approval_id))

    async def revoke(self, caller: Principal, approval_id: str) -> dict[str, Any]:
        caller.require(Scope.POLICY_WRITE)
        return await self._store.write(caller.tenant, _revoke, caller, approval_id)


def _require_author(caller: Principal, what: str) -> None:
    """Requires the right to write policies, and a person or the owner of the database."""
    caller.require(Scope.POLICY_WRITE)
    if not is_answerable(caller):
        raise Forbidden(
            f"a {caller.kind} may not {what}",
            hint="do it as a person, or with access to the database: assent policy",
            missing=[Kind.REVIEWER.value],
        )


def read(document: Json) -> Policy:
    """Parses a policy in TOML or JSON; raises `InvalidPolicy` with rule and field."""
    try:
        return policies.parse(document) if isinstance(document, str) else policies.from_json(document)
    except RecursionError:
        raise InvalidPolicy("it is nested too deep", problems=[Problem("", "is nested too deep")]) from None


def approval_view(row: Any) -> dict[str, Any]:
    facts = {
        name: getattr(row, name) for name in ("tool", "graph", "condition", "item_id", "actor", "uses", "uses_left")
    }
    times = {name: getattr(row, name) for name in ("created_at", "expires_at", "revoked_at")}
    texts = {name: None if at is None else at.isoformat() for name, at in times.items()}
    return {"id": row.approval_id, "same_args": row.args_hash is not None, **facts, **texts}


def _put(tx: Tx, caller: Principal, policy: Policy, source: str, after: int | None) -> Version:
    """An unchanged policy makes no new version, so retries are safe."""
    events.lock(tx)
    current = rows.in_force(tx)
    if current.number and current.parsed() == policy:
        return current
    if after is not None and after != current.number:
        raise Conflict(
            f"version {current.number} is in force meanwhile",
            hint="review its changes, then try again",
            version=current.number,
        )
    version = rows.put(tx, policy, source=source, actor=caller.actor)
    events.append(tx, caller, "policy.changed", "policy", _version_details(version))
    return version


def _provide(tx: Tx, policy: Policy, source: str) -> None:
    """Servers that start together each call this; the first one puts the policy in force."""
    events.lock(tx)
    current, before = rows.in_force(tx), rows.latest_of(tx, source)
    own = current.source in (API, FILE) and source == BUILT_IN
    if own or (before is not None and before.parsed() == policy and source == FILE):
        return
    if current.parsed() == policy:
        return
    version = rows.put(tx, policy, source=source, actor="system")
    events.append(tx, "system", "policy.changed", "policy", _version_details(version))


def _version_details(version: Version) -> dict[str, Any]:
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
    agent, asks_only = agent_of(tx, item.requester), not approves(case.asked)
    for action in case.asked.actions:
        call = Call(action.name, action.args, item.graph_id or "", agent.name, tx.tenant, agent.id, question=asks_only)
        yield item.id, call, case.terms.effect


def _check_terms(lifetime: timedelta, uses: int | None, condition: str | None) -> None:
    if not timedelta() < lifetime <= LONGEST_APPROVAL:
        raise Invalid(f"a standing approval lasts at most {LONGEST_APPROVAL.days} days")
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
    item: Item,
    lifetime: timedelta,
    uses: int | None,
    condition: str | None,
    same_args: bool,
) -> list[dict[str, Any]]:
    case = case_of(tx, item)
    question = case.question
    _require_standing(tx, case)
    if question.type is not ItemType.TOOL or item.held:
        raise Invalid("only tool calls can have a standing approval")
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
        details = {"approval": approval_id, "tool": action.name, "graph": item.graph_id, "uses": uses}
        events.append(tx, caller, "approval.given", item.subject, details)
        made.append(approval_view(rows.approval(tx, approval_id)))
    return made


def _require_standing(tx: Tx, case: Case) -> None:
    """Refuses a standing approval that would never apply: some rules need a decision each time."""
    item = case.item
    now = item_terms.judged(tx, case.question, graph_id=item.graph_id, requester=item.requester, gated=item.gated)
    for rule in (*case.terms.rules, *now.rules):
        if rule.barrier is not None:
            raise Conflict(
                f"the rule {rule.name!r} {rule.barrier}, so a standing approval is not possible",
                hint="change the rule, or let each call be decided",
                rule=rule.name,
            )


def _approval(tx: Tx, approval_id: str) -> Any:
    row = rows.approval(tx, approval_id)
    if row is None:
        raise NotFound(f"standing approval {approval_id!r} not found")
    return row


def _revoke(tx: Tx, caller: Principal, approval_id: str) -> dict[str, Any]:
    row = _approval(tx, approval_id)
    if rows.revoke_approval(tx, approval_id):
        subject = f"item:{row.item_id}" if row.item_id else "policy"
        events.append(tx, caller, "approval.revoked", subject, {"approval": approval_id})
    return approval_view(rows.approval(tx, approval_id))
