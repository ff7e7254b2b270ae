"""Ways through a graph: reducers, branches, loops, Send, Command, subgraphs, kinds of state, caches, retries."""

from __future__ import annotations

import asyncio
import operator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.cache.memory import InMemoryCache
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.managed import IsLastStep, RemainingSteps
from langgraph.runtime import Runtime
from langgraph.types import CachePolicy, Command, Overwrite, RetryPolicy, Send
from pydantic import BaseModel
from typing_extensions import TypedDict


class Log(TypedDict, total=False):
    text: str
    log: Annotated[list[str], operator.add]


def step(name: str) -> Any:
    async def run(state: Log) -> Log:
        return {"log": [name]}

    return run


def chain(*names: str, schema: Any = Log, **options: Any) -> Any:
    builder = StateGraph(schema)
    for before, name in zip((START, *names), names, strict=False):
        builder.add_node(name, step(name)).add_edge(before, name)
    return builder.compile(**options)


linear = chain("first", "second", "third")
stops_after = chain("first", "second", "third", interrupt_after=["first", "second"])


def _higher(left: int, right: int) -> int:
    return max(left, right)


class Reduced(TypedDict, total=False):
    text: str
    total: Annotated[int, operator.add]
    highest: Annotated[int, _higher]
    tags: Annotated[set[str], operator.or_]
    log: Annotated[list[str], operator.add]


async def _count(state: Reduced) -> Reduced:
    return {"total": 2, "highest": 7, "tags": {"counted"}, "log": ["counted"]}


async def _replace(state: Reduced) -> Any:
    return {"total": -1, "highest": 3, "log": Overwrite(["replaced"])}


reducers = (
    StateGraph(Reduced)
    .add_node("count", _count)
    .add_node("replace", _replace)
    .add_edge(START, "count")
    .add_edge("count", "replace")
    .compile()
)

branches = (
    StateGraph(Log)
    .add_node("left", step("left"))
    .add_node("right", step("right"))
    .add_node("join", step("join"))
    .add_edge(START, "left")
    .add_edge(START, "right")
    .add_edge(["left", "right"], "join")
    .compile()
)

deferred = (
    StateGraph(Log)
    .add_node("short", step("short"))
    .add_node("long", step("long"))
    .add_node("longer", step("longer"))
    .add_node("last", step("last"), defer=True)
    .add_edge(START, "short")
    .add_edge(START, "long")
    .add_edge("long", "longer")
    .add_edge("short", "last")
    .add_edge("longer", "last")
    .compile()
)


def _each(state: Log) -> list[Send]:
    return [Send("work", {"text": letter}) for letter in state["text"]]


async def _work(state: Log) -> Log:
    return {"log": [state["text"].upper()]}


sends = (
    StateGraph(Log)
    .add_node("work", _work)
    .add_node("collect", step("collect"))
    .add_conditional_edges(START, _each, ["work"])
    .add_edge("work", "collect")
    .compile()
)


async def _choose(state: Log) -> Command[Literal["left", "right"]]:
    return Command(goto="left" if state["text"] == "x" else "right", update={"log": ["chose"]})


commands = (
    StateGraph(Log)
    .add_node("choose", _choose)
    .add_node("left", step("left"))
    .add_node("right", step("right"))
    .add_edge(START, "choose")
    .compile()
)


async def _leave(state: Log) -> Any:
    return Command(goto="after", graph=Command.PARENT, update={"log": ["left the child"]})


_leaving = StateGraph(Log).add_node("leave", _leave).add_edge(START, "leave").compile()
to_parent = (
    StateGraph(Log)
    .add_node("child", _leaving, destinations=("after",))
    .add_node("after", step("after"))
    .add_edge(START, "child")
    .compile()
)


def _route(state: Log) -> str:
    return "again" if len(state.get("log", [])) < 3 else "enough"


loop = (
    StateGraph(Log)
    .add_node("turn", step("turn"))
    .add_edge(START, "turn")
    .add_conditional_edges("turn", _route, {"again": "turn", "enough": END})
    .compile()
)
endless = StateGraph(Log).add_node("turn", step("turn")).add_edge(START, "turn").add_edge("turn", "turn").compile()

_innermost = chain("innermost")
_middle = (
    StateGraph(Log)
    .add_node("below", _innermost)
    .add_node("beside", step("beside"))
    .add_edge(START, "below")
    .add_edge("below", "beside")
    .compile()
)
deep = (
    StateGraph(Log)
    .add_node("top", step("top"))
    .add_node("middle", _middle)
    .add_edge(START, "top")
    .add_edge("top", "middle")
    .compile()
)


class Other(TypedDict, total=False):
    number: int


async def _double(state: Other) -> Other:
    get_stream_writer()({"doubling": state["number"]})
    return {"number": state["number"] * 2}


_doubling = StateGraph(Other).add_node("double", _double).add_edge(START, "double").compile()


async def _call(state: Log) -> Log:
    result = await _doubling.ainvoke({"number": 21})
    return {"log": [str(result["number"])]}


called = StateGraph(Log).add_node("call", _call).add_edge(START, "call").compile()


class Level(Enum):
    LOW = "low"


class Detail(BaseModel):
    amount: int = 1
    level: Level = Level.LOW


class Model(BaseModel):
    text: str
    detail: Detail = Detail()
    log: Annotated[list[str], operator.add] = []


async def _on_model(state: Model) -> Any:
    return {"log": [f"{state.text} {state.detail.amount}"], "detail": Detail(amount=state.detail.amount + 1)}


