"""The six nodes of the assistant's graph, and where each leads.

A node that pauses does nothing before its pause, because it starts again from its beginning.
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

from assent.assistant import messages as conversation
from assent.assistant import pauses, prompts, subjects
from assent.assistant.calling import Calling
from assent.assistant.mcp import McpClient
from assent.assistant.messages import call_id
from assent.assistant.models import ModelFailed
from assent.assistant.state import ApprovalOutcome, AskedCall, RejectedToolFeedback, RequestState
from assent.assistant.tools import CLARIFY, Catalogue, Rules
from assent.domain.questions import Verb, Verdict
from assent.gate.graphs import MARK
from assent.gate.keeper import Keeper

log = logging.getLogger(__name__)

Update = dict[str, Any]

_NO_CALLS: Update = {"asking": {}, "approvals": [], "results": {}, "elicitations": [], "answers": {}}
_SEEN_BY_ROUTER = 6
"""How many messages in words the router sees, the request among them."""


@dataclass(frozen=True)
class Nodes:
    """`inbox` is where grants are kept where no server runs the graph."""

    router: BaseChatModel
    executor: BaseChatModel
    client: McpClient
    rules: Rules = field(default_factory=Rules)
    inbox: Keeper | None = None

    async def policy_router(self, state: RequestState) -> Update:
        """Decides which types of tools the request may use. What it does not name cannot be used."""
        repaired = conversation.repaired(state["messages"])
        types = (await self._catalogue()).types
        allowed = await self._routed(state["messages"], types) if types else []
        update = {**_NO_CALLS, "rejected": [], "allowed_types": allowed}
        return {**update, "messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *repaired]} if repaired else update

    async def task_executor(self, state: RequestState) -> Update:
        """Asks the model what to do next, and notes what a person has to agree to: from here to the tools no node needs
        the server, so that one that is down loses no answer."""
        catalogue, allowed = await self._catalogue(), state.get("allowed_types") or []
        bound = catalogue.bound(allowed)
        told = SystemMessage(prompts.executor(CLARIFY, datetime.now().astimezone()))
        answer = await _answered(self.executor.bind_tools(bound), [told, *state["messages"]])
        said = conversation.normalised(answer, state["messages"])
        asked = _asking(catalogue, allowed, said)
        asking = {call_id(call): _told(catalogue, call, state["messages"]) for call in asked}
        return {**_NO_CALLS, "messages": [said], "asking": asking}

    async def human_clarification(self, state: RequestState) -> Update:
        """Has the questions answered, and puts the other calls of the message off to one of their own."""
        calls = conversation.last_calls(state["messages"])
        said = pauses.clarify([call for call in calls if call["name"] == CLARIFY])
        answers = [
            conversation.said(call, said[call_id(call)]) if call_id(call) in said else conversation.deferred(call)
            for call in calls
        ]
        later = {call_id(call): conversation.renamed(call) for call in calls if call_id(call) not in said}
        told = {call_id(later[id]): one for id, one in (state.get("asking") or {}).items() if id in later}
        again = [conversation.again(list(later.values()))] if later else []
        return {"messages": [*answers, *again], "asking": told}

    async def human_confirmation(self, state: RequestState) -> Update:
        """Has the calls approved that need it. Where not all of them run as they are, those that run get a message of
        their own; where none does, the model hears why."""
        calls = conversation.last_calls(state["messages"])
        verdicts = pauses.confirm(calls, state.get("asking") or {})
        if all(verdict.verb is Verb.APPROVE for verdict in verdicts.values()):
            return {"approvals": [ApprovalOutcome(call_id=id, approved_as=id) for id in verdicts]}
        return _partly(calls, verdicts)

    async def use_tools(self, state: RequestState) -> Update:
        """Makes the calls of the last message, the approved ones first: should the gate ask, nothing else is made
        twice. Their answers are written once all are there, so that they stand in the order of the calls."""
        calls = conversation.last_calls(state["messages"])
        catalogue, message = await self._catalogue(), state["messages"][-1]
        calling = Calling(self.client, catalogue, state, self.inbox)
        invalid = message.additional_kwargs.get(conversation.INVALID) or {}
        asking = _asking(catalogue, state.get("allowed_types") or [], message)
        for call in [*asking, *(call for call in calls if call not in asking)]:
            await calling.make(call, invalid.get(call_id(call)))
        if calling.elicitations:
            return {"results": calling.results, "elicitations": calling.elicitations, "answers": calling.answers}
        return {**_NO_CALLS, "messages": [calling.results[call_id(call)] for call in calls]}

    async def oauth_needed(self, state: RequestState) -> Update:
        """Puts the server's next question to the person: a link to follow, or a form. All calls that wait for the same
        have their answer by it, and are made again under the approval they have."""
        elicitations = state.get("elicitations") or []
        answer = pauses.elicit(elicitations[0]["value"])
        answers = {id: dict(given) for id, given in (state.get("answers") or {}).items()}
        for one in elicitations:
            if one["value"] == elicitations[0]["value"]:
                answers.setdefault(one["call_id"], {})[one["key"]] = answer
        return {"answers": answers, "elicitations": []}

    def after_executor(self, state: RequestState) -> str:
        """Clarification goes before confirmation, confirmation before plain tools."""
        calls = conversation.last_calls(state["messages"])
        if any(call["name"] == CLARIFY for call in calls):
            return "human_clarification"
        return _confirmed_or_used(state) if calls else END

    def after_clarification(self, state: RequestState) -> str:
        return _confirmed_or_used(state) if conversation.last_calls(state["messages"]) else "task_executor"

    def after_confirmation(self, state: RequestState) -> str:
        return "use_tools" if conversation.last_calls(state["messages"]) else "task_executor"

    def after_tools(self, state: RequestState) -> str:
        return "oauth_needed" if state.get("elicitations") else "task_executor"

    async def _catalogue(self) -> Catalogue:
        return Catalogue(await self.client.tools(), self.rules)

    async def _routed(self, said: Sequence[AnyMessage], types: Sequence[str]) -> list[str]:
        """An answer that names nothing known allows nothing."""
        model = self.router.with_structured_output(prompts.routing_schema(types), method="function_calling")
        silent = model.with_config(tags=[TAG_NOSTREAM])  # what it writes is for the graph, and for no listener
        words = [one for one in said if isinstance(one, HumanMessage) or (isinstance(one, AIMessage) and one.text)]
        plain = [type(one)(content=one.content) for one in words[-_SEEN_BY_ROUTER:]]
        answer = await _answered(silent, [SystemMessage(prompts.router(types)), *plain])
        named = answer.get("types") if isinstance(answer, dict) else None
        return sorted({one for one in named if isinstance(one, str)} & set(types)) if isinstance(named, list) else []


setattr(Nodes.use_tools, MARK, True)  # by which a server knows that the graph has our gate in it


def _asking(catalogue: Catalogue, allowed: Sequence[str], message: AnyMessage) -> list[ToolCall]:
    """The calls of the message that a person has to agree to."""
    invalid = message.additional_kwargs.get(conversation.INVALID) or {}
    calls = conversation.last_calls([message])
    return [call for call in calls if catalogue.asks(call["name"], allowed) and call_id(call) not in invalid]


def _told(catalogue: Catalogue, call: ToolCall, said: Sequence[AnyMessage]) -> AskedCall:
    """What its reviewer is told beside the call itself."""
    tool = catalogue.tool(call["name"])
    return {"schema": tool.parameters if tool else None, "about": subjects.about(call["args"], said)}


def _confirmed_or_used(state: RequestState) -> str:
    return "human_confirmation" if state.get("asking") else "use_tools"


def _partly(calls: Sequence[ToolCall], verdicts: dict[str, Verdict]) -> Update:
    """What becomes of calls of which some are rejected or changed. Those that nobody had to be asked about go along."""
    answers: list[ToolMessage] = []
    going: list[ToolCall] = []
    approvals: list[ApprovalOutcome] = []
    rejected: list[RejectedToolFeedback] = []
    for call in calls:
        verdict = verdicts.get(call_id(call))
        if verdict is not None and verdict.verb is Verb.REJECT:
            feedback = verdict.message or ""
            answers.append(conversation.rejected(call, feedback))
            rejected.append({"call_id": call_id(call), "tool_name": call["name"], "feedback": feedback})
            continue
        changed = verdict.args if verdict is not None and verdict.verb is Verb.EDIT else None
        answers.append(conversation.deferred(call, changed=changed is not None))
        going.append(conversation.renamed(call, changed))
        if verdict is not None:
            approvals.append({"call_id": call_id(going[-1]), "approved_as": call_id(call)})
    again = [conversation.again(going)] if going else []
    return {"messages": [*answers, *again], "approvals": approvals, "rejected": rejected}


async def _answered(model: Runnable[LanguageModelInput, Any], said: list[Any]) -> Any:
    try:
        return await model.ainvoke(said)
    except Exception as error:  # whatever a provider's package raises
        log.warning("the model failed", exc_info=error)
        raise ModelFailed(f"the model failed ({type(error).__name__})") from error
