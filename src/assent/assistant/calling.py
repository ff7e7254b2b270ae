"""The calls of one message on their way through the gate to the MCP server: what came of them, and what is asked first.

A call under a grant is made once. Where the server wants something of the person before it does anything, the grant
waits with the call, and both go on once it is answered: nobody is asked for the same approval twice.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolCall, ToolMessage

from assent.assistant import messages as conversation
from assent.assistant.mcp import Asked, McpClient
from assent.assistant.mcp_faults import McpFailed, McpLost
from assent.assistant.messages import call_id
from assent.assistant.state import PendingElicitation, RequestState
from assent.assistant.tools import KEY, Catalogue, Tool
from assent.gate import results
from assent.gate.calls import Stopped, pass_call
from assent.gate.keeper import Keeper, current_grant
from assent.gate.results import CutOff


class Calling:
    """`results` are the answers so far, by the calls' ids; `elicitations` what has to be asked before the others."""

    def __init__(self, client: McpClient, catalogue: Catalogue, state: RequestState, inbox: Keeper | None) -> None:
        self.results: dict[str, ToolMessage] = dict(state.get("results") or {})
        self.answers: dict[str, dict[str, Any]] = {id: dict(of) for id, of in (state.get("answers") or {}).items()}
        self.elicitations: list[PendingElicitation] = []
        self._client = client
        self._catalogue = catalogue
        self._inbox = inbox
        self._allowed = state.get("allowed_types") or []
        self._approved_as = {one["call_id"]: one["approved_as"] for one in state.get("approvals") or []}

    async def make(self, call: ToolCall, invalid: str | None) -> None:
        """Calls of tools that the request may not use, and calls that cannot be read, go no further than here."""
        id = call_id(call)
        tool = self._catalogue.usable(call["name"], self._allowed)
        if id in self.results:
            return
        if invalid is not None:
            self.results[id] = conversation.said(call, f"Error: {invalid}", failed=True)
        elif tool is None:
            self.results[id] = conversation.said(call, _unusable(call["name"]), failed=True)
        else:
            await self._client.connect()  # before anything is marked as started
            message = await self._passed(call, tool)
            if message is not None:
                self.results[id] = message.model_copy(update={"tool_call_id": id, "id": None})

    async def _passed(self, call: ToolCall, tool: Tool) -> ToolMessage | None:
        """Under its grant, once, or with what was recorded the first time. None where it has to wait."""
        lost: list[McpFailed] = []

        async def make(args: Any) -> ToolMessage:
            try:
                return await self._made(call, tool, args)
            except Asked as asked:
                self._ask(call_id(call), asked)
                raise Stopped from None
            except McpFailed as error:
                lost.append(error)
                if tool.idempotent:  # the server knows a second try, so the grant waits for one
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
            return conversation.said(call, f"Error: {error}", failed=True)
        return message

    async def _made(self, call: ToolCall, tool: Tool, args: dict[str, Any]) -> ToolMessage:
        """The call itself. A server that knows a second try of the same call is told which one it is."""
        grant = current_grant()
        given = {name: value for name, value in args.items() if name != KEY} if tool.idempotent else args
        keyed = {KEY: grant.id} if tool.idempotent and grant is not None else {}
        result = await self._client.call(tool.name, {**given, **keyed}, self.answers.get(call_id(call)) or {})
        return ToolMessage(
            content=result.text,
            artifact=None if result.structured is None else {"structured_content": result.structured},
            name=tool.name,
            tool_call_id=call_id(call),
            status="error" if result.failed else "success",
        )

    def _ask(self, id: str, asked: Asked) -> None:
        """A question that comes again was not answered in the server's eyes."""
        self.answers.get(id, {}).pop(asked.key, None)
        self.elicitations.append({"call_id": id, "key": asked.key, "value": asked.value})


def _unusable(name: str) -> str:
    return f"Error: `{name}` cannot be used for this request. It was not executed. Do not retry it."
