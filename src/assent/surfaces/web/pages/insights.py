"""The insights page: time to decision, outcomes, and age of the backlog."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from assent.identity.model.access import Scope
from assent.kernel.store.ports import Store
from assent.review.insights import Insights
from assent.review.model.insights import RANGES, Outcome
from assent.review.samples import Samples
from assent.surfaces.http.authentication import Caller
from assent.surfaces.web.errors import PageRoute
from assent.surfaces.web.text.words import Sign
from assent.surfaces.web.views import charts, people
from assent.surfaces.web.views.shell import Shell

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


def routes(insights: Insights, samples: Samples, store: Store, shell: Shell) -> APIRouter:
    web = APIRouter(prefix="/inbox", include_in_schema=False, route_class=PageRoute)

    @web.post("/sample-data/removal")
    async def remove_samples(caller: Caller) -> Response:
        await samples.remove(caller)
        return RedirectResponse("/inbox/insights", 303)

    @web.get("/insights")
    async def insights_page(caller: Caller, days: int = 30) -> Response:
        report = await insights.report(caller, days if days in RANGES else 30)
        actors = [rates.name for rates in report.reviewers] + [stamp.actor for stamp in report.stamps]
        return await shell.show(
            caller,
            "insights.html",
            here="insights",
            report=report,
            samples=report.samples,
            may_remove=caller.may(Scope.ADMIN),
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
