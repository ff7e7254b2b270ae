"""The six nodes of the assistant's graph, and their edges.

A node that pauses has no effects before its pause, because it restarts from its beginning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.messages.modifier import RemoveMessage
from langchain_core.runnables import Runnable
from langgraph.constants import TAG_NOSTREAM
from langgraph.func import task
from langgraph.graph import END
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from assent.assistant import messages, pauses, prompts, replies, subjects
from assent.assistant.calling import Calling
from assent.assistant.failures import ModelFailed, UnusableReply
from assent.assistant.mcp.questions import PausedCall
from assent.assistant.mcp.servers import McpServers
from assent.assistant.messages import call_id
from assent.assistant.planner.dates.zone import machine_now
from assent.assistant.replies import Limits, Outcome
from assent.assistant.seals import seals_of
from assent.assistant.state import (
    ApprovalOutcome,
    AskedCall,
    PendingAction,
    PendingElicitation,
    RejectedToolFeedback,
    RequestState,
    Usage,
    allowed_types,
)
from assent.assistant.tools import CLARIFY, Catalogue, Rules
from assent.gate.graphs import MARK
from assent.gate.records import Keeper
from assent.review.model.questions import Verb, Verdict

log = logging.getLogger(__name__)

Update = dict[str, Any]

_NO_ACTION: PendingAction = {"kind": "no_action_needed", "call_ids": []}
_NO_CALLS: Update = {
    "asking": {},
    "approvals": [],
    "results": {},
    "elicitations": [],
    "paused": {},
    "answers": {},
    "pending_action": _NO_ACTION,
    "auth_url": None,
}
_NEW_REQUEST: Update = {
    **_NO_CALLS,
    "rejected": [],
    "approval_outcome": None,
    "final_response": None,
    "outcome": None,
    "usage": {"model_calls": 0, "tool_calls": 0},
}
_SEEN_BY_ROUTER = 6
"""Number of text messages that the router sees, including the request."""
_ROUTER_TRIES = 2
_OVER_THE_LIMIT = "Error: the call was not made, because the request reached its limit of tool calls."


@dataclass(frozen=True)
class Nodes:
    """`inbox` stores grants if no server runs the graph. `now` is the clock of the prompts."""

    router: BaseChatModel
    executor: BaseChatModel
    client: McpServers
    rules: Rules = field(default_factory=Rules)
    inbox: Keeper | None = None
    limits: Limits = field(default_factory=Limits)
    now: Callable[[], datetime] = machine_now

    async def policy_router(self, state: RequestState) -> Update:
        """Decides which types of tools the request may use. All others are refused."""
        repaired = messages.repaired(state["messages"])
        await self._sign_in()
        types = (await self._catalogue()).types
        allowed = await self._routed(state["messages"], types) if types else []
        update = {**_NEW_REQUEST, "allowed_tool_types": allowed}
        return {**update, "messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *repaired]} if repaired else update

    async def task_executor(self, state: RequestState) -> Update:
        """Asks the model for the next step, and records the calls that need approval: no node from here to the tools
        needs the MCP server, so that no answer is lost while it is down."""
        usage = state.get("usage") or {"model_calls": 0, "tool_calls": 0}
        if usage["model_calls"] >= self.limits.model_calls:
            return _ended(replies.stopped(Outcome.MODEL_CALLS, self.limits.model_calls), Outcome.MODEL_CALLS)
        catalogue, allowed = await self._catalogue(), allowed_types(state)
        prompt = SystemMessage(prompts.executor(CLARIFY, self.now()))
        reply = await self._replied(
            catalogue.bound(allowed), [prompt, *messages.latest(state["messages"], self.limits.messages)]
        )
        if (outcome := replies.outcome_of(reply)) is not Outcome.COMPLETED:
            return _ended(replies.completed(reply, outcome), outcome)
        message = _checked(catalogue, allowed, messages.normalised(reply, state["messages"]))
        calls = messages.last_calls([message])
        if not calls:
            return _ended(message, Outcome.COMPLETED)
        used = usage["tool_calls"] + sum(call["name"] != CLARIFY for call in calls)
        if used > self.limits.tool_calls:
            return _cut_short(message, calls, self.limits.tool_calls)
        asking = {
            call_id(call): _details(catalogue, call, state["messages"]) for call in _asking(catalogue, allowed, message)
        }
        counted: Usage = {"model_calls": usage["model_calls"] + 1, "tool_calls": used}
        pending = _pending(calls, asking)
        return {**_NO_CALLS, "messages": [message], "asking": asking, "usage": counted, "pending_action": pending}

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
        pending = _pending(list(later.values()), asking)
        return {"messages": [*answers, *again], "asking": asking, "pending_action": pending}

    async def human_confirmation(self, state: RequestState) -> Update:
        """Pauses for approval of the calls that need it. If some are rejected or changed, the remaining ones get a
        message of their own; if none remains, the model receives the reasons."""
        calls = messages.last_calls(state["messages"])
        verdicts = pauses.confirm(calls, state.get("asking") or {})
        if all(verdict.verb is Verb.APPROVE for verdict in verdicts.values()):
            approvals = [ApprovalOutcome(call_id=id, approved_as=id) for id in verdicts]
            return {"approvals": approvals, "approval_outcome": "all_approved", "pending_action": _NO_ACTION}
        return _partly(calls, verdicts)

    async def use_tools(self, state: RequestState) -> Update:
        """Makes the calls of the last message at once. The answers are written once all are there, in the order of the
        calls. If some fail to be made, the results of the others are kept, and those are tried once more."""
        calls = messages.last_calls(state["messages"])
        calling = Calling(self.client, await self._catalogue(), state, self.inbox, await seals_of(self.inbox))
        invalid = state["messages"][-1].additional_kwargs.get(messages.INVALID) or {}
        errors = await calling.make(calls, invalid)
        so_far = {"results": calling.results, "answers": calling.answers, "paused": calling.paused}
        if calling.elicitations:
            return {**so_far, "elicitations": calling.elicitations, **_elicited(calling.elicitations)}
        if errors:
            if len(calling.results) == len(state.get("results") or {}):
                raise errors[0]
            log.warning("make %d calls of a message failed: trying again", len(errors))
            return so_far
        return {**_NO_CALLS, "messages": [calling.results[call_id(call)] for call in calls]}

    async def oauth_needed(self, state: RequestState) -> Update:
        """Asks the person the server's next question: a link or a form. The answer applies to all calls with the same
        question; they are repeated under their present approval."""
        elicitations = state.get("elicitations") or []
        answer = pauses.elicit(elicitations[0]["value"])
        answers = {id: dict(by_key) for id, by_key in (state.get("answers") or {}).items()}
        seals, paused = await seals_of(self.inbox), state.get("paused") or {}
        for elicitation in elicitations:
            if elicitation["value"] == elicitations[0]["value"]:
                id, key, value = elicitation["call_id"], elicitation["key"], elicitation["value"]
                answers.setdefault(id, {})[key] = seals.answered(paused.get(id), key, value, answer)
        return {"answers": answers, "elicitations": [], "pending_action": _NO_ACTION, "auth_url": None}

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
        if state.get("elicitations"):
            return "oauth_needed"
        return "use_tools" if messages.last_calls(state["messages"]) else "task_executor"

    async def _sign_in(self) -> None:
        """Pauses for the sign-ins that servers want before they list their tools. Without one, the request goes on
        without those tools."""
        declined = set[str]()
        while (wanted := await self.client.login(declined)) is not None:
            server, value = await _asked(*wanted)
            if pauses.elicit(value)["action"] != "accept":
                declined.add(server)

    async def _catalogue(self) -> Catalogue:
        return Catalogue(await self.client.tools(), self.rules)

    async def _replied(self, tools: list[dict[str, Any]], prompt: list[Any]) -> AIMessage:
        """The model's reply. An empty one is requested once more."""
        model = self.executor.bind_tools(tools)
        reply: AIMessage = await _invoke(model, prompt)
        if replies.outcome_of(reply) is not Outcome.EMPTY:
            return reply
        log.warning("model reply is empty: asking again")
        again: AIMessage = await _invoke(model, prompt)
        return again

    async def _routed(self, history: Sequence[AnyMessage], types: Sequence[str]) -> list[str]:
        """The allowed types. An unusable reply is requested once more; after that the request fails, because without
        tools the assistant would only pretend to work."""
        model = self.router.with_structured_output(prompts.routing_schema(types), method="function_calling")
        silent = model.with_config(tags=[TAG_NOSTREAM])  # its output is for the graph only
        texts = [
            message
            for message in history
            if isinstance(message, HumanMessage) or (isinstance(message, AIMessage) and message.text)
        ]
        plain = [type(message)(content=message.content) for message in texts[-_SEEN_BY_ROUTER:]]
        for _ in range(_ROUTER_TRIES):
            named = _named_types(await _invoke(silent, [SystemMessage(prompts.router(types)), *plain]), types)
            if named is not None:
                return named
            log.warning("router reply is unusable: it names no list of known tool types")
        raise UnusableReply("the router model's reply names no list of known tool types")


