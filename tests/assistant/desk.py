"""The assistant without a server: a real graph and checkpoints, a real MCP server, a person at a local inbox."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fastmcp import Context, FastMCP
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from mcp_types import ElicitResult, InputRequiredResult, ToolAnnotations

from assent import LocalInbox
from assent.assistant.calendar import asking
from assent.assistant.graph import assemble
from assent.assistant.mcp.client import McpClient
from assent.assistant.mcp.servers import McpServers
from assent.assistant.nodes import Nodes
from assent.assistant.replies import Limits
from assent.assistant.tools import Rules
from assent.identity.model.access import DEFAULT_TENANT, Kind, Principal, Scope
from assent.kernel.store.transaction import Tx
from assent.review import thread_items
from assent.review.decisions import doubts
from assent.review.decisions.consequences import case_of
from assent.review.decisions.decide import Proposal, decide
from assent.review.model.grants import Grant
from assent.review.model.questions import Verb, Verdict
from assent.review.rows import gate, grants, items
from tests.assistant.models import Allowing, Scripted

THREAD = "thread-1"
CONFIG: RunnableConfig = {"configurable": {"thread_id": THREAD}}
TYPES = ("birds", "stones")
_ANA = Principal(
    Kind.REVIEWER, "ana", "ana", DEFAULT_TENANT, frozenset({Scope.DECIDE, Scope.ITEMS_READ}), via="library"
)

_FORM = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}


class Aviary:
    """An MCP server that no part of the assistant knows. `done` is what its tools did, in order."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Any]] = []
        self.keys: dict[str, str] = {}
        self.hangs = False
        self.hanging = asyncio.Event()
        self.server = FastMCP("aviary")
        reads = ToolAnnotations(read_only_hint=True)
        self.server.tool(self.watch, annotations=reads, tags={"birds"})
        self.server.tool(self.ring, tags={"birds"})
        self.server.tool(self.feed, tags={"birds"})
        self.server.tool(self.nest, tags={"birds"})
        self.server.tool(self.ponder, tags={"birds"})
        self.server.tool(self.lift, annotations=reads, tags={"stones"})

    def watch(self, bird: str) -> str:
        """Watch a bird."""
        self.done.append(("watch", bird))
        return f"{bird} sings"

    def ring(self, bird: str, colour: str = "red", idempotency_key: str | None = None) -> str:
        """Ring a bird."""
        if idempotency_key and idempotency_key in self.keys:
            return self.keys[idempotency_key]
        self.done.append(("ring", (bird, colour)))
        if idempotency_key:
            self.keys[idempotency_key] = f"{bird} wears {colour}"
        return f"{bird} wears {colour}"

    def feed(self, bird: str) -> str:
        """Feed a bird."""
        if bird == "dodo":
            raise ValueError("it is extinct")
        self.done.append(("feed", bird))
        return f"{bird} eats"

    async def nest(self, ctx: Context, bird: str) -> str | InputRequiredResult:
        """Build a nest; how large, a person is asked."""
        said = await asking.form(ctx, "size", "How large?", _FORM)
        if not isinstance(said, ElicitResult):
            return said
        if said.action != "accept":
            return f"no nest: {said.action}"
        size = (said.content or {}).get("size")
        self.done.append(("nest", (bird, size)))
        return f"{bird} has a nest of {size}"

    async def ponder(self, bird: str) -> str:
        """Think about a bird."""
        self.done.append(("ponder", bird))
        if self.hangs:
            self.hanging.set()
            await asyncio.sleep(60)
        return f"{bird} is wise"

    def lift(self, stone: str) -> str:
        """Lift a stone."""
        self.done.append(("lift", stone))
        return f"{stone} is heavy"


