"""Real graphs that stop for a person, and the way back into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from assent.review import dialects
from assent.review.model.questions import Interrupt, Question, Verdict

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1", "__pregel_strict_resume": True}}


class Paused:
    """A thread of a graph, run up to its next stop."""

    def __init__(self, graph: Any, given: Any) -> None:
        self.graph = graph
        self.graph.invoke(given, CONFIG)

    @property
    def interrupts(self) -> list[Interrupt]:
        pending_interrupts = self.graph.get_state(CONFIG).interrupts
        return [Interrupt(each.id, each.value, each.response_schema) for each in pending_interrupts]

    @property
    def question(self) -> Question:
        [pending] = self.interrupts
        return dialects.recognise(pending)

    @property
    def finished(self) -> bool:
        state = self.graph.get_state(CONFIG)
        return not state.next and not state.tasks

    def decide(self, *verdicts: Verdict, **options: bool) -> Any:
        """Resume with what the dialect makes of these verdicts, and give back what that was."""
        [pending] = self.interrupts
        value = dialects.encode(dialects.recognise(pending), verdicts, **options)
        self.resume({pending.id: value})
        return value

    def answer(self, resume: Any, gated: Sequence[str] = ()) -> Any:
        """Resume as a client of the LangGraph API would, through the check."""
        answers = dialects.check_resume(self.interrupts, resume, exact=gated)
        return self.resume({id: answer.value for id, answer in answers.items()})

    def resume(self, values: dict[str, Any]) -> Any:
        return self.graph.invoke(Command(resume=values), CONFIG)


class Asked(TypedDict, total=False):
    answer: Any


class Asking(Paused):
    """One node that raises `value` and keeps what comes back."""

    def __init__(self, value: Any, response_schema: Any = None) -> None:
        def ask(state: Asked) -> Asked:
            return {"answer": interrupt(value, response_schema=response_schema)}

        builder = StateGraph(Asked)
        builder.add_node("ask", ask)
        builder.add_edge(START, "ask")
        super().__init__(builder.compile(checkpointer=InMemorySaver()), {})

    @property
    def received(self) -> Any:
        return self.graph.get_state(CONFIG).values.get("answer")


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> Runnable[Any, AIMessage]:
        return self


class Agent(Paused):
    """A `create_agent` whose model asks for `calls` and then stops; `ran` says what its tools did."""

    def __init__(self, *calls: tuple[str, dict[str, Any]], on: Any, mode: Any = "batched", **options: Any) -> None:
        self.ran: list[tuple[str, Any]] = []
        wanted = [ToolCall(name=name, args=args, id=f"call-{i}") for i, (name, args) in enumerate(calls)]
        messages = iter([AIMessage("", tool_calls=wanted), AIMessage("done"), AIMessage("done again")])
        agent = create_agent(
            Scripted(messages=messages),
            self._tools(),
            middleware=[HumanInTheLoopMiddleware(on, interrupt_mode=mode, **options)],
            checkpointer=InMemorySaver(),
        )
        super().__init__(agent, {"messages": "go"})

    def _tools(self) -> list[Any]:
        @tool
        def send(to: str, amount: float = 0) -> str:
            """Send something."""
            self.ran.append(("send", (to, amount)))
            return f"sent to {to}"

        @tool
        def delete(path: str) -> str:
            """Delete something."""
            self.ran.append(("delete", path))
            return f"deleted {path}"

        return [send, delete]

    @property
    def messages(self) -> list[AnyMessage]:
        return list(self.graph.get_state(CONFIG).values["messages"])

    @property
    def results(self) -> dict[str, str]:
        """What the model was told about each of its calls."""
        return {each.tool_call_id: str(each.content) for each in self.messages if isinstance(each, ToolMessage)}
