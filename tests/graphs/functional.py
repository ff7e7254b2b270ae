"""A workflow of the functional API: one task, one question."""

from __future__ import annotations

from typing import Any

from langgraph.func import entrypoint, task
from langgraph.types import interrupt


@task
def double(number: int) -> int:
    return number * 2


@entrypoint()
def workflow(order: dict[str, Any]) -> dict[str, Any]:
    doubled = double(int(order.get("number", 0))).result()
    answer = interrupt({"question": f"{doubled}?"}) if order.get("ask") else None
    return {"number": doubled, "answer": answer}
