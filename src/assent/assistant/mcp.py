"""The assistant's MCP client, for both generations of the protocol.

A server that needs input from the person ends the call with a question: since 2026-07-28 as `input_required`, before
as error −32042 or over the open connection, which is then dropped. Nothing stays open while a person decides. The call
is repeated from its first round with the answers, each matched by the question's key, because the order of questions
may change. Either side may be restarted meanwhile.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from assent.assistant.mcp_faults import McpFailed, unreachable
from assent.assistant.tools import Tool
from assent.assistant.upstream import call_tool
from assent.errors import ConfigError
from assent.kernel import canonical
from assent.kernel.canonical import Json

if TYPE_CHECKING:
    from fastmcp import Client
    from mcp_types import CallToolResult, ElicitResult

CONNECT_SECONDS = 15
CALL_SECONDS = 300
_MOST_ROUNDS = 10
_URL_REQUIRED = -32042
_LOST = (-32000, -32001)
"""The client's own codes for a closed connection and for a missing response."""
_NO_ANSWER = (-32603, "Server returned an error response")
"""The client's error if a web server answered instead of the MCP server behind it."""

Target = Callable[[], Any]
"""Makes the target of each connection of FastMCP's client: a transport, or a server in this process."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result or the error of a tool, as text for the model."""

    text: str
    failed: bool = False
    structured: Json = None


class Asked(Exception):
    """The server needs input from the person first. `value` is the value of a pause (docs/dialects.md)."""

    def __init__(self, key: str, value: dict[str, Any]) -> None:
        super().__init__(key)
        self.key = key
        self.value = value


@dataclass(slots=True)
class _Attempt:
    """One call over a connection on which the server may ask."""

    answers: Mapping[str, Json]
    given: set[str] = field(default_factory=set)
    asked: asyncio.Future[Asked] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def answer(self, key: str) -> Json:
        """The person's answer to this question; None if it was not asked yet, or is asked again."""
        if key in self.given or key not in self.answers:
            return None
        self.given.add(key)
        return self.answers[key]


class McpClient:
    def __init__(self, target: Target, *, name: str, mode: str = "auto") -> None:
        """`name` is the server's name in messages. The connection opens at the first use."""
        self._target = target
        self._name = name
        self._mode = mode
        self._client: Client[Any] | None = None
        self._attempt: _Attempt | None = None
        self._lock = asyncio.Lock()
        self._tools: list[Tool] | None = None
        self._refusals: Any = None

    async def tools(self) -> list[Tool]:
        """The server's tools, listed once, at the first use."""
        if self._tools is None:
            client = await self.connect()
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    listed = await client.list_tools()
            except Exception as error:  # noqa: BLE001 - the transports raise whatever they like
                raise await self._lost(error) from None
            self._tools = [_tool(tool) for tool in listed]
        return self._tools

    async def connect(self) -> Client[Any]:
        """The open connection. Its calls are made one after another."""
        if self._client is not None and self._client.is_connected():
            return self._client
        await self.close()
        try:
            target = await asyncio.to_thread(self._target)  # imports FastMCP, which is slow
            self._refusals = getattr(target, "auth", None)
            client = self._made(target)
            async with asyncio.timeout(CONNECT_SECONDS):
                await client.__aenter__()  # type: ignore[no-untyped-call]
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - the transports raise whatever they like
            raise unreachable(self._name, error, status=self._status) from None
        self._client = client
        return client

    async def call(self, name: str, args: Mapping[str, Json], answers: Mapping[str, Json]) -> Result:
        """Makes a call with the answers to its questions so far. Raises `Asked` for the next question."""
        async with self._lock:
            client = await self.connect()
            self._attempt = _Attempt(answers)
            try:
                return await self._called(client, name, dict(args), self._attempt)
            finally:
                self._attempt = None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(Exception):  # it is gone either way
                await client.close()  # type: ignore[no-untyped-call]

    def _made(self, target: Any) -> Client[Any]:
        from fastmcp import Client

        return Client(target, mode=self._mode, elicitation_handler=self._elicit, timeout=CALL_SECONDS)

    async def _called(self, client: Client[Any], name: str, args: dict[str, Json], attempt: _Attempt) -> Result:
        from mcp.shared.exceptions import MCPError

        making = asyncio.ensure_future(self._rounds(client, name, args, attempt))
        try:
            first: set[asyncio.Future[Any]] = {making, attempt.asked}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if attempt.asked.done() and not making.done():
                await self._dropped(making)
                raise attempt.asked.result()
            return _result(await making)
        except MCPError as error:
            if error.error.code in _LOST or (error.error.code, error.error.message) == _NO_ANSWER:
                raise await self._lost(error, sent=True) from None
            return _refused(error, attempt)
        except (Asked, asyncio.CancelledError):
            making.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - the transports raise whatever they like
            raise await self._lost(error, sent=True) from None

    async def _rounds(self, client: Client[Any], name: str, args: dict[str, Json], attempt: _Attempt) -> CallToolResult:
        """Answers the server's questions, round after round, as long as there are answers."""
        from mcp_types import InputRequiredResult

        responses: dict[str, Any] = {}
        state: str | None = None
        for _ in range(_MOST_ROUNDS):
            result = await call_tool(client, name, args, answers=responses, state=state)
            if not isinstance(result, InputRequiredResult):
                return result
            responses, state = _responses(result.input_requests or {}, attempt), result.request_state
        raise RuntimeError(f"{name} asked more than {_MOST_ROUNDS} times")

    async def _elicit(self, message: str, kind: Any, params: Any, context: Any) -> ElicitResult:
        """A question over the open connection, as before 2026-07-28. It has no key, so its content is hashed."""
        from mcp_types import ElicitResult

        attempt = self._attempt
        if attempt is None or attempt.asked.done():
            return ElicitResult(action="cancel")
        value = _value(params)
        key = canonical.digest({name: part for name, part in value.items() if name in ("message", "schema")})[:16]
        answer = attempt.answer(key)
        if answer is not None:
            return _elicited(answer)
        attempt.asked.set_result(Asked(key, value))
        await asyncio.Event().wait()  # until the connection is dropped: any answer would continue the call
        raise AssertionError

    async def _dropped(self, making: asyncio.Future[Any]) -> None:
        making.cancel()
        with suppress(Exception, asyncio.CancelledError):  # it is cancelled, so its error does not matter
            await making
        await self.close()

    async def _lost(self, error: Exception, *, sent: bool = False) -> McpFailed:
        await self.close()
        return unreachable(self._name, error, sent=sent, status=self._status)

    @property
    def _status(self) -> int | None:
        """The status with which the server refused the credentials, if it did."""
        return getattr(self._refusals, "status", None)


