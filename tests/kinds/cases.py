"""The kinds of graphs that ask, the answers to each, and what has to come of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

CITY, OTHER_CITY = "Bern", "Basel"
WHY = "not today"
YES = "yes"
TYPES = ["Order", "Address", "Priority", "Money"]


@dataclass(frozen=True)
class Case:
    """A graph that asks about one order for each of `verbs`, and is answered with them in that order."""

    graph: str
    verbs: tuple[str, ...]
    gated: bool = True
    """Whether only a person may answer."""
    subagents: bool = False
    """Whether each order has a subagent of its own."""

    @property
    def name(self) -> str:
        return "-".join((self.graph, *(["subagents"] if self.subagents else []), *self.verbs))

    @property
    def numbers(self) -> range:
        return range(1, 1 + len(self.verbs))

    @property
    def is_told_why(self) -> bool:
        return not {"reject", "respond"}.isdisjoint(self.verbs)

    def input(self, log: Path) -> Json:
        calls = [_call(number, log) for number in self.numbers]
        if self.graph in ("batched", "per_call", "gate"):
            return _script(calls)
        if self.graph == "deep":
            return _script([_task([call]) for call in calls] if self.subagents else [_task(calls)])
        return {"log": str(log), "numbers": list(self.numbers)}

    def effects(self) -> list[str]:
        cities = {"approve": CITY, "edit": OTHER_CITY, YES: CITY}
        said = zip(self.numbers, self.verbs, strict=True)
        return [f"{number} {cities[verb]} HIGH 598 EUR" for number, verb in said if verb in cities]


def changed(args: Json) -> Json:
    """The arguments of an edit."""
    return {**args, "order": {**args["order"], "address": {**args["order"]["address"], "city": OTHER_CITY}}}


def _call(number: int, log: Path) -> Json:
    address = {"street": "Main Street 1", "city": CITY}
    order = {"number": number, "priority": "high", "address": address, "total": [598, "EUR"]}
    return {"name": "ship", "args": {"order": order, "log": str(log)}}


def _task(calls: list[Json]) -> Json:
    """A call that has a subagent make these calls."""
    return {"name": "task", "args": {"description": json.dumps(calls), "subagent_type": "shipper"}}


def _script(calls: list[Json]) -> Json:
    return {"messages": [{"role": "user", "content": json.dumps(calls)}]}


CASES = [
    Case("batched", ("approve", "edit")),
    Case("batched", ("reject", "approve", "respond")),
    Case("per_call", ("approve", "edit")),
    Case("per_call", ("reject", "respond")),
    Case("gate", ("approve", "edit")),
    Case("gate", ("reject",)),
    Case("deep", ("approve",)),
    Case("deep", ("edit", "reject")),
    Case("deep", ("approve", "edit"), subagents=True),
    Case("agent_inbox", ("approve",)),
    Case("agent_inbox", ("edit",)),
    Case("agent_inbox", ("respond",)),
    Case("agent_inbox", ("ignore",)),
    Case("text", (YES,), gated=False),
    Case("record", (YES,)),
    Case("parallel", (YES, "no", YES)),
    Case("functional", (YES,)),
]
