"""Calls that go on in the background, because their server may ask over the open connection.

While a person decides, the call waits here with its connection, in this process: made again, it would repeat what it
did before the question.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any

from assent.assistant.mcp.questions import Answers, Asked, held, key_of
from assent.kernel.canonical import Json
from assent.kernel.ids import new_id


class OpenCall:
    """One call. `replayed` are answers that the person gave to a lost attempt of it."""

    def __init__(self, making: Coroutine[Any, Any, Any], replayed: Answers) -> None:
        self.token = new_id()
        self._replayed = dict(replayed)
        self._asked: asyncio.Future[Asked] = _future()
        self._answer: asyncio.Future[Json] = _future()
        self._turn = asyncio.Lock()
        self._making = asyncio.ensure_future(making)

    async def ask(self, value: dict[str, Any]) -> Json:
        """The person's answer to a question over the connection."""
        key = key_of(value)
        if key in self._replayed:
            return self._replayed.pop(key)
        async with self._turn:  # a server may ask several at once
            self._answer = _future()
            self._asked.set_result(Asked(held(self.token, key, value)))
            return await self._answer

    def answer(self, answers: Answers) -> None:
        """Continues the call after its question."""
        [key] = self._asked.result().paused["questions"]
        self._asked = _future()
        self._answer.set_result(answers[key])

    async def outcome(self, seconds: float) -> Any:
        """The result of the call; raises `Asked` for its next question, and `TimeoutError`."""
        first: set[asyncio.Future[Any]] = {self._making, self._asked}
        done, _ = await asyncio.wait(first, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise TimeoutError
        if self._making in done:
            return self._making.result()
        raise self._asked.result()

    async def drop(self) -> None:
        self._making.cancel()
        with suppress(Exception, asyncio.CancelledError):  # it is cancelled, so its error does not matter
            await self._making


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


class Held:
    """The calls of one server that wait for a person. If there are too many, the oldest call of the user with the most
    is dropped."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: dict[str, tuple[OpenCall, Any]] = {}
        self._users: dict[str, str] = {}

    def put(self, call: OpenCall, connection: Any, user: str) -> tuple[OpenCall, Any] | None:
        """Keeps the call with its connection, and returns the one that has to go. `user` started the call's run."""
        self._calls[call.token], self._users[call.token] = (call, connection), user
        if len(self._calls) <= self._most:
            return None
        counts = Counter(self._users[token] for token in self._calls)
        largest = max(counts, key=lambda each: (counts[each], each == user))
        return self.take(next(token for token in self._calls if self._users[token] == largest))

    def take(self, token: str | None) -> tuple[OpenCall, Any] | None:
        self._users.pop(token or "", None)
        return self._calls.pop(token or "", None)

    @property
    def connections(self) -> list[Any]:
        return [connection for _, connection in self._calls.values()]

    def take_all(self) -> Mapping[str, tuple[OpenCall, Any]]:
        calls, self._calls, self._users = self._calls, {}, {}
        return calls
