"""Statistics about decisions. Everyone sees the totals; figures about a person need the right to read the audit log,
except one's own."""

from __future__ import annotations

from assent.errors import Invalid
from assent.identity.model.access import Principal, Scope
from assent.identity.model.visibility import Visible
from assent.kernel.store.ports import Store
from assent.kernel.store.transaction import Tx
from assent.review.model import insights as sums
from assent.review.model.insights import RANGES, Report
from assent.review.rows import insights, samples
from assent.threads.access import ThreadAccess


class Insights:
    def __init__(self, store: Store, *, access: ThreadAccess | None = None) -> None:
        self._store = store
        self._may = access or ThreadAccess()

    async def report(self, caller: Principal, days: int = 30) -> Report:
        caller.require(Scope.ITEMS_READ)
        if days not in RANGES:
            raise Invalid(f"days: {days} is not a range", hint=f"one of: {', '.join(map(str, RANGES))}")
        visible = await self._may.inbox(caller) if caller.user is not None else None
        only = None if caller.may(Scope.AUDIT_READ) else caller.actor
        return await self._store.read(caller.tenant, _report, days, visible, only)


def _report(tx: Tx, days: int, visible: Visible | None, only: str | None) -> Report:
    since = sums.beginning(tx.now(), days)
    asked, count = insights.asked_since(tx, since, visible)
    said, more_said = insights.said_since(tx, since, visible, only)
    backlog, oldest = insights.backlog(tx, sums.AGES, visible)
    return Report(
        days=days,
        since=since,
        until=tx.now(),
        asked=count,
        counted=len(asked),
        open=sum(backlog),
        waits=sums.waits_of(asked),
        periods=sums.periods_of(asked, since, days),
        tools=sums.by_tool(asked),
        reviewers=sums.by_reviewer(said),
        stamps=sums.stamps_of(said),
        backlog=backlog,
        oldest=oldest,
        everyone=only is None,
        capped=more_said,
        samples=samples.count(tx, since),
    )
