"""Policies: the version in force, the history, replays of past calls, and standing approvals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from assent.errors import Conflict, Forbidden, InvalidPolicy, Problem
from assent.identity.access import is_answerable
from assent.identity.model.access import Kind, Principal, Scope
from assent.kernel import events
from assent.kernel.canonical import Json
from assent.kernel.store import idempotency
from assent.kernel.store.paging import Page
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.decisions.decide import require_item, require_seen
from assent.review.model import policies
from assent.review.model.policies import Difference, Policy
from assent.review.model.rules.loosening import Loosening, loosenings
from assent.review.policy import passkey_coverage, standing
from assent.review.policy.passkey_coverage import Missing
from assent.review.policy.past_calls import past_calls
from assent.review.policy.standing import Proposal, StandingTerms
from assent.review.rows import policies as rows
from assent.review.rows.policies import Version

BUILT_IN, FILE, API = "built-in", "file", "api"


@dataclass(frozen=True, slots=True)
class Replay:
    """The effect that a policy would have had on past calls."""

    looked_at: int
    differences: list[tuple[str, Difference]]
    loosened: list[Loosening]
    """The ways in which it is looser than the policy in force."""


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

    async def propose_standing(
        self,
        caller: Principal,
        item_id: str,
        *,
        revision: int,
        hash: str,
        terms: StandingTerms,
        since: timedelta = timedelta(days=30),
    ) -> Proposal:
        """The standing approvals of `allow_always`, and their replay over the calls since then. Gives nothing."""
        _require_giver(caller)
        terms.check()

        def look(tx: Tx) -> Proposal:
            item = require_item(tx, item_id)
            require_seen(item, revision, hash)
            return standing.propose(tx, caller, item, terms, since)

        return await self._store.read(caller.tenant, look)

    async def allow_always(
        self, caller: Principal, item_id: str, *, revision: int, hash: str, terms: StandingTerms, key: str | None = None
    ) -> list[dict[str, Any]]:
        """Lets calls like those of an item run without approval, for a limited time. `revision` and `hash` name
        what the caller was shown, as in a decision. Needs the right to write policies."""
        _require_giver(caller)
        terms.check()
        request = ("allow always", item_id, revision, hash, repr(terms))

        def act(tx: Tx) -> list[dict[str, Any]]:
            item = require_item(tx, item_id, lock=True)
            require_seen(item, revision, hash)
            return standing.give(tx, caller, item, terms)

        approvals: list[dict[str, Any]] = await self._store.write(
            caller.tenant, idempotency.once, caller.actor, key, request, act
        )
        return approvals

    async def standing(self, caller: Principal, *, limit: int = 50, cursor: str | None = None) -> Page[dict[str, Any]]:
        caller.require(Scope.ITEMS_READ)
        page = await self._store.read(caller.tenant, rows.approvals, limit=limit, cursor=cursor)
        return Page([standing.approval_view(row) for row in page.items], page.next)

    async def standing_approval(self, caller: Principal, approval_id: str) -> dict[str, Any]:
        caller.require(Scope.ITEMS_READ)
        return standing.approval_view(await self._store.read(caller.tenant, standing.require_approval, approval_id))

    async def revoke(self, caller: Principal, approval_id: str) -> dict[str, Any]:
        caller.require(Scope.POLICY_WRITE)
        return await self._store.write(caller.tenant, standing.revoke, caller, approval_id)


def _require_author(caller: Principal, what: str) -> None:
    """Requires the right to write policies, and a person or the owner of the database."""
    caller.require(Scope.POLICY_WRITE)
    if not is_answerable(caller):
        raise Forbidden(
            f"a {caller.kind} may not {what}",
            hint="do it as a person, or with access to the database: assent policy",
            missing=[Kind.REVIEWER.value],
        )


def _require_giver(caller: Principal) -> None:
    if caller.kind is not Kind.REVIEWER:
        raise Forbidden(
            "only a person can give a standing approval",
            hint="name yourself with --as, or use your own key",
            missing=[Scope.POLICY_WRITE.value],
        )
    caller.require(Scope.POLICY_WRITE)


def read(document: Json) -> Policy:
    """Parses a policy in TOML or JSON; raises `InvalidPolicy` with rule and field."""
    try:
        return policies.parse(document) if isinstance(document, str) else policies.from_json(document)
    except RecursionError:
        raise InvalidPolicy("it is nested too deep", problems=[Problem("", "is nested too deep")]) from None


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
    events.append(tx, caller, "policy.changed", "policy", _version_details(version, current))
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
    events.append(tx, "system", "policy.changed", "policy", _version_details(version, current))


def _version_details(version: Version, before: Version) -> dict[str, Any]:
    loosened = loosenings(before.parsed(), version.parsed())
    facts = {"version": version.number, "hash": version.hash, "source": version.source}
    return facts | {"loosens": list(map(str, loosened))} if loosened else facts


def _test(tx: Tx, caller: Principal, policy: Policy) -> Replay:
    past = list(past_calls(tx, caller))
    differences = [
        (each.item.id, difference)
        for each in past
        for difference in policies.replay(policy, [(each.call, each.effect)])
    ]
    return Replay(len(past), differences, loosenings(rows.in_force(tx).parsed(), policy))
