"""Store calls of runs that fail as planned: the n-th one of a thread's run, refused or committed and not answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import pytest

from assent.errors import Unavailable
from assent.runs.engine.attempts import Attempts
from assent.threads.model.runs import Run

ASK, ACT = "ask", "act"
"""The run that comes to its question, and the one that makes the approved call."""


@dataclass(frozen=True)
class Fault:
    phase: str
    at: int
    committed: bool = False
    """Whether the transaction of the first call that fails is committed: the answer is lost, not the work."""
    length: int = 1
    """How many calls in a row fail."""

    def hits(self, phase: str, number: int) -> bool:
        return phase == self.phase and self.at <= number < self.at + self.length


class Outages:
    """Counts the store calls of each thread's runs, and lets those fail that the thread's fault names."""

    def __init__(self) -> None:
        self.faults: dict[str, Fault] = {}
        self.calls: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self.injected = 0
        self._run: ContextVar[tuple[str, str] | None] = ContextVar("run", default=None)

    def entered(self, run: Run) -> None:
        self._run.set((run.thread_id, ACT if run.answers else ASK))

    def around(self, execute: Callable[..., Any]) -> Callable[..., Any]:
        async def call(tenant: str | None, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            fails, commits = self._next(function)
            result = await execute(tenant, function, *args, **kwargs) if commits or not fails else None
            if fails:
                self.injected += 1
                raise Unavailable("remaining connection slots are reserved")
            return result

        return call

    def _next(self, function: Callable[..., Any]) -> tuple[bool, bool]:
        """Whether the next call fails, and whether it is committed all the same."""
        run = self._run.get()
        if run is None:
            return False, False
        thread, phase = run
        self.calls[run].append(getattr(function, "__name__", repr(function)))
        fault, number = self.faults.get(thread), len(self.calls[run])
        if fault is None or not fault.hits(phase, number):
            return False, False
        return True, fault.committed and number == fault.at


@contextmanager
def outages(store: Any) -> Iterator[Outages]:
    """Around the store of a server that runs in this process."""
    failing, carry = Outages(), Attempts.execute

    async def carried(self: Attempts, tenant: str, run: Run) -> None:
        failing.entered(run)
        await carry(self, tenant, run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Attempts, "execute", carried)
        patch.setattr(store, "write", failing.around(store.write))
        patch.setattr(store, "read", failing.around(store.read))
        yield failing
