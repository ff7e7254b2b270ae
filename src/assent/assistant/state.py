"""The state of the assistant's graph, and the values of its pauses (docs/dialects.md).

Plain data only: a checkpoint must be readable by any later version. The state is not trusted: the gate decides whether
a call may run.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from assent.assistant.mcp.questions import PausedCall

PendingKind = Literal["clarification", "confirmation", "oauth_url", "form_elicitation", "no_action_needed"]


class ToolCallInfo(TypedDict):
    """A tool call as people see it. `args_schema` validates changed arguments."""

    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    args_schema: NotRequired[dict[str, Any]]
    description: NotRequired[str]


class ClarificationInfo(TypedDict):
    """A question that is answered with text."""

    call_id: str
    question: str
    context: str


class AskedCall(TypedDict):
    """Details of a call that needs approval: the schema of its arguments, and a description of its object."""

    schema: dict[str, Any] | None
    about: str | None


class RejectedToolFeedback(TypedDict):
    """A person's reason for a rejection."""

    call_id: str
    tool_name: str
    feedback: str


class ApprovalOutcome(TypedDict):
    """An approved call of the last message. `call_id` is its id there; `approved_as` is the id in the approval and in
    its grant."""

    call_id: str
    approved_as: str


class PendingClarification(TypedDict):
    """The value of the pause for a text answer."""

    kind: Literal["clarification"]
    clarifications: list[ClarificationInfo]


class PendingApproval(TypedDict):
    """The value of the pause for approval. `gate` restricts the answer to people who may decide."""

    kind: Literal["confirmation"]
    tool_calls: list[ToolCallInfo]
    gate: str


class PendingAction(TypedDict):
    """The kind of answer that the request waits for, and the calls that it is about."""

    kind: PendingKind
    call_ids: list[str]


class PendingElicitation(TypedDict):
    """A question of an MCP server that must be answered before a call continues. `value` is the value of the pause."""

    call_id: str
    key: str
    value: dict[str, Any]


class Usage(TypedDict):
    """The calls of the present request so far."""

    model_calls: int
    tool_calls: int


class RequestState(TypedDict):
    """The channels of the graph. All but `messages` refer to the present request or the last message's calls.

    `outcome` and `final_response` are set when the request has ended, `pending_action` while a person has to answer."""

    messages: Annotated[list[AnyMessage], add_messages]
    allowed_tool_types: NotRequired[list[str]]
    allowed_types: NotRequired[list[str]]  # in threads of earlier releases
    pending_action: NotRequired[PendingAction]
    approval_outcome: NotRequired[Literal["all_approved", "partial", "all_rejected"] | None]
    auth_url: NotRequired[str | None]
    final_response: NotRequired[str | None]
    outcome: NotRequired[str | None]
    usage: NotRequired[Usage]
    asking: NotRequired[dict[str, AskedCall]]
    rejected: NotRequired[list[RejectedToolFeedback]]
    approvals: NotRequired[list[ApprovalOutcome]]
    results: NotRequired[dict[str, ToolMessage]]
    elicitations: NotRequired[list[PendingElicitation]]
    paused: NotRequired[dict[str, PausedCall]]
    answers: NotRequired[dict[str, dict[str, Any]]]


def allowed_types(state: RequestState) -> list[str]:
    return state.get("allowed_tool_types") or state.get("allowed_types") or []
