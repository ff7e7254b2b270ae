"""The file of requests, as JSON lines (docs/assistant.md). A line without a request sets up the lines below it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from assent.assistant.planner.dates.zone import machine_now
from assent.errors import Invalid
from assent.kernel import canonical


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SetUpEvent(_Line):
    """An event that is in the calendar before the request."""

    name: str
    start: AwareDatetime
    duration_minutes: int = 30
    location: str | None = None


class ExpectedCall(BaseModel):
    """A change of the calendar. `event` and `on` are the name and the start of the event that is changed; all other
    fields are arguments. Texts give several answers as `Lunch|Lunch with Bob`."""

    model_config = ConfigDict(extra="allow", frozen=True)

    call: str
    event: str | None = None
    on: datetime | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        return self.model_extra or {}


class Expected(_Line):
    """One outcome that is right."""

    asks: bool = False
    answers: tuple[str, ...] | None = None
    calls: tuple[ExpectedCall, ...] = ()


def _expected(value: Any) -> Any:
    """The short forms: `asks`, `answers`, and one call without a list."""
    if value == "asks":
        return {"asks": True}
    if value == "answers":
        return {"answers": []}
    return {"calls": [value]} if isinstance(value, dict) and "call" in value else value


Outcome = Annotated[Expected, BeforeValidator(_expected)]


class SetUp(_Line):
    language: str = "en"
    now: AwareDatetime | None = None
    events: tuple[SetUpEvent, ...] = ()


class Request(_Line):
    """`after` are earlier requests of the conversation; what they propose is approved."""

    request: Annotated[str, Field(min_length=1)]
    after: tuple[str, ...] = ()
    expect: Outcome
    otherwise: Annotated[Literal["asks", "answers"] | None, Field(alias="or")] = None


def read(file: Path) -> Iterator[tuple[SetUp, Request]]:
    set_up = SetUp()
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = canonical.parse(line)
            if isinstance(fields, dict) and "request" not in fields:
                set_up = SetUp.model_validate(fields)
            else:
                yield set_up, Request.model_validate(fields)
        except (ValidationError, canonical.JsonError) as error:
            raise Invalid(f"{file}, line {number}: {_reason(error)}", hint="docs/assistant.md has the format") from None


def clock(set_up: SetUp) -> datetime:
    return set_up.now or machine_now()


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the line'}: {first['msg']}"
    return str(error)
