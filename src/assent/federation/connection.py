"""The LangGraph API of one deployment, as far as an inbox needs it, over the guarded client.

Servers differ: a thread may have no `interrupts`, so the state is read; an endpoint may be missing. Everything that a
deployment sends is untrusted, and checked here. A failure names the problem and the HTTP status, never what the
deployment sent: its answer may repeat the key, and more people read failures than may know the key.
"""

from __future__ import annotations

import errno
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from assent.errors import DeploymentFailed, TargetRefused
from assent.kernel import jsontext
from assent.threads.model.deployments import Trouble

if TYPE_CHECKING:
    from assent.outbox.client import Answer, Outbound

Json = dict[str, Any]

LARGEST_ANSWER = 32 * 1024 * 1024
LARGEST_INFO = 64 * 1024
TIMEOUT = 10.0
_FIELDS = ["thread_id", "updated_at", "metadata", "status", "interrupts"]
_STOPPED = (502, 503, 504)
_LONGEST_REASON = 200
_LONGEST_FACT, _MOST_FACTS = 100, 50
_SHORTEST_SECRET = 4  # a shorter header value occurs in texts by chance
_ID_IN_PATH = re.compile(r"^/(threads|assistants)/(?!search$)[^/]+")


def failed(problem: Trouble, message: str, *, unsure: bool = False, answered: int | None = None) -> DeploymentFailed:
    return DeploymentFailed(problem, message, hint=f"see {problem.page}", unsure=unsure, answered=answered)


@dataclass(frozen=True, slots=True)
class Seen:
    """A thread as its deployment shows it. `pending` is None where the thread does not say what it asks."""

    id: str
    status: str
    version: str
    graph_id: str | None
    assistant_id: str | None
    pending: list[Mapping[str, Any]] | None


class Connection:
    def __init__(self, outbound: Outbound, url: str, headers: Mapping[str, str]) -> None:
        self._outbound = outbound
        self._url = url
        self._headers = headers
        values = [value.casefold() for value in headers.values()]
        parts = {*values, *(word for value in values for word in value.split())}
        self._secrets = [part for part in parts if len(part) >= _SHORTEST_SECRET]

    async def info(self) -> Json:
        """Raises `not_langgraph` where another kind of server answers."""
        try:
            info = await self._call("GET", "/info", limit=LARGEST_INFO)
        except DeploymentFailed as refused:
            if refused.answered is None or refused.problem in (Trouble.STOPPED, Trouble.KEY_REFUSED):
                raise
            info = None
        if isinstance(info, dict) and ("version" in info or "flags" in info):
            texts = self._facts({name: info.get(name) for name in ("version", "langgraph_py_version")})
            return {**texts, **{name: self._facts(info[name]) for name in ("flags", "host") if name in info}}
        if await self._is_ok():  # LangGraph.js and Aegra have no /info of this form
            return {}
        raise failed(Trouble.NOT_LANGGRAPH, f"{self._url} is not a LangGraph server")

    def _facts(self, sent: Any) -> Json:
        """The flags and short texts of what the deployment says about itself."""
        named = list(sent.items())[:_MOST_FACTS] if isinstance(sent, dict) else []
        kept = {name: self._fact(value) for name, value in named if self._fact(name) == name}
        return {name: fact for name, fact in kept.items() if fact is not None}

    def _fact(self, value: Any) -> str | bool | None:
        return value if isinstance(value, bool) else self._without_secrets(value, _LONGEST_FACT)

    def _without_secrets(self, text: Any, longest: int) -> str | None:
        """The printable part of a text. None where it repeats a credential, or is no text."""
        printable = "".join(char for char in text if char.isprintable()) if isinstance(text, str) else ""
        repeats = any(secret in printable.casefold() for secret in self._secrets)
        return None if repeats else printable[:longest] or None

    async def _is_ok(self) -> bool:
        try:
            answer = await self._call("GET", "/ok", limit=LARGEST_INFO)
        except DeploymentFailed:
            return False
        return isinstance(answer, dict) and bool(answer.get("ok"))

    async def has_graph(self, graph: str, *, is_assistant: bool) -> bool:
        """A server without assistants has none to look for, so the graph counts as known."""
        try:
            if is_assistant:
                await self._call("GET", f"/assistants/{quote(graph, safe='')}")
                return True
            return bool(await self._call("POST", "/assistants/search", {"graph_id": graph, "limit": 1}))
        except DeploymentFailed as refused:
            if refused.answered not in (404, 422):
                raise
            return False

    async def threads(self, status: str, metadata: Json, *, limit: int, offset: int) -> list[Seen]:
        """Threads in this status, the last changed first."""
        body = {"status": status, "limit": limit, "offset": offset, "metadata": metadata, "select": _FIELDS}
        rows = await self._call("POST", "/threads/search", {**body, "sort_by": "updated_at", "sort_order": "desc"})
        if not isinstance(rows, list):
            raise failed(Trouble.NOT_LANGGRAPH, f"{self._url} has no LangGraph threads")
        return [_seen(row) for row in rows if isinstance(row, dict) and isinstance(row.get("thread_id"), str)]

    async def thread(self, thread_id: str) -> Seen | None:
        """None where it was deleted."""
        row = await self._found(f"/threads/{quote(thread_id, safe='')}")
        return _seen(row) if isinstance(row, dict) and "thread_id" in row else None

    async def pending(self, thread_id: str) -> list[Mapping[str, Any]]:
        """The questions that the thread waits for, by its state."""
        state = await self._found(f"/threads/{quote(thread_id, safe='')}/state")
        return list(_asked(state)) if isinstance(state, dict) else []

    async def state(self, thread_id: str) -> Json | None:
        state = await self._found(f"/threads/{quote(thread_id, safe='')}/state")
        return state if isinstance(state, dict) else None

    async def history(self, thread_id: str, limit: int) -> list[Json]:
        states = await self._call("POST", f"/threads/{quote(thread_id, safe='')}/history", {"limit": limit})
        return [state for state in states if isinstance(state, dict)] if isinstance(states, list) else []

    async def runs(self, thread_id: str, limit: int = 20) -> list[Json]:
        """The newest runs of the thread."""
        rows = await self._found(f"/threads/{quote(thread_id, safe='')}/runs?limit={limit}")
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

    async def start(self, thread_id: str, body: Json, *, timeout: float = TIMEOUT) -> Json:
        path = f"/threads/{quote(thread_id, safe='')}/runs"
        run = await self._call("POST", path, body, timeout=timeout)
        return run if isinstance(run, dict) else {}

    async def end(self, thread_id: str) -> None:
        """Ends the thread at its current state."""
        body = {"values": None, "as_node": "__end__"}
        await self._call("POST", f"/threads/{quote(thread_id, safe='')}/state", body)

    async def _found(self, path: str) -> Any:
        try:
            return await self._call("GET", path)
        except DeploymentFailed as refused:
            if refused.answered == 404:
                return None
            raise

    async def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        timeout: float = TIMEOUT,
        limit: int = LARGEST_ANSWER,
    ) -> Any:
        import httpx  # slow to import

        try:
            answer = await self._outbound.send(
                method,
                f"{self._url}{path}",
                headers={"content-type": "application/json"} if body is not None else {},
                credentials=self._headers,
                content=None if body is None else jsontext.dump(body).encode(),
                timeout=timeout,
                limit=limit,
            )
        except TargetRefused as refused:
            raise failed(Trouble.UNREACHABLE, self._reason(refused)) from refused
        except (TimeoutError, httpx.HTTPError) as error:
            raise _not_reached(self._url, error, timeout, self._reason(error)) from error
        return self._read(answer, f"{method} {_endpoint(path)}", limit)

    def _reason(self, error: Exception) -> str:
        """The text of the error, which may name the target of a redirect."""
        return self._without_secrets(str(error), _LONGEST_REASON) or type(error).__name__

    def _read(self, answer: Answer, request: str, limit: int) -> Any:
        if not 200 <= answer.status < 300:
            raise _refusal(self._url, answer.status, request)
        if not answer.complete:
            raise failed(Trouble.FAILING, f"the answer to {request} has more than {limit} bytes")
        try:
            return jsontext.load(answer.body)
        except ValueError:
            message = f"{self._url} does not answer {request} as a LangGraph server"
            raise failed(Trouble.NOT_LANGGRAPH, message, answered=200) from None


