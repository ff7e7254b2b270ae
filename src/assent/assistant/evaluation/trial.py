"""Leads a request through the assistant's router and executor over a calendar of its own, until a person is needed.

The nodes are those of the assistant's graph. Proposals of earlier requests, and of a request that should lead to
several, are carried out: the calendar is a temporary file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, ToolCall, ToolMessage
from langgraph.graph.message import add_messages

from assent.assistant import messages
from assent.assistant.evaluation.grades import Outcome, Proposal
from assent.assistant.evaluation.requests import Request, SetUp, SetUpEvent, clock
from assent.assistant.mcp.client import MODERN, McpClient
from assent.assistant.mcp.questions import Asked
from assent.assistant.mcp.servers import McpServers
from assent.assistant.mcp.targets import calendar
from assent.assistant.models import executor_model, router_model
from assent.assistant.nodes import Nodes
from assent.assistant.planner.model import OfflinePlanner
from assent.assistant.replies import Limits
from assent.assistant.state import RequestState, allowed_types
from assent.assistant.tools import CLARIFY, Catalogue
from assent.settings import AssistantSettings


async def tried(settings: AssistantSettings, set_up: SetUp, request: Request) -> Outcome:
    """The outcome of the request, with the configured models."""
    with TemporaryDirectory() as folder:
        client = McpServers({"calendar": McpClient(calendar(Path(folder) / "calendar.db"), name="here", mode=MODERN)})
        try:
            now = clock(set_up)
            router, executor = (_at(model(settings), now) for model in (router_model, executor_model))
            limits = Limits(settings.max_model_calls, settings.max_tool_calls)
            trial = _Trial(Nodes(router, executor, client, limits=limits, now=lambda: now))
            for event in set_up.events:
                await trial.create(event)
            for earlier in request.after:
                await trial.outcome_of(earlier, calls=settings.max_tool_calls)
            return await trial.outcome_of(request.request, calls=len(request.expect.calls))
        finally:
            await client.close()


def _at(model: BaseChatModel, now: datetime) -> BaseChatModel:
    return model.model_copy(update={"now": lambda: now}) if isinstance(model, OfflinePlanner) else model


@dataclass(slots=True)
class _Trial:
    nodes: Nodes
    state: RequestState = field(default_factory=lambda: RequestState(messages=[]))
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The events by their ids, as they are."""

    async def outcome_of(self, text: str, *, calls: int) -> Outcome:
        """Where more than one call is expected, proposals are carried out, so that the model can propose the next."""
        proposals: list[Proposal] = []
        self._add([HumanMessage(text)])
        self._update(await self.nodes.policy_router(self.state))
        while True:
            self._update(await self.nodes.task_executor(self.state))
            pending, asking = messages.last_calls(self.state["messages"]), self.state.get("asking") or {}
            proposals += [self._proposal(call) for call in pending if messages.call_id(call) in asking]
            questions = [str(call["args"].get("question")) for call in pending if call["name"] == CLARIFY]
            if questions:
                return Outcome(" ".join(questions), tuple(proposals))
            if not pending:
                return _ended(self.state["messages"][-1].text, proposals)
            if asking and len(proposals) >= calls:
                return Outcome(None, tuple(proposals))
            self._add([await self._answered(call) for call in pending])

    async def create(self, event: SetUpEvent) -> None:
        arguments = event.model_dump(mode="json", exclude_none=True)
        self._learn((await self.nodes.client.call("create_event", arguments)).structured)

    async def _answered(self, call: ToolCall) -> ToolMessage:
        tools = Catalogue(await self.nodes.client.tools())
        invalid = (self.state["messages"][-1].additional_kwargs.get(messages.INVALID) or {}).get(call["id"])
        if invalid or tools.usable(call["name"], allowed_types(self.state)) is None:
            return messages.answer(call, f"Error: {invalid or 'the request may not use this tool'}", failed=True)
        try:
            result = await self.nodes.client.call(call["name"], call["args"])
        except Asked:
            return messages.answer(call, "Error: nobody is here to answer the tool's question", failed=True)
        self._learn(result.structured)
        return messages.answer(call, result.text, failed=result.failed)

    def _proposal(self, call: ToolCall) -> Proposal:
        event = self.events.get(str(call["args"].get("event_id")))
        if event is None:
            return Proposal(call["name"], call["args"])
        start, end = (datetime.fromisoformat(event[name]) for name in ("start", "end"))
        present = {**event, "duration_minutes": (end - start) // timedelta(minutes=1)}
        changing = {name: value for name, value in call["args"].items() if value != present.get(name)}
        return Proposal(call["name"], changing, event["name"], start)

    def _learn(self, result: Any) -> None:
        """The events in the result of a tool."""
        if not isinstance(result, dict):
            return
        for event in [result.get("event_details"), *(result.get("events") or ())]:
            if event:
                self.events[event["event_id"]] = event

    def _add(self, more: Sequence[AnyMessage]) -> None:
        self.state["messages"] = add_messages(self.state["messages"], list(more))  # type: ignore[typeddict-item,arg-type]

    def _update(self, update: dict[str, Any]) -> None:
        self._add(update.pop("messages", ()))
        self.state.update(update)  # type: ignore[typeddict-item]


def _ended(answer: str, proposals: Sequence[Proposal]) -> Outcome:
    """Models also ask in their answers."""
    asks = not proposals and answer.rstrip().endswith(("?", "？"))
    return Outcome(answer if asks else None, tuple(proposals), answer)
