"""Shared types of the REST API's requests and responses."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Generic, TypeVar

from fastapi import Header, Query
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from assent.kernel.store.paging import LARGEST_PAGE

T = TypeVar("T")


def _in_utc(moment: datetime) -> datetime:
    try:
        utc = moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is out of range in UTC") from None
    if not 1900 <= utc.year <= 9000:
        raise ValueError("the year must be between 1900 and 9000")
    return utc


Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
"""A time with its zone, in a range that is safe for later arithmetic."""

Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]
Cursor = Annotated[str | None, Query(max_length=1000, description="`next` of the previous page")]


Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


class Body(BaseModel):
    """A request body. Unknown fields are refused: a misspelt one must not be ignored."""

    model_config = ConfigDict(extra="forbid")


class PageOf(BaseModel, Generic[T]):
    items: list[T]
    next: str | None = Field(description="the cursor of the next page, null on the last")