def _endpoint(path: str) -> str:
    """The path without the ids, which the deployment chose."""
    return _ID_IN_PATH.sub(r"/\1/{id}", path.partition("?")[0])


def _refusal(url: str, status: int, request: str) -> DeploymentFailed:
    if status in (401, 403):
        reason = f"{url} refused the key of this deployment"
        return failed(Trouble.KEY_REFUSED, f"{reason}: {status} to {request}", answered=status)
    if status in _STOPPED:
        return failed(Trouble.STOPPED, f"{url} is stopped, or starting: it answers {status}", answered=status)
    return failed(Trouble.FAILING, f"{url} answered {status} to {request}", answered=status)


def _not_reached(url: str, error: Exception, timeout: float, reason: str) -> DeploymentFailed:
    import httpx

    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return failed(Trouble.TLS, f"no secure connection to {url}: {reason}")
    if any(isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED for cause in causes):
        return failed(Trouble.STOPPED, f"no server listens at {url}: it is stopped, or the port is wrong")
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return failed(Trouble.UNREACHABLE, f"{url} cannot be reached: {reason}")
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        message = f"{url} did not answer within {timeout:g} seconds"
        return failed(Trouble.UNREACHABLE, message, unsure=True)
    if isinstance(error, httpx.RemoteProtocolError) and "disconnect" not in str(error).lower():
        return failed(Trouble.NOT_LANGGRAPH, f"{url} does not answer with HTTP", unsure=True)
    return failed(Trouble.UNREACHABLE, f"the connection to {url} broke: {type(error).__name__}", unsure=True)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                yield from _causes(inner)
        error = error.__cause__ or error.__context__


def _seen(row: Json) -> Seen:
    metadata = row.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    asked = row.get("interrupts")
    return Seen(
        id=str(row["thread_id"]),
        status=str(row.get("status")),
        version=str(row.get("updated_at")),
        graph_id=_name(named.get("graph_id")),
        assistant_id=_name(named.get("assistant_id")),
        pending=None if asked is None else list(_listed(asked)),
    )


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _listed(asked: Any) -> Iterator[Mapping[str, Any]]:
    """The interrupts of a thread: by task, or as a list."""
    if isinstance(asked, dict):
        for task, raised in asked.items():
            yield from _raised(raised, str(task))
    else:
        yield from _raised(asked, "")


def _asked(state: Json) -> Iterator[Mapping[str, Any]]:
    tasks = state.get("tasks")
    for task in tasks if isinstance(tasks, list) else ():
        if isinstance(task, dict):
            yield from _raised(task.get("interrupts"), str(task.get("id")))


def _raised(raised: Any, task: str) -> Iterator[Mapping[str, Any]]:
    for place, entry in enumerate(raised if isinstance(raised, list) else ()):
        if isinstance(entry, dict):
            known = entry.get("id") or entry.get("interrupt_id") or f"task:{task}:{place}"
            yield {
                "id": str(known),
                "value": entry.get("value"),
                "response_schema": entry.get("response_schema"),
            }
