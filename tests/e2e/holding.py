"""Helpers for tests of running servers: waiting for a condition, holding the graph `slow` at its gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langgraph_sdk.client import LangGraphClient

from tests.waiting import until


async def new_thread(client: LangGraphClient, **metadata: Any) -> str:
    return str((await client.threads.create(metadata=metadata))["thread_id"])


class Gates:
    """A folder at whose gates `slow` stops, until they are opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def input(self, text: str = "one") -> dict[str, str]:
        return {"text": text, "gate": str(self.folder)}

    async def reached(self, step: str) -> None:
        async def is_there() -> bool:
            return (self.folder / f"{step}.started").exists()

        await until(is_there)

    def open(self, *steps: str) -> None:
        for step in steps or ("a", "b", "c"):
            (self.folder / f"{step}.go").touch()


async def held(client: LangGraphClient, folder: Path, **options: Any) -> tuple[str, str, Gates]:
    """A thread, its run that has come to the first gate, and the gates."""
    gates, thread = Gates(folder), await new_thread(client)
    run = await client.runs.create(thread, "slow", input=gates.input(), **options)
    await gates.reached("a")
    return thread, run["run_id"], gates
