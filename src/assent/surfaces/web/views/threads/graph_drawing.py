"""Draws a graph as boxes and lines for an SVG template. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unicodedata import east_asian_width

from assent.surfaces.web.views.threads import graph_layers
from assent.surfaces.web.views.threads.graph_layers import Layers, Pair, is_waypoint, neighbours

START, END = "__start__", "__end__"
MOST_NODES = 150
_HEIGHT, _ROW, _GAP, _MARGIN = 30, 68, 16, 12
_CHARACTER, _PADDING, _NARROWEST = 7.2, 24, 64
_LONGEST, _LONGEST_LABEL = 22, 16
_ACROSS = 560
_WAYPOINT = 8
_BESIDE = 9
"""Half the distance between two opposite edges of the same nodes."""
_PASSES = 6
_NARROW = 336
_WORDS = {START: "START", END: "END"}


@dataclass(frozen=True, slots=True)
class Box:
    id: str
    label: str
    title: str
    x: float
    y: float
    width: float
    waits: bool
    height: int = _HEIGHT

    @property
    def terminal(self) -> bool:
        return self.id in _WORDS

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 1)


@dataclass(frozen=True, slots=True)
class Line:
    path: str
    title: str
    conditional: bool
    label: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Drawing:
    width: int
    height: int
    boxes: list[Box]
    lines: list[Line]

    @property
    def narrow(self) -> bool:
        """Whether the drawing fits into the side column."""
        return self.width <= _NARROW

    @property
    def words(self) -> str:
        """The edges as text, for screen readers."""
        return "; ".join(line.title for line in self.lines)


def draw(graph: Mapping[str, Any], waiting: Collection[str] = ()) -> Drawing | None:
    """Draws LangGraph's nodes and edges; `waiting` are the nodes where a run waits. None: too many nodes."""
    nodes = [str(node["id"]) for node in graph["nodes"]]
    if not 0 < len(nodes) <= MOST_NODES:
        return None
    edges = _edges(graph, frozenset(nodes))
    widths = {node: _width(_shown(node, _LONGEST)) for node in nodes}
    spaced = {node: width + _GAP for node, width in widths.items()}
    layers = graph_layers.layers(nodes, edges, spaced, across=_ACROSS, last=END)
    places = _places(layers, widths)
    boxes = [_box(node, places[node], widths[node], node in waiting) for node in nodes]
    lines = [_line(pair, edge, layers, places, widths) for pair, edge in edges.items()]
    return Drawing(*_size(boxes, places, edges, len(layers.rows)), boxes, lines)


@dataclass(frozen=True, slots=True)
class _Edge:
    """All edges from one node to another; conditional if every one of them is."""

    conditional: bool
    labels: tuple[str, ...]


def _edges(graph: Mapping[str, Any], nodes: Collection[str]) -> dict[Pair, _Edge]:
    edges: dict[Pair, _Edge] = {}
    for edge in graph["edges"]:
        pair, data = (str(edge["source"]), str(edge["target"])), edge.get("data")
        before = edges.get(pair, _Edge(True, ()))
        labels = before.labels if data is None else (*before.labels, str(data))
        if pair[0] in nodes and pair[1] in nodes:
            edges[pair] = _Edge(before.conditional and bool(edge.get("conditional")), labels)
    return edges


def _size(boxes: Sequence[Box], places: Mapping[str, Place], pairs: Iterable[Pair], rows: int) -> tuple[int, int]:
    loops = any(start == end for start, end in pairs)
    right = max([box.x + box.width for box in boxes] + [x for x, _ in places.values()]) + (_ROW / 2 if loops else 0)
    return round(right + _MARGIN), rows * _ROW - (_ROW - _HEIGHT) + 2 * _MARGIN


Place = tuple[float, float]
"""The middle of a box's upper side, or a waypoint."""


