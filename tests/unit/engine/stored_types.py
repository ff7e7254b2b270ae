"""An author's types of every kind, for the tests of what checkpoints keep."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypeVar
from uuid import UUID

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from typing_extensions import TypedDict

T = TypeVar("T")


class Color(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True)
class Sum:
    parts: list[Point]
    total: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", sum(part.x for part in self.parts))


class Pair(NamedTuple):
    left: Point
    right: Point


class Plan(BaseModel):
    goal: str
    color: Color = Color.RED
    points: list[Point] = []


class Aliased(BaseModel):
    """Is stored by field names, though only the aliases make one."""

    inner: Plan = Field(alias="innerPlan")


class Guarded(BaseModel):
    model_config = ConfigDict(strict=True)

    plan: Plan


class Page(BaseModel, Generic[T]):
    items: list[T]


class Outer:
    class Inner(BaseModel):
        name: str


class Login(BaseModel):
    password: SecretStr


Money = NewType("Money", Decimal)


class State(TypedDict, total=False):
    """Names each type once, in the containers that authors use."""

    color: Color
    level: Annotated[Level, "how much"]
    point: Point | None
    sums: Sequence[Sum]
    pairs: Mapping[str, Pair]
    plan: list[Plan]
    aliased: Aliased
    guarded: Guarded
    page: Page[Plan]
    inner: dict[str, Outer.Inner]
    login: Login
    secret: SecretStr
    money: Money
    only: Literal[Color.RED]
    messages: list[AnyMessage]
    anything: Any


def values() -> dict[str, Any]:
    """One of each, by a name for the test."""
    plan = Plan(goal="g", points=[Point(1)])
    return {
        "enum": Color.RED,
        "int enum": Level.HIGH,
        "dataclass": Point(1, 2),
        "dataclass with computed fields": Sum([Point(1), Point(2)]),
        "named tuple": Pair(Point(1), Point(2)),
        "model": plan,
        "model with aliases": Aliased(innerPlan=plan),
        "strict model": Guarded(plan=plan),
        "generic model": Page[Plan](items=[plan]),
        "nested class": Outer.Inner(name="n"),
        "secret": SecretStr("s"),
        "in containers": {"a": [Point(1), {"b": (Color.RED)}]},
        "message": AIMessage("hi", id="1", tool_calls=[{"name": "t", "args": {"a": 1}, "id": "c"}]),
        "messages": [HumanMessage("a", id="1"), AIMessage("b", id="2")],
        "interrupt": Interrupt(value={"q": 1}, id="a" * 32, response_schema={"type": "string"}),
        "send": Send("node", Point(1)),
        "command": Command(update={"a": 1}, goto="node"),
        "set of tuples": {("a", 1), ("b", 2)},
        "deque": deque([1, 2]),
        "moment": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "length": timedelta(days=1, seconds=2),
        "decimal": Decimal("598.10"),
        "uuid": UUID(int=7),
        "path": Path("a/b"),
        "bytes": b"\x00\x01",
        "nothing": None,
        "big integer": 2**63 - 1,
        "text": "日本 🎌",
    }
