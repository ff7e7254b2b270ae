"""The inbox as MCP tools, for triage agents: list, read, search, claim, comment, recommend. A decision needs a person's
key, is marked `via: mcp`, and is possible only where the policy allows it.

A tool is a method with annotated parameters: pydantic describes and validates its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from assent.errors import AssentError
from assent.identity.model.access import Principal
from assent.review.decisions.decide import MCP, Proposal
from assent.review.inbox import Advice, Inbox
from assent.review.model.questions import Verb, Verdict
from assent.surfaces.http.errors import invalid
from assent.surfaces.http.jsonrpc import INVALID_PARAMS, RpcError
from assent.surfaces.mcp.fence import fenced

Json = dict[str, Any]
_MOST = 50
_READS: Json = {"readOnlyHint": True, "openWorldHint": False}
_WRITES: Json = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}
_DECIDES: Json = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True}

ItemId = Annotated[str, Field(description="The id of the item.", max_length=100)]
Revision = Annotated[int, Field(description="The `revision` of the item that you read.")]
Hash = Annotated[str, Field(description="The `hash` of the item that you read.", max_length=100)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Filter = Annotated[str, Field(description="Such as `is:pending type:tool risk:low older:2h`.", max_length=500)]
Limit = Annotated[int, Field(ge=1, le=_MOST)]
Cursor = Annotated[str | None, Field(description="`next` of the previous page.", max_length=1000)]
Key = Annotated[str | None, Field(description="A retry with the same key does nothing twice.", max_length=200)]

AnyVerb = Annotated[Verb, WithJsonSchema({"type": "string", "enum": [verb.value for verb in Verb]})]

_caller: ContextVar[Principal] = ContextVar("caller")


class InboxTools:
    def __init__(self, inbox: Inbox) -> None:
        reading, collaboration, decisions = _Reading(inbox), _Collaboration(inbox), _Decisions(inbox)
        tools = [
            _Tool(reading.list_items, _READS),
            _Tool(reading.get_item, _READS),
            _Tool(reading.search_items, _READS),
            _Tool(collaboration.claim_item, _WRITES),
            _Tool(collaboration.release_item, _WRITES),
            _Tool(collaboration.comment, _WRITES),
            _Tool(collaboration.recommend, _WRITES),
            _Tool(decisions.decide, _DECIDES),
            _Tool(decisions.request_revision, _DECIDES),
        ]
        self._tools = {tool.name: tool for tool in tools}

    def listed(self) -> list[Json]:
        return [tool.described() for tool in self._tools.values()]

    async def call(self, caller: Principal, name: str, arguments: Json) -> Json:
        if name not in self._tools:
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {name}")
        token = _caller.set(caller)
        try:
            return _content(fenced(await self._tools[name].called(arguments)))
        except AssentError as error:
            return _content(_told_as(error), failed=True)
        finally:
            _caller.reset(token)


@dataclass(frozen=True)
class _Tool:
    function: Any  # TypeAdapter takes functions, its annotation only types
    hints: Json

    @property
    def name(self) -> str:
        return str(self.function.__name__)

    def described(self) -> Json:
        return {
            "name": self.name,
            "title": self.name.replace("_", " ").title(),
            "description": self.function.__doc__,
            "inputSchema": self._arguments.json_schema(schema_generator=_Untitled),
            "annotations": self.hints,
        }

    def called(self, arguments: Json) -> Awaitable[Any]:
        """The call, after checking its arguments. They are read as JSON, so that a text is no number."""
        try:
            return self._arguments.validate_json(json.dumps(arguments), strict=True)
        except ValidationError as error:
            raise invalid(error) from None

    @cached_property
    def _arguments(self) -> TypeAdapter[Awaitable[Any]]:
        return TypeAdapter(self.function)


class _Untitled(GenerateJsonSchema):
    """A title that repeats the name of its field says nothing to a model."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _content(text: str, *, failed: bool = False) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": failed}


class _Reading:
    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    async def list_items(self, filter: Filter = "is:pending", limit: Limit = 20, cursor: Cursor = None) -> Any:
        """List items, newest first. `next` is the cursor of the next page, null on the last."""
        page = await self._inbox.list(_caller.get(), filter=filter, limit=limit, cursor=cursor, arguments=True)
        return {"items": page.items, "next": page.next, "counts": dict(page.counts)}

    async def get_item(self, id: ItemId) -> Any:
        """Read an item with its calls, comments and what you may do."""
        caller = _caller.get()
        return {**await self._inbox.get(caller, id), "said": await self._inbox.comments(caller, id)}

    async def search_items(self, text: Filter, limit: Limit = 20, cursor: Cursor = None) -> Any:
        """Search all items, also decided ones, by words of titles, arguments and comments."""
        page = await self._inbox.list(_caller.get(), filter=text, limit=limit, cursor=cursor)
        return {"items": page.items, "next": page.next, "counts": dict(page.counts)}


class _Collaboration:
    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    async def claim_item(self, id: ItemId) -> Any:
        """Claim an item for five minutes, so that others see that you work on it."""
        return (await self._inbox.claim(_caller.get(), id))["claim"]

    async def release_item(self, id: ItemId) -> Any:
        """End your claim."""
        return (await self._inbox.unclaim(_caller.get(), id))["claim"]

    async def comment(self, id: ItemId, text: Text, idempotency_key: Key = None) -> Any:
        """Add a comment for the people who decide, and for the agent that asked."""
        return await self._inbox.comment(_caller.get(), id, text, key=idempotency_key)

    async def recommend(
        self, id: ItemId, revision: Revision, hash: Hash, verb: AnyVerb, reason: Text, idempotency_key: Key = None
    ) -> Any:
        """Recommend a decision to the people who decide, with your reason. It decides nothing."""
        advice = Advice(revision, hash, verb, reason)
        return await self._inbox.recommend(_caller.get(), id, advice, key=idempotency_key)


class _Decisions:
    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    async def decide(
        self,
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
            actions = (await self._inbox.get(caller, id))["actions"]
            verdicts = tuple(Verdict(action["key"], said, message=message) for action in actions)
        for_all = None if verdicts else said
        proposal = Proposal(revision, hash, verdicts, for_all, None if verdicts else message, notes, via=MCP)
        return _decided(await self._inbox.decide(caller, id, proposal, key=idempotency_key))

    async def request_revision(
        self, id: ItemId, revision: Revision, hash: Hash, notes: Text, idempotency_key: Key = None
    ) -> Any:
        """Send an item back to its agent with notes. Has the conditions of `decide`."""
        seen: Json = {"revision": revision, "hash": hash, "notes": notes}
        return _decided(await self._inbox.ask_for_revision(_caller.get(), id, **seen, via=MCP, key=idempotency_key))


def _decided(item: Json) -> Json:
    return {name: item[name] for name in ("id", "status", "resolution", "revision", "hash", "decided_by")}


def _told_as(error: AssentError) -> str:
    return f"{error.code}: {error.message}{f' ({error.hint})' if error.hint else ''}"