@task
async def _asked(server: str, question: PausedCall) -> tuple[str, dict[str, Any]]:
    """LangGraph keeps the result when the node restarts: an answer stays with the server that it was given for."""
    [value] = question["questions"].values()
    return server, value


setattr(Nodes.use_tools, MARK, True)  # marks the graph as gated for the server


def _named_types(answer: Any, types: Sequence[str]) -> list[str] | None:
    """The types that the router names; None if its answer is unusable. An empty list is an answer."""
    named = answer.get("types") if isinstance(answer, dict) else None
    if not isinstance(named, list):
        return None
    known = {kind for kind in named if isinstance(kind, str)} & set(types)
    return sorted(known) if known or not named else None


def _checked(catalogue: Catalogue, allowed: Sequence[str], message: AIMessage) -> AIMessage:
    """Marks the calls that cannot run: the model gets the problems instead of a person the question."""
    flaws: dict[str, str] = {}
    for call in message.tool_calls:
        tool = catalogue.usable(call["name"], allowed)
        if tool is not None and (flaw := tool.flaw(call["args"])):
            flaws[call_id(call)] = f"the call was not made: {flaw}"
    return messages.marked(message, flaws)


def _ended(message: AIMessage, outcome: Outcome) -> Update:
    return {**_NO_CALLS, "messages": [message], "outcome": str(outcome), "final_response": message.text}


