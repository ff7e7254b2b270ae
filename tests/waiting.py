"""Waiting for a condition: the one way in which tests wait for other tasks, threads and processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 90.0
"""Seconds. A busy machine is slow, and that is no failure."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1


async def until(condition: Callable[[], Awaitable[T | None]], complaint: str = "", *, patience: float = PATIENCE) -> T:
    """The first true result of the condition, which is asked again after pauses that grow."""
    deadline = time.monotonic() + patience
    for pause in pauses():
        if result := await condition():
            return result
        assert time.monotonic() < deadline, complaint or _unmet(condition, patience)
        await asyncio.sleep(pause)
    raise AssertionError


def wait_until(condition: Callable[..., Any], complaint: str = "", *, patience: float = PATIENCE) -> Any:
    """The same where no event loop runs."""
    deadline = time.monotonic() + patience
    for pause in pauses():
        if result := condition():
            return result
        assert time.monotonic() < deadline, complaint or _unmet(condition, patience)
        time.sleep(pause)
    raise AssertionError


async def until_file(path: Path) -> None:
    async def exists() -> bool:
        return path.exists()

    await until(exists, f"{path.name} was not made")


def pauses() -> Iterator[float]:
    """Seconds between two looks at a condition. They grow, because most conditions are requests, which cost time."""
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _unmet(condition: object, patience: float) -> str:
    return f"{getattr(condition, '__qualname__', condition)} was not true within {patience:g} seconds"
