"""The inbox: what a reviewer waits for. How long the first page takes among few items and among very many, and how long
it is from the click on Approve until the approved call begins.

The floor of the list is our own time with few items. A decision has none: it is judged by the clock.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median

from assent.kernel.ids import new_id
from bench.items import MANY, Caller, fill, gated, on_disk, reviewer
from bench.rows import Row, at_most, ratio_at_most
from bench.served import serving

FEW = 1_000
LISTS = 50
ROUNDS, DECISIONS, WARM_UP = 5, 40, 20
FILTER = "/api/inbox/items?filter=is%3Apending"


def run() -> list[Row]:
    return [*_lists(), *_decisions()]


# The list


def _lists() -> list[Row]:
    taken: dict[int, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        callers = {count: stack.enter_context(_filled(count)) for count in (FEW, MANY)}
        for caller in callers.values():
            caller.get(FILTER)
        for _ in range(LISTS):
            for count, caller in callers.items():
                began = time.perf_counter()
                found = caller.get(FILTER)
                taken[count].append((time.perf_counter() - began) * 1000)
                assert len(found["items"]) == 50
    few, many = median(taken[FEW]), median(taken[MANY])
    return [ratio_at_most(f"inbox, first page, {MANY:,} items / {FEW:,}", many, "ms", peer=few, target=3)]


@contextmanager
def _filled(count: int) -> Iterator[Caller]:
    with on_disk() as folder:
        began = time.perf_counter()
        asyncio.run(fill(folder / "assent.db", count))
        print(f"{count:,} items made in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
        with serving(gated, folder) as served, closing(Caller(served.port)) as caller:
            yield caller


def _decisions() -> list[Row]:
    """Decided by HTTP; the tool notes when it was called, by the clock that all processes of a machine share. Of some
    rounds the quietest counts: what else the machine does is not the inbox's."""
    with on_disk() as folder:
        key = asyncio.run(reviewer(folder / "assent.db"))
        with serving(gated, folder) as served, closing(Caller(served.port, key)) as caller:
            for _ in range(WARM_UP):
                _decide(caller, folder)
            rounds = [[_decide(caller, folder) for _ in range(DECISIONS)] for _ in range(ROUNDS)]
    answered, started = (min((_figures(one, index) for one in rounds), key=median) for index in (0, 1))
    late = started[int(0.95 * len(started))]
    return [
        at_most("decide → approved call begins, p50", median(started), "ms", target=12),
        Row("decide → approved call begins, p95", late, "ms", "reported", True),
        Row("decide → answered, p50", median(answered), "ms", "reported", True),
    ]


def _figures(measured: list[tuple[float, float]], index: int) -> list[float]:
    return sorted(one[index] for one in measured)


def _decide(caller: Caller, folder: Path) -> tuple[float, float]:
    """Milliseconds until the decision was answered, and until its call was made."""
    tag, log = new_id(), folder / "effects"
    call = [{"name": "act", "args": {"log": str(log), "tag": tag}}]
    thread = caller.post("/threads", {})["thread_id"]
    body = {"assistant_id": "gated", "input": {"messages": [{"role": "user", "content": json.dumps(call)}]}}
    caller.post(f"/threads/{thread}/runs/wait", body)
    [item] = caller.get(f"/api/inbox/items?filter=thread%3A{thread}")["items"]
    said = {"revision": item["revision"], "hash": item["hash"], "verb": "approve"}
    sent = time.monotonic_ns()
    caller.post(f"/api/inbox/items/{item['id']}/decision", said)
    answered = time.monotonic_ns()
    return (answered - sent) / 1e6, (_called(Path(f"{log}.calls"), tag) - sent) / 1e6


def _called(calls: Path, tag: str) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for line in calls.read_text().splitlines() if calls.exists() else ():
            if line.startswith(tag) and line.count(" ") == 1:
                return int(line.split()[1])
        time.sleep(0.002)
    raise RuntimeError("the call was not made")