def _cut_short(message: AIMessage, calls: Sequence[ToolCall], limit: int) -> Update:
    """Ends the request before these calls. Each gets an answer, as every call does."""
    answers = [
        messages.answer(call, "Error: not executed, the request reached its limit.", failed=True) for call in calls
    ]
    ended = _ended(replies.stopped(Outcome.TOOL_CALLS, limit), Outcome.TOOL_CALLS)
    return {**ended, "messages": [message, *answers, *ended["messages"]]}


def _pending(calls: Sequence[ToolCall], asking: Mapping[str, Any]) -> PendingAction:
    if questions := [call_id(call) for call in calls if call["name"] == CLARIFY]:
        return {"kind": "clarification", "call_ids": questions}
    return {"kind": "confirmation", "call_ids": list(asking)} if asking else _NO_ACTION


def _elicited(elicitations: Sequence[PendingElicitation]) -> Update:
    value = elicitations[0]["value"]
    ids = [elicitation["call_id"] for elicitation in elicitations if elicitation["value"] == value]
    return {"pending_action": {"kind": value["kind"], "call_ids": ids}, "auth_url": value.get("url")}


def _asking(catalogue: Catalogue, allowed: Sequence[str], message: AnyMessage) -> list[ToolCall]:
    """The calls of the message that need approval."""
    invalid = message.additional_kwargs.get(messages.INVALID) or {}
    calls = messages.last_calls([message])
    return [call for call in calls if catalogue.asks(call["name"], allowed) and call_id(call) not in invalid]


def _details(catalogue: Catalogue, call: ToolCall, history: Sequence[AnyMessage]) -> AskedCall:
    """Details for the reviewer of a call."""
    tool = catalogue.tool(call["name"])
    schema, thing = tool.parameters if tool else None, subjects.named_in(call["args"], history)
    if thing is None:
        return {"schema": schema, "about": None}
    return {"schema": subjects.annotated(schema, call["name"], call["args"], thing), "about": subjects.about(thing)}


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
    steered: Update = {"pending_action": _NO_ACTION, "approval_outcome": "partial" if approvals else "all_rejected"}
    return {**steered, "messages": [*answers, *again], "approvals": approvals, "rejected": rejected}


async def _invoke(model: Runnable[LanguageModelInput, Any], prompt: list[Any]) -> Any:
    try:
        return await model.ainvoke(prompt)
    except Exception as error:  # providers' packages raise any type
        log.warning("call model failed", exc_info=error)
        raise ModelFailed(f"the model failed ({type(error).__name__})") from error
