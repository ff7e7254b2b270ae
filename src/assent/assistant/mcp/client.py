"""The client of one MCP server, for both generations of the protocol.

Calls by the protocol of 2026-07-28 share a connection: a question ends the call, and its next round continues it.
Before that, a server asks over the connection and does not say for which call. So such a call has a connection to
itself, and keeps it while a person decides; the next call opens another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph.config import get_config

from assent.assistant.failures import LoginRequired, McpFailed, McpLost, McpTimeout
from assent.assistant.mcp import prompts, resources, upstream
from assent.assistant.mcp.calls import Held, OpenCall
from assent.assistant.mcp.connection import CONNECT_SECONDS, Connection
from assent.assistant.mcp.faults import is_loss, refused, unreachable
from assent.assistant.mcp.prompts import Prompt
from assent.assistant.mcp.questions import (
    Answers,
    Asked,
    PausedCall,
    link_of,
    linked,
    refusal,
    responses,
    round_of,
)
from assent.assistant.mcp.results import Result, result_of
from assent.assistant.tools import Tool
from assent.errors import ConfigError, Invalid
from assent.kernel.canonical import Json

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from assent.assistant.mcp.login.credentials import Credentials

CALL_SECONDS = 300.0
AUTO, LEGACY, MODERN = "auto", "legacy", "2026-07-28"
_MOST_ROUNDS = 10
_MOST_HELD = 32
_STATE_ONLY_SECONDS = 0.1
_ASKS_IN_ROUNDS = "InputRequiredResult"
"""In the error of a server whose tool asks in rounds, over a connection without them."""

Read = TypeVar("Read")
SignInLink = Callable[[], Awaitable[str | None]]
Target = Callable[[], Any]
"""Makes the target of each connection of FastMCP's client: a transport, or a server in this process."""


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """The seconds that a server may work on a call without asking a person; `by_tool` has names or patterns."""

    seconds: float = CALL_SECONDS
    by_tool: Mapping[str, float] = field(default_factory=dict)

    def of(self, tool: str) -> float:
        return next((limit for pattern, limit in self.by_tool.items() if fnmatchcase(tool, pattern)), self.seconds)


