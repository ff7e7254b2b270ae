"""The LangGraph API of one deployment, as far as an inbox needs it, over the guarded client.

Servers differ: a thread may have no `interrupts`, so the state is read; an endpoint may be missing; Aegra knows neither
`select` and `sort_by` nor the metadata of runs. Everything that a deployment sends is untrusted, and checked here. A
failure names the problem and the HTTP status, never what the deployment sent: its answer may repeat the key, and more
people read failures than may know the key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from assent.errors import DeploymentFailed, TargetRefused
from assent.federation.failures import failed, not_reached, refusal
from assent.federation.seen import Seen, asked, is_plain, seen
from assent.kernel import canonical, fair_threads, jsontext
from assent.threads.model.deployments import Trouble

if TYPE_CHECKING:
    from assent.outbox.client import Answer, Outbound

Json = dict[str, Any]

LARGEST_ANSWER = 32 * 1024 * 1024
LARGEST_INFO = 64 * 1024
MOST_VALUES = 500_000
"""Of one answer: parsing creates them at once, and everybody waits meanwhile."""
TIMEOUT = 10.0
_FIELDS = ["thread_id", "updated_at", "metadata", "status", "interrupts"]
_LONGEST_REASON = 200
_LONGEST_FACT, _MOST_FACTS = 100, 50
_SHORTEST_SECRET = 4  # a shorter header value occurs in texts by chance
_RUNS, _MOST_PAGES = 20, 200
_ID_IN_PATH = re.compile(r"^/(threads|assistants)/(?!search$)[^/]+")


class Connection:
    def __init__(self, outbound: Outbound, url: str, headers: Mapping[str, str]) -> None:
        self._outbound = outbound
        self._url = url
        self._headers = headers
        self.sorts = True
        """Whether its threads come in the requested order, as far as is known."""
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
        """Threads in this status, the last changed first where the server sorts them."""
        body = {"status": status, "limit": limit, "offset": offset, "metadata": metadata, "select": _FIELDS}
        try:
            rows = await self._call("POST", "/threads/search", {**body, "sort_by": "updated_at", "sort_order": "desc"})
        except DeploymentFailed as refused:
            if refused.answered not in (404, 405):
                raise
            raise failed(Trouble.NOT_LANGGRAPH, f"{refused.message}: no LangGraph server is at this path") from None
        if not isinstance(rows, list):
            raise failed(Trouble.NOT_LANGGRAPH, f"{self._url} has no LangGraph threads")
        if any(isinstance(row, dict) and "created_at" in row for row in rows):
            self.sorts = False  # it ignores `select`, so it may ignore `sort_by` as well
        return [seen(row) for row in rows if isinstance(row, dict) and is_plain(row.get("thread_id"))]

    async def thread(self, thread_id: str) -> Seen | None:
        """None where it was deleted."""
        row = await self._found(f"/threads/{quote(thread_id, safe='')}")
        return seen(row) if isinstance(row, dict) and "thread_id" in row else None

    async def pending(self, thread_id: str) -> list[Mapping[str, Any]]:
        """The questions that the thread waits for, by its state."""
        state = await self._found(f"/threads/{quote(thread_id, safe='')}/state")
        return list(asked(state)) if isinstance(state, dict) else []

    async def state(self, thread_id: str) -> Json | None:
        state = await self._found(f"/threads/{quote(thread_id, safe='')}/state")
        return state if isinstance(state, dict) else None

    async def history(self, thread_id: str, limit: int) -> list[Json]:
        states = await self._call("POST", f"/threads/{quote(thread_id, safe='')}/history", {"limit": limit})
        return [state for state in states if isinstance(state, dict)] if isinstance(states, list) else []

    async def runs(self, thread_id: str) -> list[Json]:
        """The runs of the thread, the newest first: all of them, or the latest. LangGraph.js lists the oldest first."""
        path, listed = f"/threads/{quote(thread_id, safe='')}/runs?limit={_RUNS}", list[Json]()
        for page in range(_MOST_PAGES):
            rows = await self._found(f"{path}&offset={page * _RUNS}")
            fresh = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
            listed += fresh
            if len(fresh) < _RUNS or _created(fresh[0]) >= _created(fresh[-1]):
                break
        return sorted(listed, key=_created, reverse=True)

    async def latest_run(self, thread_id: str) -> Json:
        """The newest run of the thread; empty if it has none. Two rows show the order in which the server lists."""
        rows = await self._found(f"/threads/{quote(thread_id, safe='')}/runs?limit=2")
        listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        if len(listed) > 1 and _created(listed[0]) < _created(listed[1]):
            listed = await self.runs(thread_id)
        return next(iter(listed), {})

    async def start(self, thread_id: str, body: Json, *, timeout: float = TIMEOUT) -> Json:
        path = f"/threads/{quote(thread_id, safe='')}/runs"
        run = await self._call("POST", path, body, timeout=timeout)
        return run if isinstance(run, dict) else {}

    async def end(self, thread_id: str) -> None:
        """Ends the thread at its current state."""
        path = f"/threads/{quote(thread_id, safe='')}/state"
        answer = await self._call("POST", path, {"values": None, "as_node": "__end__"})
        if isinstance(answer, dict) and "tasks" in answer:  # Aegra takes null for a request to read the state
            await self._call("POST", path, {"values": [], "as_node": "__end__"})

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
            raise not_reached(self._url, error, timeout, self._reason(error)) from error
        return await self._read(answer, f"{method} {_endpoint(path)}", limit)

    def _reason(self, error: Exception) -> str:
        """The text of the error, which may name the target of a redirect."""
        return self._without_secrets(str(error), _LONGEST_REASON) or type(error).__name__

    async def _read(self, answer: Answer, request: str, limit: int) -> Any:
        if not 200 <= answer.status < 300:
            raise refusal(self._url, answer.status, request)
        if not answer.complete:
            raise failed(Trouble.FAILING, f"the answer to {request} has more than {limit} bytes")
        try:
            return await _parsed(answer.body)
        except canonical.JsonTooLarge as error:
            raise failed(Trouble.FAILING, f"the answer to {request} has {error}") from None
        except ValueError:
            message = f"{self._url} does not answer {request} as a LangGraph server"
            raise failed(Trouble.NOT_LANGGRAPH, message, answered=200) from None


async def _parsed(body: bytes) -> Any:
    return _load(body) if len(body) <= fair_threads.LARGE_BYTES else await fair_threads.alone(_load, body)


def _load(body: bytes) -> Any:
    if canonical.has_more_values(body.decode(), MOST_VALUES):
        raise canonical.JsonTooLarge(f"more than {MOST_VALUES} values")
    return jsontext.load(body)


def _endpoint(path: str) -> str:
    """The path without the ids, which the deployment chose."""
    return _ID_IN_PATH.sub(r"/\1/{id}", path.partition("?")[0])


def _created(run: Json) -> str:
    return str(run.get("created_at"))
