"""Inputs of mutations. They are checked by the models of the REST API, so both accept and refuse the same."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

import strawberry
from pydantic import BaseModel, Field, ValidationError
from strawberry.scalars import JSON

from assent.review.model.questions import Verb
from assent.surfaces.http.errors import invalid

T = TypeVar("T", bound=BaseModel)
DecisionVerb = strawberry.enum(Verb, name="DecisionVerb")


@strawberry.input
class VerdictInput:
    """The verdict on one action."""

    key: str
    verb: DecisionVerb  # type: ignore[valid-type]
    args: JSON | None = strawberry.UNSET
    name: str | None = strawberry.UNSET
    message: str | None = strawberry.UNSET


@strawberry.input
class DecisionInput:
    """One verdict per action, or one `verb` for all of them. `revision` and `hash` name what the caller saw."""

    revision: int
    hash: str
    actions: list[VerdictInput] | None = strawberry.UNSET
    verb: DecisionVerb | None = strawberry.UNSET  # type: ignore[valid-type]
    message: str | None = strawberry.UNSET
    notes: str | None = strawberry.UNSET
    grace_seconds: float | None = strawberry.UNSET
    assertion: JSON | None = strawberry.UNSET


@strawberry.input
class ActionInput:
    name: str
    key: str | None = strawberry.UNSET
    args: JSON | None = strawberry.UNSET
    description: str | None = strawberry.UNSET
    allowed: list[DecisionVerb] | None = strawberry.UNSET  # type: ignore[valid-type]
    schema: JSON | None = strawberry.UNSET


@strawberry.input
class EntityInput:
    type: str
    id: str


@strawberry.input
class CreateInboxItemInput:
    type: str
    title: str
    description: str | None = strawberry.UNSET
    payload: JSON | None = strawberry.UNSET
    actions: list[ActionInput] | None = strawberry.UNSET
    recipient: str | None = strawberry.UNSET
    entity: EntityInput | None = strawberry.UNSET
    thread_ids: list[str] | None = strawberry.UNSET
    expires_at: datetime | None = strawberry.UNSET
    dedupe_key: str | None = strawberry.UNSET
    callback: str | None = strawberry.UNSET


@strawberry.input
class ResubmitInboxItemInput:
    """Fields that are left out stay unchanged."""

    title: str | None = strawberry.UNSET
    description: str | None = strawberry.UNSET
    payload: JSON | None = strawberry.UNSET
    actions: list[ActionInput] | None = strawberry.UNSET


class KeyIn(BaseModel):
    key: str = Field(min_length=1, max_length=200)


def checked(model: type[T], given: Any) -> T:
    """The body of the REST call with these fields."""
    try:
        return model.model_validate(given if isinstance(given, dict) else _plain(given))
    except ValidationError as error:
        raise invalid(error) from None


def _plain(given: Any) -> dict[str, Any]:
    fields = {name: getattr(given, name) for name in given.__dataclass_fields__}
    return {
        name: _value(value) for name, value in fields.items() if value is not strawberry.UNSET and value is not None
    }


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(each) for each in value]
    return _plain(value) if hasattr(value, "__dataclass_fields__") else value
