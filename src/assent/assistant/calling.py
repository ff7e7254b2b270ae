"""Makes the calls of one message through the gate at the MCP server, and collects results and questions.

A call under a grant is made once. If the server needs input from the person first, the grant waits with the call, and
both continue after the answer: no approval is requested twice.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolCall, ToolMessage

from assent.assistant import messages
from assent.assistant.mcp import Asked, McpClient
from assent.assistant.mcp_faults import McpFailed, McpLost
from assent.assistant.messages import call_id
from assent.assistant.state import PendingElicitation, RequestState, allowed_types
from assent.assistant.tools import KEY, Catalogue, Tool
from assent.gate import results
from assent.gate.calls import Stopped, pass_call
from assent.gate.keeper import Keeper, current_grant
from assent.gate.results import CutOff


class Calling:
    """`results` are the answers so far, by call id; `elicitations` are the questions that block the other calls."""

    def __init__(self, client: McpClient, catalogue: Catalogue, state: RequestState, inbox: Keeper | None) -> None:
        self.results: dict[str, ToolMessage] = dict(state.get("results") or {})
        self.answers: dict[str, dict[str, Any]] = {id: dict(of) for id, of in (state.get("answers") or {}).items()}
        self.elicitations: list[PendingElicitation] = []
        self._client = client
        self._catalogue = catalogue
        self._inbox = inbox
        self._allowed = allowed_types(state)
        self._approved_as = {outcome["call_id"]: outcome["approved_as"] for outcome in state.get("approvals") or []}

    async def make(self, call: ToolCall, invalid: str | None) -> None:
        """Makes a call. Invalid calls and calls of tools that the request may not use are refused here."""
        id = call_id(call)
        tool = self._catalogue.usable(call["name"], self._allowed)
        if id in self.results:
            return
        if invalid is not None:
            self.results[id] = messages.answer(call, f"Error: {invalid}", failed=True)
        elif tool is None:
            self.results[id] = messages.answer(call, _unusable(call["name"]), failed=True)
        else:
            await self._client.connect()  # before anything is marked as started
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
                self._ask(call_id(call), asked)
                raise Stopped from None
            except McpFailed as error:
                lost.append(error)
                if tool.idempotent:  # the server recognises a retry, so the grant waits for one
                    raise Stopped from None
                if isinstance(error, McpLost):
                    raise CutOff from None
                raise

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
        result = await self._client.call(tool.name, {**arguments, **keyed}, self.answers.get(call_id(call)) or {})
        return ToolMessage(
            content=result.text,
            artifact=None if result.structured is None else {"structured_content": result.structured},
            name=tool.name,
            tool_call_id=call_id(call),
            status="error" if result.failed else "success",
        )

    def _ask(self, id: str, asked: Asked) -> None:
        """Records a question. A repeated question means that the server did not accept its answer."""
        self.answers.get(id, {}).pop(asked.key, None)
        self.elicitations.append({"call_id": id, "key": asked.key, "value": asked.value})


def _unusable(name: str) -> str:
    return f"Error: `{name}` cannot be used for this request. It was not executed. Do not retry it."
