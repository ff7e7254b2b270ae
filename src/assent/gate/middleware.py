"""`ApprovalMiddleware`: the gate of an agent made by `create_agent`.

It stands in `wrap_tool_call`, last in the list and so directly before the tool: nothing between the two can change what
was approved. Each call of a model's turn is a task of its own there, so each is asked, answered and made by itself.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Annotated, Any, Literal, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, InterruptOnConfig
from langchain.agents.middleware.types import PrivateStateAttr, ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.runtime import get_runtime
from langgraph.types import Command

from assent.domain.canonical import Json
from assent.domain.questions import Verb, Verdict
from assent.gate import results
from assent.gate.inbox import keeper_for
from assent.gate.keeper import Keeper
from assent.gate.passing import adrive, drive, through
from assent.gate.questions import VERBS, Asking, args_schema, prohibition, rejection
from assent.gate.task import Task

Handler = Callable[[ToolCallRequest], ToolMessage | Command[Any]]
AsyncHandler = Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]

EDIT_NOTICE = (
    "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you "
    "produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call."
)


class GatedState(AgentState[Any]):
    """The channel by which a server knows that this graph has a gate; nothing is ever written to it."""

    assent_gate: NotRequired[Annotated[bool, PrivateStateAttr]]


class ApprovalMiddleware(AgentMiddleware[GatedState, Any, Any]):
    state_schema = GatedState

    def __init__(
        self,
        interrupt_on: Mapping[str, bool | InterruptOnConfig] | None = None,
        *,
        description_prefix: str = "Tool execution requires approval",
        edit_notice: str | None = EDIT_NOTICE,
        inbox: Keeper | None = None,
        idempotent: Collection[str] = (),
    ) -> None:
        """Every tool waits for a person, but for those that `interrupt_on` gives as False and those that the policy in
        force lets run. `True` and a config of `allowed_decisions` mean what they mean to `HumanInTheLoopMiddleware`.

        `inbox` is where approvals are kept where no server runs the graph; a `LocalInbox` in `.assent/gate.db` if none
        is given. Tools in `idempotent` give `current_grant().id` to whom they call, and are tried again by themselves
        after a crash.
        """
        super().__init__()
        self.interrupt_on = dict(interrupt_on or {})
        self.description_prefix = description_prefix
        self.edit_notice = edit_notice
        self.idempotent = frozenset(idempotent)
        self._inbox = inbox
        for name, config in self.interrupt_on.items():
            _check(name, config)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> ToolMessage | Command[Any]:
        task, keeper, call = Task.current(), keeper_for(self._inbox), _ToolCall(self, request)
        with task.turn():
            steps = through(task, keeper, call, call.args, call.id)
            result: ToolMessage | Command[Any] = drive(steps, keeper, lambda args: handler(call.with_args(args)))
            return result

    async def awrap_tool_call(self, request: ToolCallRequest, handler: AsyncHandler) -> ToolMessage | Command[Any]:
        task, keeper, call = Task.current(), keeper_for(self._inbox), _ToolCall(self, request)
        async with task.aturn():
            steps = through(task, keeper, call, call.args, call.id)
            result: ToolMessage | Command[Any] = await adrive(steps, keeper, lambda args: handler(call.with_args(args)))
            return result


class _ToolCall:
    """One call of the model that stands before the gate."""

    def __init__(self, middleware: ApprovalMiddleware, request: ToolCallRequest) -> None:
        call = request.tool_call
        self.id, self.name = call["id"] or "", call["name"]
        if not self.id:
            raise ValueError(f"the call of {self.name} has no id, so no approval could be bound to it")
        self.args: Json = call["args"]
        self.idempotent = self.name in middleware.idempotent
        self._middleware = middleware
        self._request = request
        self._config = middleware.interrupt_on.get(self.name)
        self.conditional = isinstance(self._config, Mapping) and "when" in self._config
        self.listed = self._listed()

    def _listed(self) -> bool | None:
        if isinstance(self._config, bool | None):
            return self._config
        when = self._config.get("when")
        return when is None or bool(when(self._request))

    def asking(self) -> Asking:
        allowed = self._config["allowed_decisions"] if isinstance(self._config, Mapping) else VERBS
        return Asking(self._description(), allowed, args_schema(self._request.tool))

    def declined(self, verdict: Verdict) -> ToolMessage:
        if verdict.verb is Verb.RESPOND:
            return self._message(verdict.message or "", "success")
        return self._message(rejection(self.name, self.id, verdict.message), "error")

    def forbidden(self, rule: str) -> ToolMessage:
        return self._message(prohibition(self.name, rule), "error")

    def edited(self, result: Any, args: Json) -> Any:
        """The model is told, as LangChain's own middleware tells it."""
        notice = self._middleware.edit_notice
        if notice is None or not isinstance(result, ToolMessage) or not isinstance(result.content, str):
            return result
        ran = f"{notice} Executed instead: {self.name} with arguments {json.dumps(args, default=str)}."
        return result.model_copy(update={"content": f"{ran}\n\nTool response:\n{result.content}"})

    def again(self, recorded: Json) -> Any:
        said = results.settled(recorded)
        return results.restored(recorded) if said is None else self._message(said, "success")

    def with_args(self, args: Json) -> ToolCallRequest:
        if args is self.args:
            return self._request
        return self._request.override(tool_call={**self._request.tool_call, "args": args})

    def _description(self) -> str:
        said = self._config.get("description") if isinstance(self._config, Mapping) else None
        if callable(said):
            return said(self._request.tool_call, self._request.state, get_runtime())
        return said or f"{self._middleware.description_prefix}\n\nTool: {self.name}\nArgs: {self.args}"

    def _message(self, content: str, status: Literal["success", "error"]) -> ToolMessage:
        return ToolMessage(content, name=self.name, tool_call_id=self.id, status=status)


def _check(name: str, config: bool | InterruptOnConfig) -> None:
    if isinstance(config, bool):
        return
    unknown = sorted(set(config.get("allowed_decisions") or ()) - set(VERBS))
    if unknown or not config.get("allowed_decisions"):
        raise ValueError(f"interrupt_on[{name!r}]: allowed_decisions must name some of {', '.join(VERBS)}")
