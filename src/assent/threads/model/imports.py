"""The report of an import: counts, and a line for each refused object or difference that a person has to review."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from assent.kernel.ids import as_uuid


class Sort(StrEnum):
    """The kind of an imported object."""

    ASSISTANT = "assistant"
    MEMORY = "store item"
    THREAD = "thread"


class Fate(StrEnum):
    """The result for an object. `present`: an object with its id existed before."""

    TAKEN = "taken"
    PRESENT = "present"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Line:
    """About one object: why it was refused, or what differs after the import."""

    sort: Sort
    id: str
    text: str
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"sort": self.sort, "id": self.id, "text": self.text, "hint": self.hint}


@dataclass(slots=True)
class Report:
    source: str
    dry_run: bool = False
    waiting: int = 0
    """The number of imported threads that wait for a person."""
    counts: dict[Sort, dict[Fate, int]] = field(default_factory=lambda: {sort: dict.fromkeys(Fate, 0) for sort in Sort})
    problems: list[Line] = field(default_factory=list)
    notes: list[Line] = field(default_factory=list)

    def count(self, sort: Sort, fate: Fate) -> None:
        self.counts[sort][fate] += 1

    def refuse(self, sort: Sort, id: str, text: str, hint: str | None = None) -> None:
        self.count(sort, Fate.REFUSED)
        self.problems.append(Line(sort, id, text, hint))

    def note(self, id: str, text: str) -> None:
        self.notes.append(Line(Sort.THREAD, id, text))

    def to_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "dry_run": self.dry_run,
            "waiting": self.waiting,
            **{f"{sort.replace(' ', '_')}s": dict(fates) for sort, fates in self.counts.items()},
            "problems": [line.to_json() for line in self.problems],
            "notes": [line.to_json() for line in self.notes],
        }


def thread_id_for(foreign: str) -> str:
    """The id of an imported thread: its own if that is a UUID, otherwise a UUID derived from it."""
    return as_uuid(foreign) or str(uuid5(NAMESPACE_URL, f"langgraph:thread:{foreign}"))
