"""A graph's picture: the same each time, nothing on top of anything else, circles and large graphs included."""

import random
import re
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assent.surfaces.web.views.threads.graph_drawing import END, MOST_NODES, START, Drawing, draw

AGENT = (START, "agent"), ("agent", "tools"), ("tools", "agent"), ("agent", END)


def graph(*edges: tuple[str, str], conditional: bool = False, data: str | None = None) -> dict[str, Any]:
    nodes = dict.fromkeys([START, *(node for edge in edges for node in edge)])
    drawn = [{"source": start, "target": end, "conditional": conditional, "data": data} for start, end in edges]
    return {"nodes": [{"id": node} for node in nodes], "edges": drawn}


def drawn(found: dict[str, Any], *waiting: str) -> Drawing:
    drawing = draw(found, waiting)
    assert drawing is not None
    return drawing


def rows(drawing: Drawing) -> dict[str, float]:
    return {box.id: box.y for box in drawing.boxes}


def large(seed: int = 4, count: int = 40) -> dict[str, Any]:
    dice = random.Random(seed)
    names = [START, *(f"a_node_with_quite_a_long_name_{number}" for number in range(count)), END]
    edges = [(names[dice.randrange(max(0, index - 6), index)], names[index]) for index in range(1, len(names))]
    return graph(*edges, *((dice.choice(names[20:-1]), dice.choice(names[1:20])) for _ in range(12)))


def overlap(drawing: Drawing) -> list[tuple[str, str]]:
    return [
        (first.id, other.id)
        for first, other in combinations(drawing.boxes, 2)
        if first.y == other.y and first.x < other.x + other.width and other.x < first.x + first.width
    ]


def test_nodes_are_drawn_in_order_from_start_to_end() -> None:
    row_of_node = rows(drawn(graph(*AGENT)))
    assert row_of_node[START] < row_of_node["agent"] < row_of_node["tools"] < row_of_node[END]


def test_same_graph_gives_the_same_drawing() -> None:
    assert draw(large()) == draw(large())


def test_cycle_is_drawn_with_two_separate_lines() -> None:
    paths = {line.title: line.path for line in drawn(graph(*AGENT)).lines}
    there, back = paths["agent → tools"], paths["tools → agent"]
    assert there.split("V")[0] != back.split("V")[0]
    assert set(re.findall(r"M([\d.]+)", there)).isdisjoint(re.findall(r"M([\d.]+)", back))


def test_a_node_that_leads_to_itself_has_a_loop() -> None:
    [loop] = [line for line in drawn(graph((START, "a"), ("a", "a"))).lines if line.title == "a → a"]
    assert loop.path.startswith("M")


def test_conditional_edges_are_labelled_and_parallel_edges_are_merged() -> None:
    edges_graph = graph((START, "a"), ("a", "b"), conditional=True, data="yes")
    edges_graph["edges"].append({"source": "a", "target": "b", "conditional": True, "data": "maybe"})
    start, line = drawn(edges_graph).lines
    assert start.conditional
    assert (line.conditional, line.label, line.title) == (True, "yes, maybe", "a → b (yes, maybe)")


def test_waiting_node_is_marked() -> None:
    assert [box.id for box in drawn(graph(*AGENT), "tools").boxes if box.waits] == ["tools"]


def test_long_names_are_cut_and_kept_whole_in_the_title() -> None:
    name = "x" * 80
    box = drawn(graph((START, name))).boxes[1]
    assert len(box.label) == 22
    assert box.label.endswith("…")
    assert box.title == name


@pytest.mark.parametrize("seed", range(5))
def test_forty_nodes_stay_legible(seed: int) -> None:
    drawing = drawn(large(seed))
    assert overlap(drawing) == []
    assert drawing.width < 2000
    assert all(box.x >= 0 and box.x + box.width <= drawing.width for box in drawing.boxes)
    assert all(box.y + box.height <= drawing.height for box in drawing.boxes)


def test_a_wide_step_goes_on_in_the_next_row() -> None:
    drawing = drawn(graph(*((START, f"branch_number_{number}") for number in range(30))))
    assert overlap(drawing) == []
    assert drawing.width < 1800


def test_too_many_nodes_are_not_drawn() -> None:
    assert draw(graph(*((START, str(number)) for number in range(MOST_NODES + 1)))) is None
    assert draw({"nodes": [], "edges": []}) is None


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")), max_size=30))
def test_any_graph_can_be_drawn(edges: list[tuple[str, str]]) -> None:
    drawing = drawn(graph(*edges))
    assert overlap(drawing) == []
    assert len(drawing.lines) == len(set(edges))
