"""The graphs of the database in `tests/contract/data/0.1.0.sql`. They run under 0.1.0 and under the current version.

Each effect is a line in the file that `UPGRADE_LOG` names. Its path is not part of a state, so the dump has none.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from assent import gated

HOLD = ".hold"
"""While this file is beside the log, `counting` does not end."""


class State(TypedDict, total=False):
    amount: int
    answer: str
    steps: list[str]


def _leave(line: str) -> None:
    with Path(os.environ["UPGRADE_LOG"]).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


@gated
def pay(amount: int) -> str:
    """Pays an amount."""
    _leave(f"paid {amount}")
    return f"paid {amount}"


def _pay(state: State) -> State:
    return {"answer": pay(amount=state["amount"])}


def _ask(state: State) -> State:
    return {"answer": interrupt("Which colour?")}


def _begin(state: State) -> State:
    _leave("began")
    return {"steps": ["began"]}


def _end(state: State) -> State:
    _leave("ending")
    while Path(f"{os.environ['UPGRADE_LOG']}{HOLD}").exists():
        time.sleep(0.01)
    _leave("ended")
    return {"steps": [*state["steps"], "ended"]}


paying = StateGraph(State).add_node("pay", _pay).add_edge(START, "pay").compile()
asking = StateGraph(State).add_node("ask", _ask).add_edge(START, "ask").compile()
counting = (
    StateGraph(State)
    .add_node("begin", _begin)
    .add_node("end", _end)
    .add_edge(START, "begin")
    .add_edge("begin", "end")
    .compile()
)
