"""The check of a question, held up for as long as a test wants: as one that takes seconds."""

from __future__ import annotations

import asyncio
import threading
from typing import Any


class Held:
    def __init__(self) -> None:
        self.begun, self.release = threading.Event(), threading.Event()

    def flaw(self, *_: Any) -> None:
        self.begun.set()
        self.release.wait(30)

    async def begins(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 30), "nothing is checked"
