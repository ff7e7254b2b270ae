"""`/mcp`: assistants as tools, as LangGraph's server has them."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

from fastapi import APIRouter

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.runs.assistants.assistants import Assistants
from assent.runs.calls import Begun, Calls, Ended
from assent.surfaces.http.jsonrpc import INVALID_PARAMS, Message, RpcError
from assent.surfaces.http.limits.execution import Execution
from assent.surfaces.mcp import modern, results, tools, transport
from assent.threads.model.threads import Lifetime
from assent.threads.run_requests import RunRequest

Json = dict[str, Any]
KEPT = Lifetime(timedelta(days=7) / timedelta(minutes=1))
"""How long the thread of a paused call is stored, so that its result can still be read after a person's decision."""

_INSTRUCTIONS = (
    "Each tool runs an agent. A call can pause, because the agent asks something or a person must approve an action; "
    f"its result then has the status 'waiting' and says how to continue with {tools.CONTINUE}."
)


def routes(assistants: Assistants, calls: Calls) -> APIRouter:
    return transport.routes({"/mcp": True, "/mcp/": False}, _INSTRUCTIONS, _Mcp(assistants, calls).result)


class _Mcp:
    def __init__(self, assistants: Assistants, calls: Calls) -> None:
        self._assistants = assistants
        self._calls = calls

    async def result(self, caller: Principal, executing: Execution, message: Message) -> Json:
        if message.method == "tools/list":
            return await self._list(caller, message.params)
        ended = await self._repeated(caller, executing, message.params)
        ended = ended or await self._called(caller, executing, message.params)
        return ended if isinstance(ended, dict) else modern.asked(message, ended) or results.result(ended)

    async def _list(self, caller: Principal, params: Json) -> Json:
        cursor = str(params.get("cursor") or "0")
        if not cursor.isdecimal() or len(cursor) > 9:
            raise RpcError(INVALID_PARAMS, "cursor: not one of this server")
        listed, following = await tools.listed(self._assistants, caller, int(cursor))
        return {"tools": listed, **({"nextCursor": str(following)} if following is not None else {})}

    async def _called(self, caller: Principal, executing: Execution, params: Json) -> Ended | Json:
        """The end of the call's run, or the result of a call that was refused."""
        name, arguments, context = params.get("name"), params.get("arguments"), params.get("context")
        if not isinstance(name, str) or not name:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")
        if not isinstance(arguments, dict | None) or not isinstance(context, dict | None):
            raise RpcError(INVALID_PARAMS, "arguments and context must be objects")
        if name == tools.CONTINUE:
            return await self._continued(caller, executing, arguments or {})
        matches = await tools.named(self._assistants, caller, name)
        if len(matches) != 1:
            raise RpcError(
                INVALID_PARAMS, "Multiple tools found with the same name." if matches else f"Unknown tool: {name}"
            )
        request = RunRequest(matches[0].id, input=arguments or {}, context=context, keep_thread=True, lifetime=KEPT)
        try:
            ended = await self._ended(caller, executing, await self._calls.begin(caller, None, request))
        except AssentError as error:
            return results.refused(error)
        if ended.pause is None:
            with suppress(AssentError):  # its lifetime ends it otherwise
                await self._calls.discard(caller, ended.thread_id)
        return ended

    async def _repeated(self, caller: Principal, executing: Execution, params: Json) -> Ended | Json | None:
        """A call that is sent again with answers continues its run."""
        again = modern.repeated(params)
        if again is None:
            return None
        thread_id, responses = again
        try:
            present = await self._calls.resume(caller, thread_id, None)
        except AssentError as error:
            return results.refused(error)
        if isinstance(present, Ended) and present.pause is not None and responses:
            given = modern.answers(present.pause, responses)
            return await self._continued(caller, executing, {"thread_id": thread_id, "answers": given})
        return results.result(present) if isinstance(present, Ended) else await self._ended(caller, executing, present)

    async def _continued(self, caller: Principal, executing: Execution, arguments: Json) -> Ended | Json:
        thread_id, answers = arguments.get("thread_id"), arguments.get("answers")
        if not isinstance(thread_id, str) or not isinstance(answers, dict | None):
            raise RpcError(INVALID_PARAMS, "thread_id must be a string and answers an object of answers by question id")
        try:
            begun = await self._calls.resume(caller, thread_id, answers)
            ended = begun if isinstance(begun, Ended) else await self._ended(caller, executing, begun)
        except AssentError as error:
            return results.refused(error)
        return ended

    async def _ended(self, caller: Principal, executing: Execution, begun: Begun) -> Ended:
        executing.end()
        return await self._calls.end(caller, begun)