class McpClient:
    """Connections open at the first use and stay open."""

    def __init__(
        self,
        target: Target,
        *,
        name: str,
        mode: str = AUTO,
        trusted: bool = True,
        limits: TimeLimits | None = None,
        parallel: int = 1,
        connect_seconds: float = CONNECT_SECONDS,
        sign_in: SignInLink | None = None,
    ) -> None:
        """`name` is the server's name in messages, `trusted` whether its annotations count, `parallel` the number of
        calls that a server without rounds works on at once, `sign_in` gives the link where a person can sign in."""
        self.name = name
        self._target = target
        self._mode = mode
        self._trusted = trusted
        self._limits = limits or TimeLimits()
        self._parallel = parallel
        self._connect_seconds = connect_seconds
        self._turns = asyncio.Semaphore(parallel)
        self._opening = asyncio.Lock()
        self._shared: Connection | None = None
        self._idle: list[Connection] = []
        self._held = Held(_MOST_HELD)
        self._in_rounds = set[str]()
        self._only_modern = False
        self._credentials: Credentials | None = None
        self._sign_in = sign_in
        self._last: list[Tool] | None = None
        self._readers = set[str]()

    async def tools(self) -> list[Tool]:
        """After a login has ended, those that were listed before: their calls ask for a new one."""
        try:
            self._last = await self._tools()
        except LoginRequired:
            if self._last is None:
                await self.login()
                raise
        return self._last

    async def login(self) -> PausedCall:
        """The question to the person who has to sign in. Raises `McpRefused` if the server offers no such page."""
        link = await self._sign_in() if self._sign_in is not None else None
        if link is None:
            raise refused(self.name, 401)
        return linked(link, f"Sign in, so that the assistant can use the tools of {self.name}")

    async def prompts(self) -> list[Prompt]:
        return await self._read(lambda connection: prompts.listed(connection.client))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        """The text of a prompt. Raises `Invalid` with the server's reason if it refuses the arguments."""
        return await self._read(lambda connection: prompts.text(connection.client, name, arguments))

    async def _tools(self) -> list[Tool]:
        own, readers = await self._read(self._listed)
        names = {tool.name for tool in own}
        self._readers = {tool.name for tool in readers} - names
        return [*own, *(tool for tool in readers if tool.name not in names)]

    async def _listed(self, connection: Connection) -> tuple[list[Tool], list[Tool]]:
        """The tools of the server, and those that read its resources."""
        listed, readers = await asyncio.gather(
            connection.client.list_tools(),
            resources.tools_for(connection.client, self.name, trusted=self._trusted),
        )
        return [_tool(tool, trusted=self._trusted) for tool in listed], readers

    async def _read(self, ask: Callable[[Connection], Awaitable[Read]]) -> Read:
        """Over any connection, because no question comes of it: a call that waits for a person starts no process."""
        if not self._idle:
            for connection in self._held.connections:
                if await connection.is_alive():
                    return await self._answered(connection, ask)
        connection = await self._reserved("")
        try:
            answer = await self._answered(connection, ask)
        except McpFailed:
            await self._discard(connection)
            raise
        except Invalid:
            await self._release(connection)
            raise
        await self._release(connection)
        return answer

    async def _answered(self, connection: Connection, ask: Callable[[Connection], Awaitable[Read]]) -> Read:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                return await ask(connection)
        except Invalid:
            raise
        except Exception as error:  # noqa: BLE001 - the transports raise whatever they like
            raise self._failure(error) from None

    async def ready(self, name: str, paused: PausedCall | None = None) -> None:
        """Opens the connection for a call of this tool, before anything is marked as started."""
        if paused is not None and paused["goes_on"] == "held":
            return
        if self._mode_of(name) != MODERN and self._turns.locked():  # it works on other calls, so it can be reached
            return
        with suppress(LoginRequired):  # the call asks for it
            await self._release(await self._reserved(name))

    async def call(
        self, name: str, args: Mapping[str, Json], paused: PausedCall | None = None, answers: Answers | None = None
    ) -> Result:
        """Makes a call, as `_call` does. A server that wants a person to sign in has not made it."""
        try:
            return await self._call(name, args, paused, answers)
        except LoginRequired:
            raise Asked(await self.login()) from None

    async def _call(
        self, name: str, args: Mapping[str, Json], paused: PausedCall | None = None, answers: Answers | None = None
    ) -> Result:
        """Makes a call, or continues the paused one with the answers to its questions. Raises `Asked` for the next
        ones. The answers of a lost attempt are given again when the server asks the same."""
        answers = answers or {}
        if paused is not None:
            if not paused["questions"].keys() <= answers.keys():
                raise Asked(paused, answers)
            if refused := refusal(paused, answers):
                return Result(refused, failed=True)
            if paused["goes_on"] == "held":
                return await self._continued(name, paused, answers)
            self._in_rounds.update([name] if paused["goes_on"] == "round" else [])
        if self._mode_of(name) == MODERN:
            return await self._called(name, dict(args), paused, answers)
        async with self._turns:
            return await self._called(name, dict(args), paused, answers)

    async def close(self) -> None:
        for call, connection in self._held.take_all().values():
            await call.drop()
            await connection.close()
        idle, self._idle = self._idle, []
        shared, self._shared = self._shared, None
        for connection in (*idle, *([shared] if shared else [])):
            await connection.close()

    def _mode_of(self, name: str) -> str:
        """With `auto`, the handshake comes first: over its connection a tool can ask in the middle of its work, and a
        tool that asks in rounds is refused before its question; the reverse would lose what a tool did before."""
        if self._mode != AUTO:
            return self._mode
        return MODERN if self._only_modern or name in self._in_rounds else LEGACY

    async def _called(self, name: str, args: dict[str, Json], paused: PausedCall | None, answers: Answers) -> Result:
        connection = await self._reserved(name)
        call = OpenCall(self._rounds(connection, name, args, paused, answers), answers if paused is None else {})
        if not connection.is_modern:
            connection.asking = call
        return await self._followed(name, call, connection)

    async def _continued(self, name: str, paused: PausedCall, answers: Answers) -> Result:
        kept = self._held.take(paused["token"])
        if kept is None:
            raise McpLost(f"the call of {name} that waited for an answer was lost with its process")
        call, connection = kept
        async with self._turns:
            call.answer(answers)
            return await self._followed(name, call, connection)

    async def _followed(self, name: str, call: OpenCall, connection: Connection) -> Result:
        """The outcome of the call, up to its next question."""
        try:
            result = await call.outcome(self._limits.of(name))
        except Asked as asked:
            await self._asked(call, connection, asked)
            raise
        except TimeoutError:
            await self._ended(call, connection)
            raise McpTimeout(f"the MCP server {self.name} did not finish {name} in time") from None
        except asyncio.CancelledError:
            await self._ended(call, connection)
            raise
        except Exception as error:  # noqa: BLE001 - the transports raise whatever they like
            return await self._judged(name, connection, error)
        await self._release(connection)
        return result_of(result)

    async def _asked(self, call: OpenCall, connection: Connection, asked: Asked) -> None:
        if asked.paused["goes_on"] != "held":
            await self._release(connection)
            return
        if (dropped := self._held.put(call, connection, _user())) is not None:
            await self._ended(*dropped)

    async def _ended(self, call: OpenCall, connection: Connection) -> None:
        await call.drop()
        await self._discard(connection)

    async def _judged(self, name: str, connection: Connection, error: Exception) -> Result:
        """A protocol error is a result for the model; a missing login is a question; a lost connection is raised."""
        from mcp.shared.exceptions import MCPError

        if not isinstance(error, MCPError) or is_loss(error):
            await self._discard(connection)
            raise self._failure(error, sent=True) from None
        await self._release(connection)
        if (paused := link_of(error.error)) is not None:
            raise Asked(paused) from None
        if self._mode == AUTO and not connection.is_modern and _ASKS_IN_ROUNDS in error.error.message:
            self._in_rounds.add(name)
            return Result(f"{name} was not completed: its question needs another connection. Call it again.", True)
        return Result(f"Error {error.error.code}: {error.error.message}", failed=True)

    async def _rounds(
        self, connection: Connection, name: str, args: dict[str, Json], paused: PausedCall | None, answers: Answers
    ) -> CallToolResult:
        """The result; raises `Asked` for the questions of the next round. A round may only ask for patience."""
        from mcp_types import InputRequiredResult

        if name in self._readers:
            return await resources.call(connection.client, name, args)
        given = responses(paused, answers)
        state = paused["token"] if paused is not None else None
        for _ in range(_MOST_ROUNDS):
            result = await upstream.call_tool(connection.client, name, args, answers=given, state=state)
            if not isinstance(result, InputRequiredResult):
                return result
            if result.input_requests:
                raise Asked(round_of(result))
            given, state = {}, result.request_state
            await asyncio.sleep(_STATE_ONLY_SECONDS)
        raise RuntimeError(f"{name} was not finished after {_MOST_ROUNDS} rounds without a question")

    async def _reserved(self, name: str) -> Connection:
        """An open connection: the shared one, or one without another call."""
        async with self._opening:
            mode = self._mode_of(name)
            connection = await (self._joined() if mode == MODERN else self._free())
            connection = connection or await self._opened(mode)
        connection.users += 1
        return connection

    async def _joined(self) -> Connection | None:
        if self._shared is None or await self._shared.is_alive():
            return self._shared
        lost, self._shared = self._shared, None
        if not lost.users:
            await lost.close()
        return None

    async def _free(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if await connection.is_alive():
                return connection
            await connection.close()
        return None

    async def _release(self, connection: Connection) -> None:
        connection.asking = None
        connection.users -= 1
        if connection.is_modern:
            return
        if len(self._idle) >= self._parallel:  # a call that waited for a person has brought one back
            await connection.close()
        else:
            self._idle.append(connection)

    async def _discard(self, connection: Connection) -> None:
        """Other calls on a shared connection may still get their results."""
        connection.asking = None
        connection.users -= 1
        if self._shared is connection:
            self._shared = None
        if connection.users == 0:
            await connection.close()

    async def _opened(self, mode: str) -> Connection:
        try:
            connection = await self._negotiated(mode)
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - the transports raise whatever they like
            raise self._failure(error) from None
        if connection.is_modern:
            self._shared = connection
        return connection

    async def _negotiated(self, mode: str) -> Connection:
        """A server that refuses the handshake may know only the later protocol."""
        from mcp.shared.exceptions import MCPError

        try:
            return await self._connected(mode)
        except MCPError:
            if self._mode != AUTO or mode == MODERN:
                raise
        connection = await self._connected(AUTO)
        self._only_modern = connection.is_modern
        return connection

    async def _connected(self, mode: str) -> Connection:
        target = await asyncio.to_thread(self._target)  # imports FastMCP, which is slow
        self._credentials = _credentials_of(target)
        connection = Connection(target, mode, self._connect_seconds)
        await connection.open()
        return connection

    def _failure(self, error: Exception, *, sent: bool = False) -> McpFailed:
        credentials = self._credentials
        if credentials is not None and credentials.login_required:
            return LoginRequired(f"the MCP server {self.name} wants a person to sign in")
        return unreachable(self.name, error, sent=sent, status=credentials.status if credentials is not None else None)


def _user() -> str:
    """The user of the present run; outside a run there is only one."""
    try:
        return str(get_config()["configurable"].get("langgraph_auth_user_id", ""))
    except RuntimeError:
        return ""


def _credentials_of(target: Any) -> Credentials | None:
    """None for a server in this process or one that it starts."""
    from assent.assistant.mcp.login.credentials import Credentials

    auth = getattr(target, "auth", None)
    return auth if isinstance(auth, Credentials) else None


def _tool(listed: Any, *, trusted: bool) -> Tool:
    meta = listed.meta or {}
    tags = (meta.get("fastmcp") or meta.get("_fastmcp") or {}).get("tags") or ()
    hints = listed.annotations
    return Tool(
        name=listed.name,
        description=listed.description or "",
        schema=listed.input_schema,
        tags=tuple(map(str, tags)),
        reads_only=bool(trusted and hints and hints.read_only_hint and not hints.destructive_hint),
    )
