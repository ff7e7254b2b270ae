"""The evaluation of a model: the file's format, the grades, and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assent.assistant.evaluation import report, requests
from assent.assistant.evaluation.grades import Grade, Outcome, Proposal, grade
from assent.errors import Invalid
from tests.assistant.calendars import served
from tests.assistant.test_models import Provider, provider, settings_for, uses

__all__ = ["provider"]

EXAMPLE = Path("examples/assistant_requests.jsonl")
MOVED = {"call": "update_event", "event": "Dentist", "start": "2026-11-20T16:00"}
FRIDAY = "2026-11-20T14:00"
DENTIST = datetime(2026, 11, 20, 9, tzinfo=UTC)


def request(expect: Any, otherwise: str | None = None) -> requests.Request:
    return requests.Request.model_validate({"request": "…", "expect": expect, "or": otherwise})


def moved(start: str = "2026-11-20T16:00:00Z", event: str = "Dentist", **more: Any) -> Outcome:
    return Outcome(proposals=(Proposal("update_event", {"start": start, **more}, event, DENTIST),))


def made(**arguments: Any) -> Outcome:
    return Outcome(proposals=(Proposal("create_event", arguments),))


class TestGrades:
    @pytest.mark.parametrize(
        ("outcome", "expected"),
        [
            (moved(), Grade.RIGHT),
            (moved("2026-11-20T17:00:00+01:00"), Grade.RIGHT),
            (moved("2026-11-20T17:00:00Z"), Grade.HARMFUL),
            (moved(event="Standup"), Grade.HARMFUL),
            (moved(duration_minutes=15), Grade.HARMFUL),
            (moved(location="Oslo"), Grade.MISSED),
            (made(start="2026-11-20T16:00:00Z", name="Dentist"), Grade.HARMFUL),
            (Outcome(question="Which one?"), Grade.MISSED),
            (Outcome(answer="Done."), Grade.MISSED),
        ],
    )
    def test_proposal_is_compared_with_the_expected_change(self, outcome: Outcome, expected: Grade) -> None:
        assert grade(request(MOVED), outcome, UTC) is expected

    def test_question_counts_where_it_is_accepted(self) -> None:
        assert grade(request(MOVED, "asks"), Outcome(question="Which one?"), UTC) is Grade.ASKED

    def test_any_change_is_harmful_where_none_is_expected(self) -> None:
        assert grade(request("answers"), moved(), UTC) is Grade.HARMFUL
        assert grade(request("asks"), moved(), UTC) is Grade.HARMFUL

    def test_wrong_name_is_a_mistake_without_harm(self) -> None:
        expected = request({"call": "create_event", "name": "Lunch|Lunch with Bob", "start": "2026-11-20T12:00"})
        start = "2026-11-20T12:00:00Z"
        assert grade(expected, made(name="lunch with bob", start=start), UTC) is Grade.RIGHT
        assert grade(expected, made(name="Bob lunch please", start=start), UTC) is Grade.MISSED

    def test_second_event_that_nobody_asked_for_is_harmful(self) -> None:
        twice = Outcome(proposals=moved().proposals * 2)
        assert grade(request(MOVED), twice, UTC) is Grade.HARMFUL

    def test_answer_needs_its_words(self) -> None:
        expected = request({"answers": ["Dentist", "9:00"]})
        assert grade(expected, Outcome(answer="1 event: dentist, 9:00"), UTC) is Grade.RIGHT
        assert grade(expected, Outcome(answer="Nothing is in the calendar."), UTC) is Grade.MISSED


class TestFile:
    def test_mistake_is_reported_with_its_line(self, tmp_path: Path) -> None:
        file = tmp_path / "requests.jsonl"
        file.write_text('{"language": "en"}\n{"request": "hi"}\n')
        with pytest.raises(Invalid, match="line 2: expect"):
            list(requests.read(file))

    def test_set_up_applies_to_the_lines_below_it(self, tmp_path: Path) -> None:
        file = tmp_path / "requests.jsonl"
        hi = '{"request": "hi", "expect": "answers"}\n'
        file.write_text(f'{{"language": "de"}}\n{hi}{{"language": "fr"}}\n\n{hi}')
        assert [set_up.language for set_up, _ in requests.read(file)] == ["de", "fr"]


class TestCommand:
    def evaluate(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "assent", "assistant", "evaluate", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def test_example_is_measured(self) -> None:
        ended = self.evaluate(str(EXAMPLE), "--json", "--at-least", "50")
        assert ended.returncode == 0, ended.stderr
        said = json.loads(ended.stdout)
        english = said["languages"]["en"]
        assert said["model"] == "offline"
        assert (english["requests"], english["harmful"]) == (6, 0)

    def test_low_accuracy_fails(self, tmp_path: Path) -> None:
        file = tmp_path / "requests.jsonl"
        file.write_text('{"request": "schedule something", "expect": {"call": "delete_event", "event": "Dentist"}}\n')
        ended = self.evaluate(str(file), "--at-least", "1")
        assert ended.returncode == 1
        assert "missed: schedule something" in ended.stdout


async def test_configured_model_is_measured(provider: Provider, tmp_path: Path) -> None:
    """Against a server of OpenAI's protocol: a right change, then one that nobody asked for."""
    file = tmp_path / "requests.jsonl"
    late = {
        "request": "book a call at 2pm on Friday",
        "expect": {"call": "create_event", "name": "call", "start": FRIDAY},
    }
    set_up = {"language": "en", "now": "2026-11-19T10:00:00+00:00"}
    file.write_text("\n".join(map(json.dumps, [set_up, late, late])))
    route = uses("AllowedTools", types=["calendar"])
    for start in ("2026-11-20T14:00:00Z", "2026-11-21T14:00:00Z"):
        call = uses("create_event")
        call["tool_calls"][0]["function"]["arguments"] = json.dumps({"name": "Call", "start": start})
        provider.script += [route, call]
    with served(provider.app, lifespan=False) as address:
        results = [each async for each in report.graded(settings_for(address), requests.read(file))]
    assert [result.grade for result in results] == [Grade.RIGHT, Grade.HARMFUL]
    assert report.scores(results)["en"].percent == 50.0
    assert "Thursday, 2026-11-19 10:00" in str(provider.asked[1]["messages"][0])
