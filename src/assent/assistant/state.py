"""What the assistant's graph remembers, and the values with which it pauses (docs/dialects.md).

Plain data throughout: a checkpoint must be readable by any later version. Nothing in it is believed where it counts:
whether a call may run is decided by the gate, never by what stands here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

PendingKind = Literal["clarification", "confirmation", "oauth_url", "form_elicitation", "no_action_needed"]


class ToolCallInfo(TypedDict):
    """A tool call as people see it. `args_schema` is what changed arguments must fit."""

    call_id: str
    tool_name: str
    arguments: dict[str, Any]
    args_schema: NotRequired[dict[str, Any]]
    description: NotRequired[str]


class ClarificationInfo(TypedDict):
    """A question in words."""

    call_id: str
    question: str
    context: str


class AskedCall(TypedDict):
    """What is known of a call that a person has to agree to: the schema of its arguments, and what it is about."""

    schema: dict[str, Any] | None
    about: str | None


class RejectedToolFeedback(TypedDict):
    """What a person said instead of yes."""

    call_id: str
    tool_name: str
    feedback: str


class ApprovalOutcome(TypedDict):
    """A call of the last message that was approved. `call_id` is its id there; `approved_as` the one under which it was
    asked about, which is the one that its grant speaks of."""

    call_id: str
    approved_as: str


class PendingClarification(TypedDict):
    """The value of the pause for an answer in words."""

    kind: Literal["clarification"]
    clarifications: list[ClarificationInfo]


class PendingApproval(TypedDict):
    """The value of the pause for approval. `gate` says that only someone who may decide can answer it."""

    kind: Literal["confirmation"]
    tool_calls: list[ToolCallInfo]
    gate: str


class PendingElicitation(TypedDict):
    """What an MCP server wants of the person before a call can go on. `value` is the value of the pause."""

    call_id: str
    key: str
    value: dict[str, Any]


class RequestState(TypedDict):
    """The channels of the graph. All but `messages` speak of the request in hand, or of the last message's calls."""

    messages: Annotated[list[AnyMessage], add_messages]
    allowed_types: NotRequired[list[str]]
    asking: NotRequired[dict[str, AskedCall]]
    rejected: NotRequired[list[RejectedToolFeedback]]
    approvals: NotRequired[list[ApprovalOutcome]]
    results: NotRequired[dict[str, ToolMessage]]
    elicitations: NotRequired[list[PendingElicitation]]
    answers: NotRequired[dict[str, dict[str, Any]]]
