"""Arranges the nodes of a graph in rows, so that edges run downwards with few crossings.

Pure and deterministic. Back edges are laid out as if they ran downwards; an edge across several rows has a waypoint in
each row between, so that no line runs through a box.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Pair = tuple[str, str]
_SWEEPS = 8


@dataclass(frozen=True, slots=True)
class Layers:
    """Ordered rows of nodes and waypoints; `chains` maps each downward edge to its nodes and waypoints."""

    rows: list[list[str]]
    chains: dict[Pair, list[str]]
    back: frozenset[Pair] = frozenset()
    both_ways: frozenset[Pair] = frozenset()

    @property
    def links(self) -> list[Pair]:
        return [link for chain in self.chains.values() for link in pairwise(chain)]


def layers(
    nodes: Sequence[str], edges: Iterable[Pair], widths: Mapping[str, float], *, across: float, last: str
) -> Layers:
    """`across` is the maximum width of a row; `last` is the node below all others."""
    pairs = [pair for pair in dict.fromkeys(edges) if pair[0] != pair[1]]
    back = _back_edges(nodes, pairs)
    downwards = dict.fromkeys((end, start) if (start, end) in back else (start, end) for start, end in pairs)
    ranks = _ranks(nodes, downwards)
    if last in ranks:
        ranks[last] = max(ranks.values()) + 1
    row_of, count = _rows(nodes, ranks, widths, across)
    chains = {pair: _chain(pair, row_of) for pair in downwards}
    both = frozenset(pair for pair in pairs if (pair[1], pair[0]) in pairs)
    return Layers(_ordered(_filled(nodes, row_of, chains, count), chains), chains, back, both)


def _back_edges(nodes: Sequence[str], pairs: Sequence[Pair]) -> frozenset[Pair]:
    """The edges that close a cycle, in a depth-first walk from the first node."""
    following = {node: [end for start, end in pairs if start == node] for node in nodes}
    back, on_path, done = set[Pair](), set[str](), set[str]()
    for root in nodes:
        walk = [(root, iter(following[root]))] if root not in done else []
        on_path.update(node for node, _ in walk)
        while walk:
            node, ends = walk[-1]
            end = next(ends, None)
            if end is None:
                walk.pop()
                on_path.discard(node)
                done.add(node)
            elif end in on_path:
                back.add((node, end))
            elif end not in done:
                on_path.add(end)
                walk.append((end, iter(following[end])))
    return frozenset(back)


def _ranks(nodes: Sequence[str], downwards: Iterable[Pair]) -> dict[str, int]:
    """The length of the longest path to each node."""
    pairs = list(downwards)
    above = {node: [start for start, end in pairs if end == node] for node in nodes}
    ranks: dict[str, int] = {}
    waiting = list(nodes)
    while waiting:
        ready = [node for node in waiting if all(start in ranks for start in above[node])]
        for node in ready:
            ranks[node] = max((ranks[start] + 1 for start in above[node]), default=0)
        waiting = [node for node in waiting if node not in ranks]
    return ranks


def _rows(
    nodes: Sequence[str], ranks: Mapping[str, int], widths: Mapping[str, float], across: float
) -> tuple[dict[str, int], int]:
    row_of, row = dict[str, int](), -1
    for rank in sorted(set(ranks.values())):
        used = across + 1
        for node in (node for node in nodes if ranks[node] == rank):
            fresh = used + widths[node] > across
            row, used = (row + 1, widths[node]) if fresh else (row, used + widths[node])
            row_of[node] = row
    return row_of, row + 1


def _chain(pair: Pair, row_of: Mapping[str, int]) -> list[str]:
    start, end = pair
    between = range(row_of[start] + 1, row_of[end])
    return [start, *(waypoint(pair, row) for row in between), end]


def waypoint(pair: Pair, row: int) -> str:
    return f"\0{row}\0{pair[0]}\0{pair[1]}"


def is_waypoint(name: str) -> bool:
    return name.startswith("\0")


def _filled(
    nodes: Sequence[str], row_of: Mapping[str, int], chains: Mapping[Pair, Sequence[str]], count: int
) -> list[list[str]]:
    rows: list[list[str]] = [[] for _ in range(count)]
    for node in nodes:
        rows[row_of[node]].append(node)
    for chain in chains.values():
        for step, name in enumerate(chain[1:-1], row_of[chain[0]] + 1):
            rows[step].append(name)
    return rows


def _ordered(rows: list[list[str]], chains: Mapping[Pair, Sequence[str]]) -> list[list[str]]:
    """The order with the fewest crossings among several sweeps."""
    links = [link for chain in chains.values() for link in pairwise(chain)]
    above, below = neighbours(links), neighbours((end, start) for start, end in links)
    best, fewest = rows, _crossings(rows, links)
    for sweep in range(_SWEEPS):
        rows = _swept(rows, above) if sweep % 2 == 0 else _swept(rows[::-1], below)[::-1]
        crossings = _crossings(rows, links)
        if crossings < fewest:
            best, fewest = rows, crossings
    return best


def neighbours(links: Iterable[Pair]) -> dict[str, list[str]]:
    """The neighbours of each name in the previous row."""
    starts: dict[str, list[str]] = {}
    for start, end in links:
        starts.setdefault(end, []).append(start)
    return starts


def _swept(rows: Sequence[Sequence[str]], above: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Sorts each row by the mean position of its neighbours in the previous row."""
    swept = [list(rows[0])] if rows else []
    for row in rows[1:]:
        place = {name: index for index, name in enumerate(swept[-1])}
        middle = {
            name: sum(places) / len(places) if (places := [place[start] for start in above.get(name, ())]) else index
            for index, name in enumerate(row)
        }
        swept.append(sorted(row, key=middle.__getitem__))
    return swept


def _crossings(rows: Sequence[Sequence[str]], links: Sequence[Pair]) -> int:
    place = {name: (row, index) for row, names in enumerate(rows) for index, name in enumerate(names)}
    by_row: dict[int, list[tuple[int, int]]] = {}
    for start, end in links:
        by_row.setdefault(place[start][0], []).append((place[start][1], place[end][1]))
    return sum(_crossing(left, right) for gap in by_row.values() for left in gap for right in gap)


def _crossing(left: tuple[int, int], right: tuple[int, int]) -> bool:
    return left[0] < right[0] and left[1] > right[1]
