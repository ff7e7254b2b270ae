"""Shared types of the LangGraph API: bodies, timestamps and pages."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, model_validator
from typing_extensions import TypedDict

from assent.kernel.limits import MOST_LISTED

log = logging.getLogger(__name__)

LARGEST_PAGE = 1000

Limit = Annotated[int, Field(ge=1, le=LARGEST_PAGE)]
Offset = Annotated[int, Field(ge=0, le=2**31 - 1)]
SortOrder = Literal["asc", "desc"]
Object = dict[str, Any]
Timestamp = Annotated[datetime, PlainSerializer(datetime.isoformat, return_type=str)]
"""A moment with its offset, `+00:00` rather than `Z`, as the reference server writes it."""


class Body(BaseModel):
    """A request body. Types are strict; unknown keys are ignored, and null is the same as absent."""

    model_config = ConfigDict(strict=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if unknown := value.keys() - cls.model_fields.keys():
            log.debug("ignored keys of a request body", extra={"body": cls.__name__, "keys": sorted(unknown)})
        return {key: item for key, item in value.items() if item is not None}


class Config(TypedDict, total=False):
    """A RunnableConfig as clients send it. Runs use these keys."""

    __pydantic_config__ = ConfigDict(strict=True, extra="allow")  # type: ignore[misc]

    tags: Annotated[list[str], Field(max_length=MOST_LISTED)]
    recursion_limit: Annotated[int, Field(ge=1, le=2**31 - 1)]
    max_concurrency: Annotated[int, Field(ge=1, le=2**31 - 1)]
    run_name: Annotated[str, Field(max_length=200)]
    configurable: Object
    metadata: Object


def page_headers(*, offset: int, shown: int, total: int) -> dict[str, str]:
    """`Total` is exact: the number of all matches."""
    following = {"X-Pagination-Next": str(offset + shown)} if offset + shown < total and shown else {}
    return {"X-Pagination-Total": str(total), **following}
