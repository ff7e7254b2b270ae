"""State that is made of the author's own classes, as a builder that is not compiled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel


class Risk(Enum):
    LOW = "low"
    HIGH = "high"


@dataclass
class Cost:
    amount: int
    currency: str = "EUR"


class Step(BaseModel):
    title: str
    risk: Risk = Risk.LOW


class Plan(BaseModel):
    goal: str
    steps: list[Step] = []
    cost: Cost = Cost(0)


class State(BaseModel):
    goal: str = ""
    plan: Plan | None = None
    cost: Cost | None = None
    risk: Risk = Risk.LOW
    agreed: bool = False


def draw_up(state: State) -> dict[str, object]:
    plan = Plan(goal=state.goal, steps=[Step(title="pay", risk=Risk.HIGH)], cost=Cost(598))
    return {"plan": plan, "cost": Cost(598), "risk": Risk.HIGH}


def agree(state: State) -> dict[str, object]:
    if not isinstance(state.plan, Plan) or not isinstance(state.cost, Cost) or state.risk is not Risk.HIGH:
        raise TypeError(f"the state came back as something else: {state!r}")
    return {"agreed": bool(interrupt({"question": "agree?", "goal": state.plan.goal}))}


builder = StateGraph(State)
builder.add_node("draw_up", draw_up)
builder.add_node("agree", agree)
builder.add_edge(START, "draw_up")
builder.add_edge("draw_up", "agree")
