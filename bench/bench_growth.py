"""A conversation that becomes long: the size of its database and the time of a turn, turn by turn.

A turn of the long conversation is compared with first turns of other ones right after it, on a second server, so that
other load on the machine affects both alike. Assent and the floor (the graph on LangGraph's own SQLite checkpointer,
without a server) take turns, batch by batch. The peer answers about one run in a second, so its conversation is
shorter. The curves are drawn in docs/images/growth.svg.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.chart import Panel, svg
from bench.clients import Client
from bench.floor import Floor, floor
from bench.reference import reference
from bench.rows import Row, at_most, ratio_at_most, reported
from bench.served import Command, Served, assent, serving, workplace

TURNS, PEER_TURNS = 1_000, 60
BATCH, PEER_BATCH = 20, 20
FIRST_TURNS = 10
HALF_A_TURN = 400
CHART = Path(__file__).parents[1] / "docs" / "images" / "growth.svg"
_WORDS = "the order was sent on monday and they said it would come by noon but it has not".split()  # noqa: SIM905
_MEGA = 1e6


@dataclass
class Curve:
    """Of one contestant: the size after each batch, and its turns beside first turns of other conversations."""

    sizes: list[tuple[float, float]] = field(default_factory=list)
    ratios: list[tuple[float, float]] = field(default_factory=list)
    last: float = 0.0
    first: float = 0.0

    def add(self, turns: int, taken: Sequence[float], beside: Sequence[float], size: float) -> None:
        self.last, self.first = median(taken), median(beside)
        self.ratios.append((turns, self.last / self.first))
        self.sizes.append((turns, size / _MEGA))


@dataclass
class Spent:
    """CPU-seconds for a turn of the long conversation and for a first turn beside it, in the last batch."""

    long: float = 0.0
    first: float = 0.0


@dataclass
class Place:
    """A server with a database of its own, and a connection to it."""

    folder: Path
    served: Served
    client: Client


def run() -> list[Row]:
    ours, ground, peer, spent = Curve(), Curve(), Curve(), Spent()
    with _served(assent) as long, _served(assent) as first, _floor() as (there, file), _floor() as (beside, _):
        thread_id = long.client.new_thread()
        _first_turns(first)  # to warm up
        for turns in range(BATCH, TURNS + 1, BATCH):
            spent, numbers = Spent(), range(turns - BATCH, turns)
            ours.add(
                turns, *_measured(long, first, thread_id, numbers, spent), _database_size(long.folder / "assent.db")
            )
            taken = there.turns("conversation", [said(number) for number in numbers])
            firsts = [beside.turns(f"{turns} {number}", [said(number)])[0] for number in range(FIRST_TURNS)]
            ground.add(turns, taken, firsts, _database_size(file))
    with _served(reference) as long:
        thread_id = long.client.new_thread()
        for turns in range(PEER_BATCH, PEER_TURNS + 1, PEER_BATCH):
            numbers = range(turns - PEER_BATCH, turns)
            peer.add(turns, *_measured(long, long, thread_id, numbers, Spent()), _files_size(long.folder))
    _draw({"Assent": ours, "LangGraph's SQLite saver": ground, "langgraph dev": peer})
    return _rows(ours, ground, peer, spent)


@contextmanager
def _served(command: Command) -> Iterator[Place]:
    with workplace() as folder, serving(command, folder) as served:
        client = Client(served.port)
        yield Place(folder, served, client)
        client.close()


@contextmanager
def _floor() -> Iterator[tuple[Floor, Path]]:
    with workplace() as folder, floor(folder) as ground:
        yield ground, folder / "floor.db"


def _measured(
    long: Place, first: Place, thread_id: str, numbers: range, spent: Spent
) -> tuple[list[float], list[float]]:
    """Milliseconds of these turns, and of first turns beside them, half a batch at a time."""
    taken, beside, middle = list[float](), list[float](), len(numbers) // 2
    for half in (numbers[:middle], numbers[middle:]):
        before = long.served.cpu_seconds()
        taken += [_turn(long.client, thread_id, number) for number in half]
        spent.long += (long.served.cpu_seconds() - before) / len(numbers)
        before = first.served.cpu_seconds()
        beside += _first_turns(first)
        spent.first += (first.served.cpu_seconds() - before) / FIRST_TURNS / 2
    return taken, beside


def _first_turns(place: Place) -> list[float]:
    threads = [place.client.new_thread() for _ in range(FIRST_TURNS)]
    return [_turn(place.client, thread_id, number) for number, thread_id in enumerate(threads)]


def _turn(client: Client, thread_id: str, number: int) -> float:
    message, started = said(number), time.perf_counter()
    client.wait(thread_id, "chat", input=message)
    return (time.perf_counter() - started) * 1000


def said(number: int) -> dict[str, object]:
    """The input of a turn. The reply has the same length."""
    dice = random.Random(number)
    text = " ".join(dice.choice(_WORDS) for _ in range(HALF_A_TURN))[:HALF_A_TURN]
    return {"messages": [{"type": "human", "content": text}]}


def _database_size(file: Path) -> float:
    """As it is without the journal beside it."""
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        [pages], [bytes] = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    connection.close()
    return float(pages * bytes)


def _files_size(folder: Path) -> float:
    return float(sum(file.stat().st_size for file in (folder / ".langgraph_api").glob("**/*") if file.is_file()))


def _draw(curves: dict[str, Curve]) -> None:
    def panel(title: str, unit: str, points: Callable[[Curve], list[tuple[float, float]]]) -> Panel:
        shown = {name: [point for point in points(curve) if point[1] > 0] for name, curve in curves.items()}
        return Panel(title, unit, {name: found for name, found in shown.items() if found})

    panels = [
        panel("Size of the database", "MB", lambda curve: curve.sizes),
        panel("Time of a turn, against a first turn", "×", lambda curve: curve.ratios),
    ]
    CHART.write_text(svg(panels, "turns"), encoding="utf-8")


def _rows(ours: Curve, ground: Curve, peer: Curve, spent: Spent) -> list[Row]:
    (_, size), (_, floor_size), (_, peer_size) = ours.sizes[-1], ground.sizes[-1], peer.sizes[-1]
    last_turn, small = f"the {TURNS:,}th turn / a first", f"{PEER_TURNS} turns, files of langgraph dev / ours"
    return [
        at_most(f"{TURNS:,} turns of 800 bytes, database", size, "MB", target=12, peer=floor_size),
        ratio_at_most(last_turn, ours.last, "ms", peer=ours.first, target=5),
        ratio_at_most(f"{last_turn}, CPU", spent.long * 1000, "CPU-ms", peer=spent.first * 1000, target=5),
        reported(f"{last_turn}, floor", ground.last, "ms", peer=ground.first),
        reported(small, peer_size, "MB", peer=_size_at(ours, PEER_TURNS)),
    ]


def _size_at(curve: Curve, turns: int) -> float:
    return next(size for number, size in curve.sizes if number >= turns)
