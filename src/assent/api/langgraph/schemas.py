"""What the nouns of the LangGraph API share: how bodies are read, times written and pages counted."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, model_validator
from typing_extensions import TypedDict

log = logging.getLogger(__name__)

LARGEST_PAGE = 1000

Limit = Annotated[int, Field(ge=1, le=LARGEST_PAGE)]
Offset = Annotated[int, Field(ge=0, le=2**31 - 1)]
SortOrder = Literal["asc", "desc"]
Object = dict[str, Any]
Timestamp = Annotated[datetime, PlainSerializer(datetime.isoformat, return_type=str)]
"""A moment with its offset, `+00:00` rather than `Z`, as the reference server writes it."""


class Body(BaseModel):
    """A request body. Types are exact; keys that the API does not name are ignored, and null is the same as absent."""

    model_config = ConfigDict(strict=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _read_generously(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if unknown := value.keys() - cls.model_fields.keys():
            log.debug("ignored keys of a request body", extra={"body": cls.__name__, "keys": sorted(unknown)})
        return {key: given for key, given in value.items() if given is not None}


class Config(TypedDict, total=False):
    """A RunnableConfig as clients send it; keys beyond these are kept."""

    __pydantic_config__ = ConfigDict(strict=True, extra="allow")  # type: ignore[misc]

    tags: list[str]
    recursion_limit: int
    configurable: Object
    metadata: Object


def tell_page(response: Response, *, offset: int, shown: int, total: int) -> None:
    """The paging headers. The total is a real one: how many there are in all, wherever the page stands."""
    response.headers["X-Pagination-Total"] = str(total)
    if offset + shown < total and shown:
        response.headers["X-Pagination-Next"] = str(offset + shown)
