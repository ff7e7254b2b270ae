"""The inbox as MCP tools, for triage agents: list, read, search, claim, comment, recommend. A decision needs a person's
key, is marked `via: mcp`, and is possible only where the policy allows it.

It imports FastMCP, which is slow: the first request loads it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import wraps
from typing import Annotated, Any, Literal, ParamSpec

from fastmcp import FastMCP
from fastmcp.exceptions import NotFoundError, ToolError, ValidationError
from fastmcp.tools import ToolResult
from mcp_types import TextContent, ToolAnnotations
from pydantic import Field

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.review.decisions.decide import MCP, Proposal
from assent.review.inbox import Advice, Inbox
from assent.review.model.questions import Verb, Verdict
from assent.surfaces.http.jsonrpc import INVALID_PARAMS, RpcError
from assent.surfaces.mcp.fence import fenced

P = ParamSpec("P")
Json = dict[str, Any]
_MOST = 50
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_DECIDES = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)

ItemId = Annotated[str, Field(description="The id of the item.", max_length=100)]
Revision = Annotated[int, Field(description="The `revision` of the item that you read.")]
Hash = Annotated[str, Field(description="The `hash` of the item that you read.", max_length=100)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Filter = Annotated[str, Field(description="Such as `is:pending type:tool risk:low older:2h`.", max_length=500)]
Limit = Annotated[int, Field(ge=1, le=_MOST)]
Cursor = Annotated[str | None, Field(description="`next` of the previous page.", max_length=1000)]
Key = Annotated[str | None, Field(description="A retry with the same key does nothing twice.", max_length=200)]

_caller: ContextVar[Principal] = ContextVar("caller")


class InboxTools:
    def __init__(self, inbox: Inbox) -> None:
        self._server = _server(inbox)

    async def listed(self) -> list[Json]:
        tools = await self._server.list_tools()
        return [tool.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]

    async def call(self, caller: Principal, name: str, arguments: Json) -> Json:
        token = _caller.set(caller)
        try:
            result = await self._server.call_tool(name, arguments)
        except NotFoundError:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}") from None
        except (ToolError, ValidationError) as error:
            return _content(str(error), failed=True)
        finally:
            _caller.reset(token)
        [text] = result.content
        assert isinstance(text, TextContent)
        return _content(text.text)


def _content(text: str, *, failed: bool = False) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def _server(inbox: Inbox) -> FastMCP:
    logging.getLogger("fastmcp").setLevel(logging.CRITICAL)  # it logs refused calls, which their callers are told
    server = FastMCP("assent-inbox", mask_error_details=True, strict_input_validation=True)
    _add_reading(server, inbox)
    _add_collaboration(server, inbox)
    _add_decisions(server, inbox)
    return server


def _add_reading(server: FastMCP, inbox: Inbox) -> None:
    @server.tool(annotations=_READS)
    @_told
    async def list_items(filter: Filter = "is:pending", limit: Limit = 20, cursor: Cursor = None) -> Any:
        """List items, newest first. `next` is the cursor of the next page, null on the last."""
        page = await inbox.list(_caller.get(), filter=filter, limit=limit, cursor=cursor, arguments=True)
        return {"items": page.items, "next": page.next, "counts": dict(page.counts)}

    @server.tool(annotations=_READS)
    @_told
    async def get_item(id: ItemId) -> Any:
        """Read an item with its calls, comments and what you may do."""
        caller = _caller.get()
        return {**await inbox.get(caller, id), "said": await inbox.comments(caller, id)}

    @server.tool(annotations=_READS)
    @_told
    async def search_items(text: Filter, limit: Limit = 20, cursor: Cursor = None) -> Any:
        """Search all items, also decided ones, by words of titles, arguments and comments."""
        page = await inbox.list(_caller.get(), filter=text, limit=limit, cursor=cursor)
        return {"items": page.items, "next": page.next, "counts": dict(page.counts)}


def _add_collaboration(server: FastMCP, inbox: Inbox) -> None:
    @server.tool(annotations=_WRITES)
    @_told
    async def claim_item(id: ItemId) -> Any:
        """Claim an item for five minutes, so that others see that you work on it."""
        return (await inbox.claim(_caller.get(), id))["claim"]

    @server.tool(annotations=_WRITES)
    @_told
    async def release_item(id: ItemId) -> Any:
        """End your claim."""
        return (await inbox.unclaim(_caller.get(), id))["claim"]

    @server.tool(annotations=_WRITES)
    @_told
    async def comment(id: ItemId, text: Text, idempotency_key: Key = None) -> Any:
        """Add a comment for the people who decide, and for the agent that asked."""
        return await inbox.comment(_caller.get(), id, text, key=idempotency_key)

    @server.tool(annotations=_WRITES)
    @_told
    async def recommend(
        id: ItemId, revision: Revision, hash: Hash, verb: Verb, reason: Text, idempotency_key: Key = None
    ) -> Any:
        """Recommend a decision to the people who decide, with your reason. It decides nothing."""
        advice = Advice(revision, hash, verb, reason)
        return await inbox.recommend(_caller.get(), id, advice, key=idempotency_key)


def _add_decisions(server: FastMCP, inbox: Inbox) -> None:
    @server.tool(annotations=_DECIDES)
    @_told
    async def decide(
        id: ItemId,
        revision: Revision,
        hash: Hash,
        verb: Annotated[Literal["approve", "reject", "respond", "ignore"], Field(description="For all actions.")],
        message: Annotated[Text | None, Field(description="The reason of a rejection, or the answer.")] = None,
        notes: Text | None = None,
        idempotency_key: Key = None,
    ) -> Any:
        """Decide an item. Works only with a person's key, and only where the policy allows it (low risk by default)."""
        said, caller = Verb(verb), _caller.get()
        verdicts: tuple[Verdict, ...] = ()
        if said is Verb.RESPOND:
            actions = (await inbox.get(caller, id))["actions"]
            verdicts = tuple(Verdict(action["key"], said, message=message) for action in actions)
        one = None if verdicts else said
        proposal = Proposal(revision, hash, verdicts, one, None if verdicts else message, notes, via=MCP)
        return _decided(await inbox.decide(caller, id, proposal, key=idempotency_key))

    @server.tool(annotations=_DECIDES)
    @_told
    async def request_revision(
        id: ItemId, revision: Revision, hash: Hash, notes: Text, idempotency_key: Key = None
    ) -> Any:
        """Send an item back to its agent with notes. Has the conditions of `decide`."""
        seen: Json = {"revision": revision, "hash": hash, "notes": notes}
        return _decided(await inbox.ask_for_revision(_caller.get(), id, **seen, via=MCP, key=idempotency_key))


def _decided(item: Json) -> Json:
    return {name: item[name] for name in ("id", "status", "resolution", "revision", "hash", "decided_by")}


def _told(tool: Callable[P, Awaitable[Any]]) -> Callable[P, Awaitable[ToolResult]]:
    """The result as fenced text. Errors of use cases are told with their code."""

    @wraps(tool)
    async def told(*args: P.args, **kwargs: P.kwargs) -> ToolResult:
        try:
            data = await tool(*args, **kwargs)
        except AssentError as error:
            hint = f" ({error.hint})" if error.hint else ""
            raise ToolError(f"{error.code}: {error.message}{hint}") from None
        return ToolResult(content=[TextContent(type="text", text=fenced(data))])

    told.__annotations__ = {**tool.__annotations__, "return": ToolResult}
    return told
