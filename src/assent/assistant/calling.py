"""Makes the calls of one message at once, through the gate at the MCP servers, and collects results and questions.

A call under a grant is made once. If the server needs input from the person first, the grant waits with the call, and
both continue after the answer: no approval is requested twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage

from assent.assistant import messages
from assent.assistant.failures import McpFailed, McpLost, McpTimeout
from assent.assistant.mcp.questions import LOST, Answers, Asked, PausedCall
from assent.assistant.mcp.results import Result
from assent.assistant.mcp.servers import McpServers
from assent.assistant.messages import call_id
from assent.assistant.seals import Seals
from assent.assistant.state import PendingElicitation, RequestState, allowed_types
from assent.assistant.tools import KEY, Catalogue, Tool
from assent.gate import results
from assent.gate.calls import pass_at_once, pass_call
from assent.gate.keeper import current_grant
from assent.gate.records import Keeper
from assent.gate.results import CutOff, Stopped
from assent.kernel import canonical
from assent.review.rows.gate import note_of


class Calling:
    """`results` are the answers so far, by call id; `elicitations` are the questions that block the other calls."""

    def __init__(
        self, client: McpServers, catalogue: Catalogue, state: RequestState, inbox: Keeper | None, seals: Seals
    ) -> None:
        self.results: dict[str, ToolMessage] = dict(state.get("results") or {})
        self.answers: dict[str, dict[str, Any]] = {id: dict(of) for id, of in (state.get("answers") or {}).items()}
        self.paused: dict[str, PausedCall] = dict(state.get("paused") or {})
        self.elicitations: list[PendingElicitation] = []
        self._client = client
        self._catalogue = catalogue
        self._inbox = inbox
        self._seals = seals
        self._allowed = allowed_types(state)
        self._approved_as = {outcome["call_id"]: outcome["approved_as"] for outcome in state.get("approvals") or []}

    async def make(self, calls: Sequence[ToolCall], invalid: Mapping[str, str]) -> list[Exception]:
        """Makes the calls that have no result yet, at once, and returns the errors of those that failed to be made."""
        passings = []
        for call in calls:
            if call_id(call) not in self.results and (tool := await self._tool_of(call, invalid)) is not None:
                passings.append(partial(self._make, call, tool))
        errors = await pass_at_once(passings)
        order = {call_id(call): place for place, call in enumerate(calls)}
        self.elicitations.sort(key=lambda elicitation: order[elicitation["call_id"]])
        return errors

    async def _tool_of(self, call: ToolCall, invalid: Mapping[str, str]) -> Tool | None:
        """Refuses invalid calls, and calls of tools that the request may not use."""
        id = call_id(call)
        tool = self._catalogue.usable(call["name"], self._allowed)
        if tool is None and id in self._approved_as and (failure := await self._client.missing(call["name"])):
            raise failure
        if id in invalid:
            self.results[id] = messages.answer(call, f"Error: {invalid[id]}", failed=True)
            return None
        if tool is None:
            self.results[id] = messages.answer(call, _unusable(call["name"]), failed=True)
        return tool

    async def _make(self, call: ToolCall, tool: Tool) -> None:
        id = call_id(call)
        await self._client.ready(tool.name, self.paused.get(id))  # before anything is marked as started
        message = await self._passed(call, tool)
        if message is not None:
            self.results[id] = message.model_copy(update={"tool_call_id": id, "id": None})

    async def _passed(self, call: ToolCall, tool: Tool) -> ToolMessage | None:
        """Makes the call once under its grant, or returns its recorded result. None if it has to wait."""
        lost: list[McpFailed] = []

        async def make(args: Any) -> ToolMessage:
            try:
                return await self._made(call, tool, args)
            except Asked as asked:
                raise Stopped(self._ask(call, asked)) from None
            except McpFailed as error:
                lost.append(error)
                raise _ending(error, tool) from None

        try:
            message: ToolMessage = await pass_call(
                tool.name,
                call["args"],
                self._approved_as.get(call_id(call), call_id(call)),
                make,
                listed=self._catalogue.rules.asks(tool),
                idempotent=tool.idempotent,
                args_schema=tool.parameters,
                inbox=self._inbox,
            )
        except (Stopped, CutOff):
            if lost:
                raise lost[0] from None
            return None
        except (results.CallFailed, results.ResultLost) as error:
            return messages.answer(call, f"Error: {error}", failed=True)
        return message

    async def _made(self, call: ToolCall, tool: Tool, args: dict[str, Any]) -> ToolMessage:
        """Makes the call, with an idempotency key if the tool accepts one."""
        grant = current_grant()
        arguments = {name: value for name, value in args.items() if name != KEY} if tool.idempotent else args
        keyed = {KEY: grant.id} if tool.idempotent and grant is not None else {}
        result = await self._continued(call, tool, {**arguments, **keyed})
        return ToolMessage(
            content=result.text,
            artifact=None if result.structured is None else {"structured_content": result.structured},
            name=tool.name,
            tool_call_id=call_id(call),
            status="error" if result.failed else "success",
        )

    async def _continued(self, call: ToolCall, tool: Tool, args: dict[str, Any]) -> Result:
        """The result of the call, from where it paused. If that was lost with its process, only an idempotent call is
        made again; of a call without a grant, nobody can record the outcome, so the model is told."""
        paused, answers = self._kept(call)
        try:
            return await self._client.call(tool.name, args, paused, answers)
        except McpLost as error:
            if paused is not None and tool.idempotent:
                return await self._client.call(tool.name, args, None, answers)
            if current_grant() is None and (paused is not None or isinstance(error, McpTimeout)):
                return Result(f"Error: {error}. Whether it took effect is unknown.", failed=True)
            raise

    def _kept(self, call: ToolCall) -> tuple[PausedCall | None, Answers]:
        """The pause of the call, and the answers to its questions. The state is not trusted: a call continues only in
        the way in which it paused, with answers that were given to it. Under a grant without a note it is made again,
        with the answers of its lost attempt."""
        paused, answers = self.paused.get(call_id(call)), self.answers.get(call_id(call)) or {}
        grant = current_grant()
        note = note_of(grant) if grant is not None else None
        if note is not None and (paused is None or canonical.digest(paused) != note):
            raise McpLost("the state of the thread no longer says how the call continues")
        if paused is None:
            return None, {}
        if note is None and not self._seals.fits(call, paused):
            return (LOST if grant is None else None), {}
        return (None if grant is not None and note is None else paused), self._seals.genuine(paused, answers)

    def _ask(self, call: ToolCall, asked: Asked) -> str:
        """Records the questions of a call. A repeated one means that the server did not accept its answer. Returns the
        note for its grant."""
        id, paused = call_id(call), self._seals.paused(call, asked.paused)
        self.paused[id] = paused
        for key, value in asked.questions.items():
            self.answers.get(id, {}).pop(key, None)
            self.elicitations.append({"call_id": id, "key": key, "value": value})
        return canonical.digest(paused)


def _ending(error: McpFailed, tool: Tool) -> Stopped | CutOff:
    """A call that never reached the server keeps its grant, and so does one whose retry the server recognises."""
    grant = current_grant()
    if not isinstance(error, McpLost):
        return Stopped(grant and note_of(grant))
    return Stopped() if tool.idempotent else CutOff()


def _unusable(name: str) -> str:
    return f"Error: `{name}` cannot be used for this request. It was not executed. Do not retry it."