class Desk:
    """One thread of an assistant, and a person who answers what it asks."""

    def __init__(self, file: Path, nodes: Nodes, saver: Any = None) -> None:
        self.inbox = nodes.inbox
        assert isinstance(self.inbox, LocalInbox)
        self.file = file
        self.nodes = nodes
        self.graph = assemble(nodes).compile(checkpointer=saver or InMemorySaver())
        self.result: Any = None

    async def say(self, text: str) -> Any:
        return await self._ran({"messages": [HumanMessage(text)]})

    async def resume(self, value: Any) -> Any:
        """As a caller would who can reach the graph, but decides nothing."""
        [pause] = self.result["__interrupt__"]
        return await self._ran(Command(resume={pause.id: value}))

    async def run_again(self) -> Any:
        """Without input: from the last checkpoint."""
        return await self._ran(None)

    @property
    def model(self) -> Scripted:
        assert isinstance(self.nodes.executor, Scripted)
        return self.nodes.executor

    @property
    def asked(self) -> Any:
        """The value of the pause; None where there is none."""
        pauses = self.result.get("__interrupt__") or ()
        if not pauses:
            return None
        [pause] = pauses
        return pause.value

    @property
    def messages(self) -> list[BaseMessage]:
        found: list[BaseMessage] = self.result["messages"]
        return found

    async def answer(self, *verdicts: Verdict) -> Any:
        """Decides the item that the pause has become, and goes on with what was decided."""
        self.decide(*verdicts)
        return await self.go_on()

    def decide(self, *verdicts: Verdict) -> None:
        self._inbox.run(lambda tx: self._follow(tx, list(self.result["__interrupt__"])))
        self._inbox.run(lambda tx: _decided(tx, verdicts))

    def settle(self, outcome: Any) -> None:
        """Says what became of a call that was cut off."""

        def write(tx: Tx) -> None:
            self._follow(tx, list(self.result["__interrupt__"]))
            [item] = items.in_doubt_of_thread(tx, THREAD)
            doubts.settle(tx, _ANA, item.id, outcome, None, via="library")

        self._inbox.run(write)

    async def go_on(self, *, heard: bool = True) -> Any:
        """With what was decided. Without `heard`, it could be gone on with once more."""
        answers = self._inbox.run(lambda tx: gate.decided_answers(tx, THREAD))
        if heard:
            self._inbox.run(lambda tx: gate.mark_delivered(tx, THREAD, answers))
        return await self._ran(Command(resume=answers))

    async def approve(self) -> Any:
        self.decide_all()
        return await self.go_on()

    def decide_all(self) -> None:
        """Approves whatever is asked."""
        self.decide(*(Verdict(str(n), Verb.APPROVE) for n in range(len(self.asked["tool_calls"]))))

    async def respond(self, *texts: str) -> Any:
        return await self.answer(*(Verdict(str(n), Verb.RESPOND, message=text) for n, text in enumerate(texts)))

    def grants(self) -> list[Grant]:
        def found(tx: Tx) -> list[Grant]:
            rows = [str(id) for (id,) in tx.sql("SELECT item_id FROM items ORDER BY created_at")]
            return [grant for id in rows for grant in grants.of_item(tx, id)]

        return self._inbox.run(found)

    @property
    def _inbox(self) -> LocalInbox:
        assert isinstance(self.inbox, LocalInbox)
        return self.inbox

    async def _ran(self, given: Any) -> Any:
        self.result = await self.graph.ainvoke(given, CONFIG, durability="sync")
        return self.asked

    def _follow(self, tx: Tx, pauses: Sequence[Any]) -> None:
        pending = [{"id": pause.id, "value": pause.value, "response_schema": pause.response_schema} for pause in pauses]
        thread_items.follow(tx, thread_items.Waiting(THREAD, pending))


def _decided(tx: Tx, verdicts: tuple[Verdict, ...]) -> None:
    [item] = items.open_of_thread(tx, THREAD)
    case_of(tx, item)
    decide(tx, _ANA, item.id, Proposal(item.revision, item.hash, verdicts=verdicts, via="library"))


def client_of(server: FastMCP, mode: str = "auto") -> McpServers:
    return McpServers({"aviary": McpClient(lambda: server, name="in this process", mode=mode)})


def nodes_of(
    server: FastMCP,
    inbox: LocalInbox,
    *script: Any,
    types: Any = TYPES,
    mode: str = "auto",
    mapping: Mapping[str, Sequence[str]] | None = None,
    hitl: Sequence[str] | None = None,
    limits: Limits | None = None,
) -> Nodes:
    model = Scripted(script=list(script))
    client, rules = client_of(server, mode), Rules(mapping, hitl)
    return Nodes(Allowing(types=types), model, client, rules, inbox, limits or Limits())


def told(messages: Sequence[BaseMessage]) -> list[str]:
    """The conversation in short: who spoke, and for calls and answers which tool."""
    return [_told(message) for message in messages]


def _told(message: BaseMessage) -> str:
    if isinstance(message, AIMessage) and message.tool_calls:
        return f"calls {' '.join(tool_call['name'] for tool_call in message.tool_calls)}"
    return f"tool {message.name}" if isinstance(message, ToolMessage) else message.type


def every_call_is_answered_once(messages: Sequence[BaseMessage]) -> bool:
    """Directly after its message, in the order of the calls."""
    for number, message in enumerate(messages):
        if isinstance(message, AIMessage) and message.tool_calls:
            ids = [tool_call["id"] for tool_call in message.tool_calls]
            after = messages[number + 1 : number + 1 + len(ids)]
            if [getattr(one, "tool_call_id", None) for one in after] != ids:
                return False
    answers = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
    return len(answers) == len(set(answers))
