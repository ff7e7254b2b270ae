"""The benchmark runner: choosing by name, verdicts, the exit code."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import document
from bench.__main__ import main, print_json, print_table
from bench.chart import Panel, svg
from bench.rows import at_least, at_most, ratio_at_least, ratio_at_most


def test_measure_is_ok_when_it_meets_its_target() -> None:
    assert at_least("rate", 10, "runs/s", target=10).ok
    assert not at_most("start", 1.6, "s", target=1.5).ok
    assert ratio_at_least("writes", 400, "tx/s", peer=200, target=2).ok
    assert not ratio_at_most("latency", 3.1, "ms", peer=1, target=3).ok


def test_measure_without_a_peer_has_no_ratio() -> None:
    assert ratio_at_least("writes", 400, "tx/s", peer=200, target=2).ratio == 2
    assert at_least("rate", 10, "runs/s", target=10).ratio is None


def test_table_and_json_show_every_row(capsys: pytest.CaptureFixture[str]) -> None:
    row = ratio_at_least("writes", 400, "tx/s", peer=200, target=2)
    print_table([row])
    assert "writes" in capsys.readouterr().out
    print_json([row])
    assert json.loads(capsys.readouterr().out)["rows"][0]["ratio"] == 2


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nothing-like-it"])
    assert "no benchmark 'nothing-like-it'" in capsys.readouterr().err


def test_a_table_replaces_the_one_of_its_benchmark_only(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("Before.\n<!-- a -->\nold\n<!-- end of a -->\n<!-- b -->\nother\n<!-- end of b -->\nAfter.\n")
    document.write(
        "a", [ratio_at_most("latency", 3.14, "ms", peer=1, target=3), at_most("packages", 70, "", target=70)], page
    )
    text = page.read_text()
    assert (
        "| latency | 3.1 ms | 1 ms | 3.1 × | ≤ 3 ×, **missed** |\n| packages | 70 |  |  | ≤ 70 |\n<!-- end of a -->"
        in text
    )
    assert "old" not in text
    assert text.startswith("Before.\n<!-- a -->\nMeasured on ")
    assert text.endswith("<!-- b -->\nother\n<!-- end of b -->\nAfter.\n")


def test_chart_is_an_svg_with_every_curve_inside_it() -> None:
    curves = {"ours": [(20.0, 0.3), (1000.0, 11.0)], "theirs": [(20.0, 1.5), (1000.0, 1800.0)]}
    drawn = ElementTree.fromstring(svg([Panel("Size", "MB", curves), Panel("Time", "×", curves)], "turns"))  # noqa: S314
    left, _, width, height = map(float, drawn.attrib["viewBox"].split())
    lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
    points = [tuple(map(float, point.split(","))) for line in lines for point in line.attrib["points"].split()]
    assert (len(lines), len(points)) == (4, 8)
    assert all(0 < x < left + width and 0 < y < height for x, y in points)
    heights = [y for _, y in points]
    assert heights[1] < heights[0]  # larger is higher
    assert "prefers-color-scheme: dark" in ElementTree.tostring(drawn, "unicode")
