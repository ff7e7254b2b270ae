"""The floor: the same graphs in one process without a server, on the checkpointer that LangGraph ships for SQLite.

Run as a process of its own that takes orders line by line, so that its rounds can stand between those of the servers.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.served import environment

THREADS = 50


class Floor:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def calls(self, graph: str, count: int) -> list[float]:
        """Milliseconds of each of `count` calls, on threads that take turns."""
        return self._asked(graph, [[f"{graph}-{number % THREADS}", {"text": "hi"}] for number in range(count)])

    def turns(self, thread_id: str, inputs: Sequence[object]) -> list[float]:
        """Milliseconds of each turn of a conversation."""
        return self._asked("chat", [[thread_id, input] for input in inputs])

    def _asked(self, graph: str, calls: Sequence[object]) -> list[float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([graph, calls]) + "\n")
        self._process.stdin.flush()
        taken: list[float] = json.loads(self._process.stdout.readline())
        return taken


@contextmanager
def floor(folder: Path) -> Iterator[Floor]:
    command = [sys.executable, "-m", "bench.floor", str(folder / "floor.db")]
    root = Path(__file__).parents[1]
    process = subprocess.Popen(
        command, cwd=root, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Floor(process)
    finally:
        process.communicate()  # closes its input, which ends it


async def _obey(database: str) -> None:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    from bench.graphs.small import builders

    async with AsyncSqliteSaver.from_conn_string(database) as saver:
        graphs = {name: builder.compile(checkpointer=saver) for name, builder in builders.items()}
        while line := await asyncio.to_thread(sys.stdin.readline):
            name, calls = json.loads(line)
            taken = [await _call(graphs[name], thread_id, input) for thread_id, input in calls]
            print(json.dumps(taken), flush=True)


async def _call(graph: Any, thread_id: str, input: Any) -> float:
    started = time.perf_counter()
    await graph.ainvoke(input, {"configurable": {"thread_id": thread_id}})
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    import uvloop

    uvloop.run(_obey(sys.argv[1]))
