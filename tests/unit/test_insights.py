"""The sums behind the insights, and their charts."""

from datetime import UTC, datetime, timedelta

import pytest

from assent.review.model.insights import (
    Asked,
    Outcome,
    Rates,
    Said,
    Waits,
    beginning,
    by_reviewer,
    by_tool,
    outcome_of,
    outcome_said,
    percentile,
    periods_of,
    stamps_of,
    waits_of,
)
from assent.surfaces.web.views import charts

NOW = datetime(2026, 3, 10, 15, 30, tzinfo=UTC)
ANA, BEN = "reviewer:ana", "reviewer:ben"


def asked(*, tool: str = "pay", ago: float = 3600, wait: float | None = 60, outcome: str = "approved") -> Asked:
    at = NOW - timedelta(seconds=ago)
    decided = None if wait is None else at + timedelta(seconds=wait)
    return Asked(tool, at, wait is None, Outcome(outcome), decided)


def stream(count: int, *, every: float, outcome: str = "approved", actor: str = ANA) -> list[Said]:
    """Decisions one after another, on what was asked long before."""
    start = NOW - timedelta(days=1)
    times = [start + timedelta(seconds=every * index) for index in range(count)]
    return [Said(actor, Outcome(outcome), at, start - timedelta(hours=2)) for at in times]


@pytest.mark.parametrize(
    ("verbs", "expected"),
    [
        (["approve", "accept"], "approved"),
        (["respond"], "approved"),
        (["approve", "edit"], "changed"),
        (["approve", "reject"], "changed"),
        (["reject", "ignore"], "rejected"),
        (["decline"], "rejected"),
    ],
)
def test_verbs_of_a_decision_give_its_outcome(verbs: list[str], expected: str) -> None:
    assert outcome_said(verbs, sent_back=False) == expected
    assert outcome_said(verbs, sent_back=True) == Outcome.SENT_BACK


def test_item_without_a_decision_is_undecided() -> None:
    assert {outcome_of(resolution) for resolution in ("expired", "withdrawn", "superseded", "thread_ended", None)} == {
        "undecided"
    }
    assert outcome_of("partial") == "changed"


def test_percentiles_are_interpolated_between_two_values() -> None:
    assert percentile([7.0], 0.9) == 7.0
    assert percentile([0.0, 10.0], 0.5) == 5.0
    assert percentile([float(number) for number in range(11)], 0.9) == 9.0


def test_waits_count_only_decided_items() -> None:
    waits = waits_of([asked(wait=10), asked(wait=30), asked(wait=None), asked(wait=5, outcome="undecided")])
    assert waits == Waits(2, 20.0, 28.0)
    assert waits_of([]) == Waits(0, None, None)


@pytest.mark.parametrize(("days", "count"), [(7, 7), (30, 30), (90, 13)])
def test_periods_cover_the_range_and_today_is_in_the_last(days: int, count: int) -> None:
    since = beginning(NOW, days)
    periods = periods_of([asked(), asked(ago=86_400 * 6)], since, days)
    assert len(periods) == count
    assert periods[0].start == since
    assert periods[-1].end > NOW >= periods[-1].start
    assert sum(period.waits.count for period in periods) == 2
    assert periods[-1].waits.count >= 1


def test_rates_by_tool_leave_out_open_items() -> None:
    rows = by_tool(
        [
            asked(),
            asked(outcome="rejected"),
            asked(wait=None),
            asked(tool="mail"),
            asked(tool="mail", outcome="changed"),
            asked(tool="mail"),
        ]
    )
    assert [(row.name, row.total) for row in rows] == [("mail", 3), ("pay", 2)]
    assert rows[1].share(Outcome.REJECTED) == 0.5
    assert rows[0].waits.median == 60


def test_rates_by_reviewer_count_their_decisions() -> None:
    [ana, ben] = by_reviewer([*stream(3, every=60), *stream(1, every=1, outcome="sent_back", actor=BEN)])
    assert (ana.name, ana.total, ana.counts) == (ANA, 3, {Outcome.APPROVED: 3})
    assert ben.share(Outcome.SENT_BACK) == 1.0


class TestStamps:
    def test_reviewer_who_approves_everything_in_seconds_is_listed(self) -> None:
        [stamp] = stamps_of([*stream(40, every=3), *stream(40, every=60, actor=BEN)])
        assert (stamp.actor, stamp.decisions, stamp.approved, stamp.pace) == (ANA, 40, 40, 3.0)

    def test_few_or_slow_or_mixed_decisions_are_not_listed(self) -> None:
        assert stamps_of(stream(9, every=1)) == []
        assert stamps_of(stream(40, every=6)) == []
        assert stamps_of([*stream(36, every=1), *stream(4, every=1, outcome="rejected")]) == []
        assert stamps_of(stream(40, every=1, outcome="changed")) == []

    def test_pace_is_measured_from_when_each_item_was_asked(self) -> None:
        """One every ten minutes, each answered two seconds after it was asked."""
        times = [NOW + timedelta(minutes=10 * index) for index in range(12)]
        said = [Said(ANA, Outcome.APPROVED, at, at - timedelta(seconds=2)) for at in times]
        assert [stamp.pace for stamp in stamps_of(said)] == [2.0]


class TestCharts:
    @pytest.mark.parametrize(
        ("seconds", "words"),
        [(None, "–"), (0.4, "0.4 s"), (59, "59 s"), (90, "1.5 min"), (7200, "2 h"), (86_400 * 12.3, "12 d")],
    )
    def test_seconds_are_written_as_a_short_duration(self, seconds: float | None, words: str) -> None:
        assert charts.duration(seconds) == words

    def test_small_share_is_shown_as_less_than_one_percent(self) -> None:
        assert [charts.percent(share) for share in (0, 0.001, 0.005, 0.5, 1)] == ["0 %", "<1 %", "0 %", "50 %", "100 %"]

    def test_longer_waits_are_drawn_higher_and_inside_the_chart(self) -> None:
        since = beginning(NOW, 7)
        many = [asked(ago=86_400 * day + 90_000, wait=10.0**day) for day in range(5)]
        picture = charts.timeline(periods_of(many, since, 7), 720)
        assert all(0 <= mark.p90 <= mark.median <= picture.floor for mark in picture.marks)
        assert all(picture.left <= mark.x <= picture.width for mark in picture.marks)
        assert len(picture.lines) >= 4

    def test_no_decisions_give_an_empty_chart(self) -> None:
        assert charts.timeline(periods_of([], beginning(NOW, 30), 30), 340).marks == []

    def test_bars_fill_the_row_and_small_bars_stay_visible(self) -> None:
        rates = Rates("x", 4, {Outcome.APPROVED: 3, Outcome.REJECTED: 1}, Waits())
        assert [(bar.x, bar.width, bar.tone) for bar in charts.stack(rates)] == [
            (0.0, 75.0, "good"),
            (75.0, 25.0, "bad"),
        ]
        assert charts.lengths([0, 1, 1000]) == [0, 1, 100]
        assert charts.lengths([0, 0]) == [0, 0]