def server_at(url: str, headers: Mapping[str, str]) -> Target:
    def target() -> Any:
        from fastmcp.client.transports import StreamableHttpTransport

        from assent.assistant.mcp_refusals import Refusals

        return StreamableHttpTransport(url, headers=dict(headers), auth=Refusals())

    return target


def server_of(command: str, environment: Mapping[str, str]) -> Target:
    """A server that this process starts and that uses its standard streams. It gets `environment` and the few variables
    that every program needs."""
    parts = shlex.split(command)
    if not parts:
        raise ConfigError("ASSISTANT_MCP_COMMAND is empty")

    def target() -> Any:
        from fastmcp.client.transports import StdioTransport

        return StdioTransport(parts[0], parts[1:], env=dict(environment), keep_alive=False)

    return target


def _tool(listed: Any) -> Tool:
    meta = listed.meta or {}
    tags = (meta.get("fastmcp") or meta.get("_fastmcp") or {}).get("tags") or ()
    hints = listed.annotations
    return Tool(
        name=listed.name,
        description=listed.description or "",
        schema=listed.input_schema,
        tags=tuple(map(str, tags)),
        reads_only=bool(hints and hints.read_only_hint and not hints.destructive_hint),
    )


def _responses(requests: Mapping[str, Any], attempt: _Attempt) -> dict[str, Any]:
    """The answers to a round, by key; raises the first question without one."""
    from mcp_types import ElicitRequest

    responses = {}
    for key, request in requests.items():
        if not isinstance(request, ElicitRequest):
            raise RuntimeError(f"the server asks for {request.method}, which this client does not support")
        answer = attempt.answer(key)
        if answer is None:
            raise Asked(key, _value(request.params))
        responses[key] = _elicited(answer)
    if not responses:
        raise RuntimeError("the server requires input without a question")
    return responses


def _refused(error: Any, attempt: _Attempt) -> Result:
    """A protocol error is a result for the model; a missing login is a question."""
    if error.error.code != _URL_REQUIRED:
        return Result(f"Error {error.error.code}: {error.error.message}", failed=True)
    data = error.error.data if isinstance(error.error.data, dict) else {}
    wanted = next((item for item in data.get("elicitations") or () if isinstance(item, dict) and item.get("url")), None)
    if wanted is None:
        return Result(f"Error {error.error.code}: {error.error.message}", failed=True)
    answer = attempt.answers.get("url")
    if isinstance(answer, dict) and answer.get("action") != "accept":
        return Result(f"{error.error.message}: the person said {answer.get('action')}", failed=True)
    message = str(wanted.get("message") or error.error.message)
    raise Asked("url", _link(str(wanted["url"]), message, wanted.get("elicitationId")))


def _value(params: Any) -> dict[str, Any]:
    """The question as the value of a pause."""
    url = getattr(params, "url", None)
    if url is not None:
        return _link(str(url), params.message, getattr(params, "elicitation_id", None))
    return {"kind": "form_elicitation", "message": params.message, "schema": dict(params.requested_schema)}


def _link(url: str, message: str, elicitation_id: Any) -> dict[str, Any]:
    value = {"kind": "oauth_url", "url": url, "message": message}
    return {**value, "elicitation_id": str(elicitation_id)} if elicitation_id else value


def _elicited(answer: Json) -> ElicitResult:
    from mcp_types import ElicitResult

    return ElicitResult.model_validate({"action": answer["action"], "content": answer.get("content")})


def _result(result: Any) -> Result:
    text = "\n".join(map(_text, result.content))
    return Result(text, failed=bool(result.is_error), structured=result.structured_content)


def _text(part: Any) -> str:
    """A part of a result as text. Binary data is named, with its type and size."""
    if part.type == "text":
        return str(part.text)
    if part.type == "resource_link":
        return " ".join(filter(None, (f"[{part.name}]({part.uri})", part.description)))
    if part.type == "resource":
        return _resource(part.resource)
    return f"[{part.type}, {_described(part.mime_type, part.data)}]"


def _resource(resource: Any) -> str:
    text = getattr(resource, "text", None)
    if text is not None:
        return f"{resource.uri}:\n{text}"
    return f"[{resource.uri}, {_described(resource.mime_type, resource.blob)}]"


def _described(mime_type: str | None, base64: str) -> str:
    return f"{mime_type or 'unknown type'}, {len(base64) * 3 // 4} bytes"
