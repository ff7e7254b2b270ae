"""The JSON between a gate elsewhere and its server."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from assent.gate.records import Look
from assent.kernel.canonical import Json
from assent.review.model.grants import GATE, ITEM, MARKS, Call, Passage, marks_of

if TYPE_CHECKING:
    from langgraph.types import Interrupt


@dataclass(frozen=True, slots=True)
class CallSent:
    """A call, as a gate elsewhere describes it."""

    deployment: str
    thread_id: str
    call_id: str
    tool: str
    args: Json
    task: str
    idempotent: bool
    graph: str
    unedited: Json = None

    @classmethod
    def of(cls, call: Call, deployment: str) -> CallSent:
        named = (deployment, call.thread_id, call.call_id, call.tool)
        return cls(*named, call.args, call.task, call.idempotent, call.graph, call.unedited)

    def to_json(self) -> dict[str, Json]:
        return asdict(self)


def look(told: Json) -> Look:
    return _looks().validate_python(told)


def passage(told: Json) -> Passage:
    return _passages().validate_python(told)


@cache
def _looks() -> TypeAdapter[Look]:
    return TypeAdapter(Look)


@cache
def _passages() -> TypeAdapter[Passage]:
    return TypeAdapter(Passage)


def item_of(interrupt: Interrupt[Any]) -> str | None:
    """The item of a question that the gate has raised."""
    marks = marks_of(interrupt.value, interrupt.response_schema) or {}
    return str(marks[ITEM]) if ITEM in marks else None


def naming(item_id: str, value: dict[str, Json], schema: Json) -> tuple[dict[str, Json], Json]:
    """The value and the schema of a question of the gate, which name its item where the gate's marks are."""
    if value.get("gate") == GATE:
        return {**value, ITEM: item_id}, schema
    return value, {**schema, MARKS: {**schema[MARKS], ITEM: item_id}}
