"""The six nodes of the assistant's graph, and their edges.

A node that pauses has no effects before its pause, because it restarts from its beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.messages.modifier import RemoveMessage
from langchain_core.runnables import Runnable
from langgraph.constants import TAG_NOSTREAM
from langgraph.graph import END
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from assent.assistant import messages, pauses, prompts, subjects
from assent.assistant.calling import Calling
from assent.assistant.mcp import McpClient
from assent.assistant.messages import call_id
from assent.assistant.models import ModelFailed
from assent.assistant.state import ApprovalOutcome, AskedCall, RejectedToolFeedback, RequestState
from assent.assistant.tools import CLARIFY, Catalogue, Rules
from assent.gate.graphs import MARK
from assent.gate.keeper import Keeper
from assent.review.model.questions import Verb, Verdict

log = logging.getLogger(__name__)

Update = dict[str, Any]

_NO_CALLS: Update = {"asking": {}, "approvals": [], "results": {}, "elicitations": [], "answers": {}}
_SEEN_BY_ROUTER = 6
"""Number of text messages that the router sees, including the request."""


@dataclass(frozen=True)
class Nodes:
    """`inbox` stores grants if no server runs the graph."""

    router: BaseChatModel
    executor: BaseChatModel
    client: McpClient
    rules: Rules = field(default_factory=Rules)
    inbox: Keeper | None = None

    async def policy_router(self, state: RequestState) -> Update:
        """Decides which types of tools the request may use. All others are refused."""
        repaired = messages.repaired(state["messages"])
        types = (await self._catalogue()).types
        allowed = await self._routed(state["messages"], types) if types else []
        update = {**_NO_CALLS, "rejected": [], "allowed_types": allowed}
        return {**update, "messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *repaired]} if repaired else update

    async def task_executor(self, state: RequestState) -> Update:
        """Asks the model for the next step, and records the calls that need approval: no node from here to the tools
        needs the MCP server, so that no answer is lost while it is down."""
        catalogue, allowed = await self._catalogue(), state.get("allowed_types") or []
        bound = catalogue.bound(allowed)
        prompt = SystemMessage(prompts.executor(CLARIFY, datetime.now().astimezone()))
        answer = await _invoke(self.executor.bind_tools(bound), [prompt, *state["messages"]])
        message = messages.normalised(answer, state["messages"])
        asked = _asking(catalogue, allowed, message)
        asking = {call_id(call): _details(catalogue, call, state["messages"]) for call in asked}
        return {**_NO_CALLS, "messages": [message], "asking": asking}

    async def human_clarification(self, state: RequestState) -> Update:
        """Pauses for answers to the questions, and defers the other calls to a message of their own."""
        calls = messages.last_calls(state["messages"])
        replies = pauses.clarify([call for call in calls if call["name"] == CLARIFY])
        answers = [
            messages.answer(call, replies[call_id(call)]) if call_id(call) in replies else messages.deferred(call)
            for call in calls
        ]
        later = {call_id(call): messages.renamed(call) for call in calls if call_id(call) not in replies}
        asking = {call_id(later[id]): asked for id, asked in (state.get("asking") or {}).items() if id in later}
        again = [messages.again(list(later.values()))] if later else []
        return {"messages": [*answers, *again], "asking": asking}

    async def human_confirmation(self, state: RequestState) -> Update:
        """Pauses for approval of the calls that need it. If some are rejected or changed, the remaining ones get a
        message of their own; if none remains, the model receives the reasons."""
        calls = messages.last_calls(state["messages"])
        verdicts = pauses.confirm(calls, state.get("asking") or {})
        if all(verdict.verb is Verb.APPROVE for verdict in verdicts.values()):
            return {"approvals": [ApprovalOutcome(call_id=id, approved_as=id) for id in verdicts]}
        return _partly(calls, verdicts)

    async def use_tools(self, state: RequestState) -> Update:
        """Makes the calls of the last message, the approved ones first: if the gate asks, no other call is repeated.
        The answers are written once all are there, in the order of the calls."""
        calls = messages.last_calls(state["messages"])
        catalogue, message = await self._catalogue(), state["messages"][-1]
        calling = Calling(self.client, catalogue, state, self.inbox)
        invalid = message.additional_kwargs.get(messages.INVALID) or {}
        asking = _asking(catalogue, state.get("allowed_types") or [], message)
        for call in [*asking, *(call for call in calls if call not in asking)]:
            await calling.make(call, invalid.get(call_id(call)))
        if calling.elicitations:
            return {"results": calling.results, "elicitations": calling.elicitations, "answers": calling.answers}
        return {**_NO_CALLS, "messages": [calling.results[call_id(call)] for call in calls]}

    async def oauth_needed(self, state: RequestState) -> Update:
        """Asks the person the server's next question: a link or a form. The answer applies to all calls with the same
        question; they are repeated under their present approval."""
        elicitations = state.get("elicitations") or []
        answer = pauses.elicit(elicitations[0]["value"])
        answers = {id: dict(by_key) for id, by_key in (state.get("answers") or {}).items()}
        for elicitation in elicitations:
            if elicitation["value"] == elicitations[0]["value"]:
                answers.setdefault(elicitation["call_id"], {})[elicitation["key"]] = answer
        return {"answers": answers, "elicitations": []}

    def after_executor(self, state: RequestState) -> str:
        """Clarification precedes confirmation, confirmation precedes other tools."""
        calls = messages.last_calls(state["messages"])
        if any(call["name"] == CLARIFY for call in calls):
            return "human_clarification"
        return _confirmed_or_used(state) if calls else END

    def after_clarification(self, state: RequestState) -> str:
        return _confirmed_or_used(state) if messages.last_calls(state["messages"]) else "task_executor"

    def after_confirmation(self, state: RequestState) -> str:
        return "use_tools" if messages.last_calls(state["messages"]) else "task_executor"

    def after_tools(self, state: RequestState) -> str:
        return "oauth_needed" if state.get("elicitations") else "task_executor"

    async def _catalogue(self) -> Catalogue:
        return Catalogue(await self.client.tools(), self.rules)

    async def _routed(self, history: Sequence[AnyMessage], types: Sequence[str]) -> list[str]:
        """The allowed types. An answer without known types allows none."""
        model = self.router.with_structured_output(prompts.routing_schema(types), method="function_calling")
        silent = model.with_config(tags=[TAG_NOSTREAM])  # its output is for the graph only
        texts = [
            message
            for message in history
            if isinstance(message, HumanMessage) or (isinstance(message, AIMessage) and message.text)
        ]
        plain = [type(message)(content=message.content) for message in texts[-_SEEN_BY_ROUTER:]]
        answer = await _invoke(silent, [SystemMessage(prompts.router(types)), *plain])
        named = answer.get("types") if isinstance(answer, dict) else None
        return sorted({kind for kind in named if isinstance(kind, str)} & set(types)) if isinstance(named, list) else []


setattr(Nodes.use_tools, MARK, True)  # marks the graph as gated for the server


def _asking(catalogue: Catalogue, allowed: Sequence[str], message: AnyMessage) -> list[ToolCall]:
    """The calls of the message that need approval."""
    invalid = message.additional_kwargs.get(messages.INVALID) or {}
    calls = messages.last_calls([message])
    return [call for call in calls if catalogue.asks(call["name"], allowed) and call_id(call) not in invalid]


def _details(catalogue: Catalogue, call: ToolCall, history: Sequence[AnyMessage]) -> AskedCall:
    """Details for the reviewer of a call."""
    tool = catalogue.tool(call["name"])
    return {"schema": tool.parameters if tool else None, "about": subjects.about(call["args"], history)}


def _confirmed_or_used(state: RequestState) -> str:
    return "human_confirmation" if state.get("asking") else "use_tools"


def _partly(calls: Sequence[ToolCall], verdicts: dict[str, Verdict]) -> Update:
    """The update if some calls are rejected or changed. Calls that need no approval are deferred with the rest."""
    answers: list[ToolMessage] = []
    remaining: list[ToolCall] = []
    approvals: list[ApprovalOutcome] = []
    rejected: list[RejectedToolFeedback] = []
    for call in calls:
        verdict = verdicts.get(call_id(call))
        if verdict is not None and verdict.verb is Verb.REJECT:
            feedback = verdict.message or ""
            answers.append(messages.rejected(call, feedback))
            rejected.append({"call_id": call_id(call), "tool_name": call["name"], "feedback": feedback})
            continue
        changed = verdict.args if verdict is not None and verdict.verb is Verb.EDIT else None
        answers.append(messages.deferred(call, changed=changed is not None))
        remaining.append(messages.renamed(call, changed))
        if verdict is not None:
            approvals.append({"call_id": call_id(remaining[-1]), "approved_as": call_id(call)})
    again = [messages.again(remaining)] if remaining else []
    return {"messages": [*answers, *again], "approvals": approvals, "rejected": rejected}


async def _invoke(model: Runnable[LanguageModelInput, Any], prompt: list[Any]) -> Any:
    try:
        return await model.ainvoke(prompt)
    except Exception as error:  # providers' packages raise any type
        log.warning("call model failed", exc_info=error)
        raise ModelFailed(f"the model failed ({type(error).__name__})") from error
