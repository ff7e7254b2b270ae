"""`ApprovalMiddleware`: the gate of an agent made by `create_agent`.

It wraps `wrap_tool_call`, last in the list and so directly before the tool: nothing in between can change the approved
call. Each call of a model's turn is its own task there, so each is asked, answered and made separately.
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

from assent.gate import results
from assent.gate.injection import set_by_graph
from assent.gate.passing import adrive, drive, through
from assent.gate.places import Place, akeeper_for, checked, keeper_for
from assent.gate.questions import VERBS, Asking, args_schema, description, prohibition, rejection
from assent.gate.task import Task
from assent.kernel.canonical import Json
from assent.review.model.questions import Verb, Verdict

Handler = Callable[[ToolCallRequest], ToolMessage | Command[Any]]
AsyncHandler = Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]

EDIT_NOTICE = (
    "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you "
    "produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call."
)


class GatedState(AgentState[Any]):
    """The channel that tells a server that this graph has a gate; nothing is ever written to it."""

    assent_gate: NotRequired[Annotated[bool, PrivateStateAttr]]


class ApprovalMiddleware(AgentMiddleware[GatedState, Any, Any]):
    state_schema = GatedState

    def __init__(
        self,
        interrupt_on: Mapping[str, bool | InterruptOnConfig] | None = None,
        *,
        description_prefix: str = "Tool execution requires approval",
        edit_notice: str | None = EDIT_NOTICE,
        inbox: Place | None = None,
        idempotent: Collection[str] = (),
        as_hitl_request: bool = False,
    ) -> None:
        """Every tool needs approval, except those that `interrupt_on` sets to False and those that the policy in force
        allows. `True` and a config of `allowed_decisions` have the same meaning as in `HumanInTheLoopMiddleware`.

        `inbox` stores approvals if no server runs the graph: the address of an Assent server, a `postgresql://` URL, a
        file, or an inbox. The default is the server that the settings name, else `.assent/gate.db`. Tools in
        `idempotent` pass `current_grant().id` on as an idempotency key, and are retried automatically after a crash.
        With `as_hitl_request`, questions are those of `HumanInTheLoopMiddleware`, for front ends that know no others.
        """
        super().__init__()
        self.interrupt_on = dict(interrupt_on or {})
        self.description_prefix = description_prefix
        self.edit_notice = edit_notice
        self.idempotent = frozenset(idempotent)
        self.as_hitl_request = as_hitl_request
        self._inbox = checked(inbox)
        self._schemas: dict[str, tuple[Any, Any, Json]] = {}
        for name, config in self.interrupt_on.items():
            _check(name, config)

    def schema_of(self, name: str, tool: Any) -> Json:
        """The schema of the tool's arguments. LangChain makes it anew each time, which takes longer than most steps of
        the gate."""
        known_tool, known_args, schema = self._schemas.get(name, (None, None, None))
        written = getattr(tool, "args_schema", None)
        if known_tool is None or known_tool is not tool or known_args is not written:
            schema = args_schema(tool)
            self._schemas[name] = (tool, written, schema)
        return schema

    def wrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> ToolMessage | Command[Any]:
        task, keeper, call = Task.current(), keeper_for(self._inbox), _ToolCall(self, request)
        with task.turn():
            steps = through(task, keeper, call, call.args, call.id)
            result: ToolMessage | Command[Any] = drive(steps, keeper, lambda args: call.made(handler, args))
            return result

    async def awrap_tool_call(self, request: ToolCallRequest, handler: AsyncHandler) -> ToolMessage | Command[Any]:
        task, keeper, call = Task.current(), await akeeper_for(self._inbox), _ToolCall(self, request)
        async with task.aturn():
            steps = through(task, keeper, call, call.args, call.id)
            result: ToolMessage | Command[Any] = await adrive(steps, keeper, lambda args: call.amade(handler, args))
            return result


class _ToolCall:
    """One call of the model at the gate."""

    def __init__(self, middleware: ApprovalMiddleware, request: ToolCallRequest) -> None:
        call = request.tool_call
        self.id, self.name = call["id"] or "", call["name"]
        if not self.id:
            raise ValueError(f"the call of {self.name} has no id, so no approval could be bound to it")
        self._not_models = set_by_graph(request.tool)
        self.args: Json = {name: value for name, value in call["args"].items() if name not in self._not_models}
        self.idempotent = self.name in middleware.idempotent
        self._middleware = middleware
        self._request = request.override(tool_call={**call, "args": self.args})  # also for `when` and descriptions
        self._config = middleware.interrupt_on.get(self.name)
        self.listed = self._listed()

    def _listed(self) -> bool | None:
        if isinstance(self._config, bool | None):
            return self._config
        when = self._config.get("when")
        return when is None or bool(when(self._request))

    def asking(self) -> Asking:
        allowed = self._config["allowed_decisions"] if isinstance(self._config, Mapping) else VERBS
        schema = self._middleware.schema_of(self.name, self._request.tool)
        return Asking(self._description(schema), allowed, schema, self._middleware.as_hitl_request)

    def declined(self, verdict: Verdict) -> ToolMessage:
        if verdict.verb is Verb.RESPOND:
            return self._message(verdict.message or "", "success")
        return self._message(rejection(self.name, self.id, verdict.message), "error")

    def forbidden(self, rule: str) -> ToolMessage:
        return self._message(prohibition(self.name, rule), "error")

    def edited(self, result: Any, args: Json) -> Any:
        """Adds a notice for the model, as LangChain's own middleware does."""
        notice = self._middleware.edit_notice
        if notice is None or not isinstance(result, ToolMessage) or not isinstance(result.content, str):
            return result
        ran = f"{notice} Executed instead: {self.name} with arguments {json.dumps(args, default=str)}."
        return result.model_copy(update={"content": f"{ran}\n\nTool response:\n{result.content}"})

    def commented(self, result: Any, comments: str) -> Any:
        return results.with_comments(result, comments)

    def again(self, recorded: Json) -> Any:
        text = results.settled(recorded)
        return results.restored(recorded) if text is None else self._message(text, "success")

    def made(self, handler: Handler, args: Json) -> ToolMessage | Command[Any]:
        return self._refused(args) or handler(self._with_args(args))

    async def amade(self, handler: AsyncHandler, args: Json) -> ToolMessage | Command[Any]:
        return self._refused(args) or await handler(self._with_args(args))

    def _with_args(self, args: Json) -> ToolCallRequest:
        if args is self.args:
            return self._request
        return self._request.override(tool_call={**self._request.tool_call, "args": args})

    def _refused(self, args: Json) -> ToolMessage | None:
        """Rejects an edit of an argument that the graph sets: the edit would be shown and have no effect."""
        named = sorted(self._not_models & args.keys())
        if not named:
            return None
        return self._message(f"`{self.name}` was not executed: only the graph sets {', '.join(named)}.", "error")

    def _description(self, schema: Json) -> str:
        text = self._config.get("description") if isinstance(self._config, Mapping) else None
        if callable(text):
            return text(self._request.tool_call, self._request.state, get_runtime())
        return text or description(self._middleware.description_prefix, self.name, self.args, schema)

    def _message(self, content: str, status: Literal["success", "error"]) -> ToolMessage:
        return ToolMessage(content, name=self.name, tool_call_id=self.id, status=status)


def _check(name: str, config: bool | InterruptOnConfig) -> None:
    if isinstance(config, bool):
        return
    unknown = sorted(set(config.get("allowed_decisions") or ()) - set(VERBS))
    if unknown or not config.get("allowed_decisions"):
        raise ValueError(f"interrupt_on[{name!r}]: allowed_decisions must name some of {', '.join(VERBS)}")
