"""The grades of a file of requests, for people and for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assent.assistant.evaluation.grades import Grade, Outcome, grade
from assent.assistant.evaluation.requests import Request, SetUp, clock
from assent.assistant.evaluation.trial import tried
from assent.settings import AssistantSettings


@dataclass(frozen=True, slots=True)
class Graded:
    language: str
    request: Request
    outcome: Outcome
    grade: Grade

    def plain(self) -> dict[str, Any]:
        expected = self.request.expect.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        return {
            "language": self.language,
            "request": self.request.request,
            "grade": str(self.grade),
            "outcome": str(self.outcome),
            "expected": expected,
        }


@dataclass(frozen=True, slots=True)
class Score:
    grades: Mapping[Grade, int]

    @property
    def requests(self) -> int:
        return sum(self.grades.values())

    @property
    def percent(self) -> float:
        """Right, or asked where that is accepted."""
        good = self.grades.get(Grade.RIGHT, 0) + self.grades.get(Grade.ASKED, 0)
        return round(100 * good / self.requests, 1) if self.requests else 0.0

    def plain(self) -> dict[str, Any]:
        counts = {str(each): self.grades.get(each, 0) for each in Grade}
        return {"requests": self.requests, **counts, "percent": self.percent}


async def graded(settings: AssistantSettings, requests: Iterable[tuple[SetUp, Request]]) -> AsyncIterator[Graded]:
    for set_up, request in requests:
        outcome = await tried(settings, set_up, request)
        yield Graded(set_up.language, request, outcome, grade(request, outcome, clock(set_up).tzinfo))


def scores(results: Sequence[Graded]) -> dict[str, Score]:
    """By language."""
    languages = dict.fromkeys(result.language for result in results)
    return {
        language: Score(Counter(result.grade for result in results if result.language == language))
        for language in languages
    }