def _places(layers: Layers, widths: Mapping[str, float]) -> dict[str, Place]:
    """Places nodes as close as possible to their neighbours; a row keeps its order and minimum distances."""
    above, below = neighbours(layers.links), neighbours((end, start) for start, end in layers.links)
    x: dict[str, float] = {}
    for row in layers.rows:
        x |= _packed(row, widths, [0.0] * len(row))
    for sweep in range(_PASSES):
        linked = above if sweep % 2 == 0 else below
        for row in layers.rows if sweep % 2 == 0 else layers.rows[::-1]:
            wanted = [_mean([x[neighbour] for neighbour in linked.get(name, ())] or [x[name]]) for name in row]
            x |= _packed(row, widths, wanted)
    left = min(x[name] - widths.get(name, _WAYPOINT) / 2 for name in x) - _MARGIN
    rows = {name: index for index, row in enumerate(layers.rows) for name in row}
    return {name: (round(x[name] - left, 1), rows[name] * _ROW + _MARGIN) for name in x}


def _packed(row: Sequence[str], widths: Mapping[str, float], wanted: Sequence[float]) -> dict[str, float]:
    """Packs a row: minimum distances, and each name as near as possible to its wanted position."""
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + _distance(left, right, widths))
    groups: list[list[float]] = []
    for wish, offset in zip(wanted, offsets, strict=False):
        groups.append([wish - offset])
        while len(groups) > 1 and _mean(groups[-2]) >= _mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    free = [_mean(group) for group in groups for _ in group]
    return {name: place + offset for name, place, offset in zip(row, free, offsets, strict=False)}


def _distance(left: str, right: str, widths: Mapping[str, float]) -> float:
    gap = _GAP / 2 if is_waypoint(left) and is_waypoint(right) else _GAP
    return (widths.get(left, _WAYPOINT) + widths.get(right, _WAYPOINT)) / 2 + gap


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _box(node: str, place: Place, width: float, waits: bool) -> Box:
    x, y = place
    return Box(node, _shown(node, _LONGEST), _WORDS.get(node, node), round(x - width / 2, 1), y, width, waits)


def _line(pair: Pair, edge: _Edge, layers: Layers, places: Mapping[str, Place], widths: Mapping[str, float]) -> Line:
    labels = ", ".join(edge.labels)
    title = f"{_WORDS.get(pair[0], pair[0])} → {_WORDS.get(pair[1], pair[1])}{f' ({labels})' if labels else ''}"
    label = _shown(labels, _LONGEST_LABEL)
    if pair[0] == pair[1]:
        x, y = places[pair[0]]
        right = x + widths[pair[0]] / 2
        return Line(_loop(right, y), title, edge.conditional, label, right + 20, y + _HEIGHT / 2)
    points = _points(pair, layers, places)
    (x1, y1), (x2, y2) = points[:2]
    return Line(_curve(points), title, edge.conditional, label, round((x1 + x2) / 2, 1), round((y1 + y2) / 2, 1))


def _points(pair: Pair, layers: Layers, places: Mapping[str, Place]) -> list[Place]:
    """The points of an edge from source to target; a back edge runs upwards."""
    back = pair in layers.back
    down = (pair[1], pair[0]) if back else pair
    chain = layers.chains[down]
    aside = (_BESIDE if back else -_BESIDE) if pair in layers.both_ways else 0
    points = []
    for index, name in enumerate(chain):
        x, y = places[name]
        if is_waypoint(name):
            points += [(x + aside, y), (x + aside, float(y + _HEIGHT))]
        else:
            points.append((x + aside, float(y + _HEIGHT) if index == 0 else y))
    return points[::-1] if back else points


def _curve(points: Sequence[Place]) -> str:
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x1, y1), (x2, y2) in pairwise(points):
        half = (y1 + y2) / 2
        path += f"V{y2:g}" if x1 == x2 else f"C{x1:g} {half:g} {x2:g} {half:g} {x2:g} {y2:g}"
    return path


def _loop(right: float, y: float) -> str:
    out = right + 24
    return f"M{right:g} {y + 22:g}C{out:g} {y + 30:g} {out:g} {y:g} {right + 1:g} {y + 8:g}"


def _width(label: str) -> float:
    letters = sum(2 if east_asian_width(char) in "WF" else 1 for char in label)
    return max(_NARROWEST, round(letters * _CHARACTER + _PADDING))


def _shown(name: str, longest: int) -> str:
    name = _WORDS.get(name, name)
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
