"""Insights in the browser: how long decisions take, what they come to, how old the backlog is."""

from __future__ import annotations

from fastapi import APIRouter, Response

from assent.domain.insights import RANGES, Outcome
from assent.http.authentication import Caller
from assent.ports import Store
from assent.services.insights import Insights
from assent.web import charts, people
from assent.web.errors import PageRoute
from assent.web.shell import Shell
from assent.web.words import Sign

_WIDE, _NARROW = 980, 340
_MOST_TOOLS = 15
AGES = ("under an hour", "1 to 24 hours", "1 to 3 days", "3 to 7 days", "over a week")
OUTCOMES = {
    Outcome.APPROVED: Sign("check", "Approved", "good"),
    Outcome.CHANGED: Sign("diff", "With changes", "revision"),
    Outcome.REJECTED: Sign("cross", "Rejected", "bad"),
    Outcome.SENT_BACK: Sign("revise", "Sent back", "needs"),
    Outcome.UNDECIDED: Sign("dash", "Undecided"),
}
BY_TOOL = (Outcome.APPROVED, Outcome.CHANGED, Outcome.REJECTED, Outcome.UNDECIDED)
BY_REVIEWER = (Outcome.APPROVED, Outcome.CHANGED, Outcome.REJECTED, Outcome.SENT_BACK)


def routes(insights: Insights, store: Store, shell: Shell) -> APIRouter:
    web = APIRouter(prefix="/inbox/insights", include_in_schema=False, route_class=PageRoute)

    @web.get("")
    async def insights_page(caller: Caller, days: int = 30) -> Response:
        report = await insights.report(caller, days if days in RANGES else 30)
        actors = [one.name for one in report.reviewers] + [one.actor for one in report.stamps]
        return await shell.show(
            caller,
            "insights.html",
            here="insights",
            report=report,
            ranges=RANGES,
            charts=charts,
            pictures=[charts.timeline(report.periods, width) for width in (_WIDE, _NARROW)],
            backlog=list(zip(AGES, report.backlog, charts.lengths(report.backlog), strict=True)),
            tools=report.tools[:_MOST_TOOLS],
            left_out=len(report.tools[_MOST_TOOLS:]),
            outcomes=OUTCOMES,
            by_tool=BY_TOOL,
            by_reviewer=BY_REVIEWER,
            names=await people.names(store, caller, actors),
        )

    return web
