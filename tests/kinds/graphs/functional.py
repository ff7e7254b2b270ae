"""A workflow of the functional API: a task makes own objects, and the workflow asks about them."""

from __future__ import annotations

from typing import Any

from langgraph.func import entrypoint, task
from langgraph.types import interrupt

from tests.kinds.graphs.orders import names, samples, ship


@task
def collect() -> list[Any]:
    return samples()


@task
def send(order: Any, log: str) -> str:
    return ship(order, log)


@entrypoint()
def workflow(request: dict[str, Any], *, previous: Any = None) -> entrypoint.final[dict[str, Any], Any]:
    kept = collect().result()
    answer = interrupt({"question": "Ship?", "order": kept[0], "total": kept[3]})
    if answer == "yes":
        send(kept[0], request["log"]).result()
    value = {"answers": [answer], "types": names(kept), "previous": names(previous or [])}
    return entrypoint.final(value=value, save=kept)
