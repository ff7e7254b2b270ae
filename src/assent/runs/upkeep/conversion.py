"""Converts the checkpoints of earlier releases to parts, which share what did not change.

It may run beside servers and be interrupted at any time: each transaction converts a few rows of one thread, and
converted rows are no longer listed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from assent.kernel.store.ports import Store
from assent.threads.rows.state import conversion
from assent.threads.rows.state.conversion import Place

OnProgress = Callable[[int, int], None]
"""The rows that are done, and all of them."""

_LISTED, _AT_ONCE = 500, 10


class Damaged(NamedTuple):
    """A row that cannot be read. It stays as it is."""

    table: str
    key: dict[str, Any]
    reason: str


@dataclass(slots=True)
class Report:
    converted: int = 0
    damaged: list[Damaged] = field(default_factory=list)


class Conversion:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def is_needed(self) -> bool:
        return await self._store.read(None, conversion.is_needed)

    async def run(self, on_progress: OnProgress = lambda done, total: None) -> Report:
        total, done, report = await self._store.read(None, conversion.count), 0, Report()
        for table in conversion.TABLES:
            after: Place | None = None
            while places := await self._store.read(None, conversion.following, table, after, _LISTED):
                after = places[-1]
                for (tenant, _), of_thread in groupby(places, key=lambda place: place[:2]):
                    rows = list(of_thread)
                    for start in range(0, len(rows), _AT_ONCE):
                        some = rows[start : start + _AT_ONCE]
                        await self._convert(tenant, table, some, report)
                        done += len(some)
                        on_progress(done, max(total, done))
        return report

    async def _convert(self, tenant: str, table: str, places: list[Place], report: Report) -> None:
        try:
            await self._store.write(tenant, conversion.convert, table, places)
        except (ValueError, KeyError, IndexError) as error:
            if len(places) == 1:
                key = dict(zip(conversion.key_of(table), places[0], strict=True))
                report.damaged.append(Damaged(table, key, str(error)))
                return
            for place in places:
                await self._convert(tenant, table, [place], report)
        else:
            report.converted += len(places)
