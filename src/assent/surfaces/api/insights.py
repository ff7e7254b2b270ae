"""REST: decision times, outcomes, and the age of the backlog."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from assent.review.insights import Insights
from assent.review.model.insights import AGES, Outcome, Period, Rates, Report, Stamp, Waits
from assent.surfaces.http.authentication import Caller
from assent.surfaces.http.routing import router


class WaitsView(BaseModel):
    count: int = Field(description="number of decided items")
    median: float | None = Field(description="seconds from request to decision; null without decisions")
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
    name: str = Field(description="a tool or an item type; for reviewers, the actor")
    total: int
    approved: int
    changed: int = Field(description="approved with changes, or in part")
    rejected: int
    sent_back: int = Field(description="a revision was requested; counted for reviewers")
    undecided: int = Field(description="expired, cancelled or superseded; counted for tools")
    waits: WaitsView

    @classmethod
    def of(cls, rates: Rates) -> RatesView:
        counts = {outcome.value: rates.counts.get(outcome, 0) for outcome in Outcome}
        return cls(name=rates.name, total=rates.total, waits=WaitsView.of(rates.waits), **counts)


class StampView(BaseModel):
    actor: str
    decisions: int
    approved: int
    pace: float = Field(description="median seconds per decision")

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
    counted: int = Field(description="number of items the figures are based on: all, or an even sample")
    open: int
    oldest: datetime | None = Field(description="when the oldest open item was requested")
    waits: WaitsView
    periods: list[PeriodView]
    tools: list[RatesView]
    reviewers: list[RatesView] = Field(description="everyone with audit:read; otherwise the caller alone")
    stamps: list[StampView] = Field(description="reviewers who approve nearly everything within seconds")
    backlog: list[AgeView]
    samples: int = Field(description="the number of items that are sample data")
    capped: bool = Field(description="there are more decisions than are read: reviewers' figures cover the latest ones")

    @classmethod
    def of(cls, report: Report) -> InsightsView:
        plain = ("days", "since", "until", "asked", "counted", "open", "oldest", "samples", "capped")
        return cls(
            **{name: getattr(report, name) for name in plain},
            waits=WaitsView.of(report.waits),
            periods=[PeriodView.of(period) for period in report.periods],
            tools=[RatesView.of(rates) for rates in report.tools],
            reviewers=[RatesView.of(rates) for rates in report.reviewers],
            stamps=[StampView.of(stamp) for stamp in report.stamps],
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
        """Figures for items requested in the last 7, 30 or 90 days, including today."""
        return InsightsView.of(await insights.report(caller, days))

    return api