pydantic_state = StateGraph(Model).add_node("work", _on_model).add_edge(START, "work").compile()


@dataclass
class Record:
    text: str = ""
    amounts: list[int] = field(default_factory=list)


async def _on_record(state: Record) -> Any:
    return {"amounts": [*state.amounts, len(state.text)]}


dataclass_state = StateGraph(Record).add_node("work", _on_record).add_edge(START, "work").compile()


class Limited(Log, total=False):
    remaining: RemainingSteps
    last: IsLastStep


async def _see_limit(state: Limited) -> Log:
    return {"log": [f"{state['remaining']} left, last {state['last']}"]}


managed = StateGraph(Limited).add_node("see", _see_limit).add_edge(START, "see").compile()


async def _name(state: Log) -> Log:
    return {"text": str(uuid4())}


cached = (
    StateGraph(Log)
    .add_node("name", _name)
    .add_node("turn", step("turn"), cache_policy=CachePolicy(key_func=lambda state: state["text"].encode()))
    .add_edge(START, "name")
    .add_node("look", lambda state: None)
    .add_edge("name", "turn")
    .add_edge("turn", "look")
    .add_conditional_edges("look", _route, {"again": "turn", "enough": END})
    .compile(cache=InMemoryCache())
)


async def _fragile(state: Log, runtime: Runtime[Any]) -> Log:
    attempt = runtime.execution_info.node_attempt if runtime.execution_info else 0
    if attempt < 3:
        raise ConnectionError("try again")
    return {"log": [f"attempt {attempt}"]}


_QUICKLY = RetryPolicy(initial_interval=0.001, max_attempts=3, jitter=False)
retried = StateGraph(Log).add_node("fragile", _fragile, retry_policy=_QUICKLY).add_edge(START, "fragile").compile()


class Values(TypedDict, total=False):
    text: str
    kept: Any


async def _odd_values(state: Values) -> Values:
    return {
        "kept": {
            "bytes": b"\x00abc",
            "when": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            "day": date(2026, 1, 2),
            "span": timedelta(seconds=90),
            "exact": Decimal("1.10"),
            "set": {"only"},
            "tuple": (1, 2),
            "id": UUID(int=1),
            "float": 1e300,
            "big": 2**60,
            "text": "é\u2028 \U0001f600",
            "none": None,
            "level": Level.LOW,
            "detail": Detail(),
        }
    }


odd_values = StateGraph(Values).add_node("make", _odd_values).add_edge(START, "make").compile()


async def _configured(state: Values, config: RunnableConfig) -> Values:
    given = config.get("configurable", {})
    return {"kept": {"mine": given.get("mine"), "tags": sorted(config.get("tags") or [])}}


configured = StateGraph(Values).add_node("read", _configured).add_edge(START, "read").compile()


def made(config: RunnableConfig) -> Any:
    """A graph that is made for each run."""
    return chain(*(["one", "two"] if config.get("configurable", {}).get("mine") else ["one"]))


async def _remember(state: Values, runtime: Runtime[Any]) -> Values:
    assert runtime.store is not None
    place = ("conformance", uuid4().hex)
    await runtime.store.aput(place, "a", {"n": 1})
    await runtime.store.aput(place, "b", {"n": 2})
    await runtime.store.adelete(place, "b")
    items = await runtime.store.asearch(place)
    item = await runtime.store.aget(place, "a")
    return {"kept": [[each.key, each.value] for each in items] + [item.value if item else None]}


remembering = StateGraph(Values).add_node("remember", _remember).add_edge(START, "remember").compile()


async def _write(state: Log) -> Log:
    write = get_stream_writer()
    for letter in state["text"]:
        write({"letter": letter})
    write("plain text")
    return {"log": ["wrote"]}


_writing = StateGraph(Log).add_node("write", _write).add_edge(START, "write").compile()
writing = (
    StateGraph(Log)
    .add_node("here", _write)
    .add_node("inside", _writing)
    .add_edge(START, "here")
    .add_edge("here", "inside")
    .compile()
)


async def _fail(state: Log) -> Log:
    raise ValueError(f"boom: {state['text']}")


class OwnError(Exception):
    pass


async def _fail_own(state: Log) -> Log:
    raise OwnError("mine")


failing = (
    StateGraph(Log)
    .add_node("good", step("good"))
    .add_node("bad", _fail)
    .add_edge(START, "good")
    .add_edge("good", "bad")
    .compile()
)
own_error = StateGraph(Log).add_node("bad", _fail_own).add_edge(START, "bad").compile()
failing_inside = (
    StateGraph(Log)
    .add_node("child", StateGraph(Log).add_node("bad", _fail).add_edge(START, "bad").compile())
    .add_edge(START, "child")
    .compile()
)
failing_beside = (
    StateGraph(Log)
    .add_node("good", step("good"))
    .add_node("bad", _fail)
    .add_edge(START, "good")
    .add_edge(START, "bad")
    .compile()
)
unknown_goto = StateGraph(Log).add_node("go", lambda state: Command(goto="nowhere")).add_edge(START, "go").compile()
no_dict = StateGraph(Log).add_node("bad", lambda state: "no update").add_edge(START, "bad").compile()


async def _hold(state: Log) -> Log:
    """Until the run is cancelled, if the text says so."""
    get_stream_writer()({"at": "hold"})
    await asyncio.sleep(600 if state["text"] == "hold" else 0)
    return {"log": ["held"]}


holding = (
    StateGraph(Log)
    .add_node("first", step("first"))
    .add_node("hold", _hold)
    .add_edge(START, "first")
    .add_edge("first", "hold")
    .compile()
)
