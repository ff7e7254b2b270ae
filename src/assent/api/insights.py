"""REST: how long decisions take, what they come to, and how old the backlog is."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from assent.domain.insights import AGES, Outcome, Period, Rates, Report, Stamp, Waits
from assent.http.authentication import Caller
from assent.http.routing import router
from assent.services.insights import Insights


class WaitsView(BaseModel):
    count: int = Field(description="how many were decided")
    median: float | None = Field(description="seconds from asking to deciding; null where nothing was decided")
    p90: float | None = Field(description="seconds within which nine of ten were decided")

    @classmethod
    def of(cls, waits: Waits) -> WaitsView:
        return cls(count=waits.count, median=waits.median, p90=waits.p90)


class PeriodView(BaseModel):
    start: datetime
    end: datetime
    waits: WaitsView

    @classmethod
    def of(cls, period: Period) -> PeriodView:
        return cls(start=period.start, end=period.end, waits=WaitsView.of(period.waits))


class RatesView(BaseModel):
    name: str = Field(description="a tool, or a type of question; of reviewers, the actor")
    total: int
    approved: int
    changed: int = Field(description="approved with changes, or in part")
    rejected: int
    sent_back: int = Field(description="a revision was asked for; counted for reviewers")
    undecided: int = Field(description="expired, withdrawn or overtaken; counted for tools")
    waits: WaitsView

    @classmethod
    def of(cls, rates: Rates) -> RatesView:
        counts = {one.value: rates.counts.get(one, 0) for one in Outcome}
        return cls(name=rates.name, total=rates.total, waits=WaitsView.of(rates.waits), **counts)


class StampView(BaseModel):
    actor: str
    decisions: int
    approved: int
    pace: float = Field(description="seconds there were for each, at the middle")

    @classmethod
    def of(cls, stamp: Stamp) -> StampView:
        return cls(actor=stamp.actor, decisions=stamp.decisions, approved=stamp.approved, pace=stamp.pace)


class AgeView(BaseModel):
    over: float = Field(description="seconds; this old or older…")
    under: float | None = Field(description="…and younger than this; null for the oldest")
    items: int


class InsightsView(BaseModel):
    days: int
    since: datetime
    until: datetime
    asked: int
    counted: int = Field(description="of how many of them the figures are: of all, or of an even sample")
    open: int
    oldest: datetime | None = Field(description="when the oldest of what is open was asked")
    waits: WaitsView
    periods: list[PeriodView]
    tools: list[RatesView]
    reviewers: list[RatesView] = Field(description="everyone with audit:read; otherwise the caller alone")
    stamps: list[StampView] = Field(description="who approves nearly everything within seconds")
    backlog: list[AgeView]
    capped: bool = Field(description="people said more than is read: those of reviewers are of what they said last")

    @classmethod
    def of(cls, report: Report) -> InsightsView:
        plain = ("days", "since", "until", "asked", "counted", "open", "oldest", "capped")
        return cls(
            **{name: getattr(report, name) for name in plain},
            waits=WaitsView.of(report.waits),
            periods=[PeriodView.of(one) for one in report.periods],
            tools=[RatesView.of(one) for one in report.tools],
            reviewers=[RatesView.of(one) for one in report.reviewers],
            stamps=[StampView.of(one) for one in report.stamps],
            backlog=_ages(report),
        )


def _ages(report: Report) -> list[AgeView]:
    edges = [0.0, *(age.total_seconds() for age in AGES)]
    under = [*edges[1:], None]
    return [AgeView(over=a, under=b, items=n) for a, b, n in zip(edges, under, report.backlog, strict=True)]


def routes(insights: Insights) -> APIRouter:
    api = router("/api", "insights")

    @api.get("/insights")
    async def read_insights(caller: Caller, days: int = 30) -> InsightsView:
        """For what was asked in the last 7, 30 or 90 days, today among them."""
        return InsightsView.of(await insights.report(caller, days))

    return api
