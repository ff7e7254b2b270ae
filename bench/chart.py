"""Curves as an SVG that is readable on a light and on a dark page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 460, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 34, 66
_MARGIN = 16
_COLOURS = ("a", "b", "c")
_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; font-size: 13px; }
  .grid { stroke: #d1d9e0; } .axis { stroke: #59636e; }
  .curve { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
  .a { stroke: #0b62d6; } .b { stroke: #b3261e; stroke-dasharray: 7 4; } .c { stroke: #7a5b00; stroke-dasharray: 2 4; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .grid { stroke: #3d444d; } .axis { stroke: #9198a1; }
    .a { stroke: #6cb2ff; } .b { stroke: #ff8f87; } .c { stroke: #e3c04b; }
  }
"""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Panel:
    """Curves by name over one pair of axes; the upright one is logarithmic."""

    title: str
    unit: str
    curves: Mapping[str, Points]


def svg(panels: Sequence[Panel], across: str) -> str:
    width = WIDTH * len(panels)
    drawn = "".join(_panel(panel, across, number * WIDTH) for number, panel in enumerate(panels))
    words = escape("; ".join(panel.title for panel in panels))
    box = f"-{_MARGIN} 0 {width + _MARGIN} {HEIGHT}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" aria-label="{words}">'
    return f"{head}\n<style>{_STYLE}</style>\n{drawn}</svg>\n"


def _panel(panel: Panel, across: str, left: int) -> str:
    points = [point for curve in panel.curves.values() for point in curve]
    most_x = max(x for x, _ in points)
    low, high = (math.floor(math.log10(min(y for _, y in points))), math.ceil(math.log10(max(y for _, y in points))))
    inner_width, inner_height = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        up = (math.log10(y) - low) / max(high - low, 1)
        return left + _LEFT + x / most_x * inner_width, _TOP + (1 - up) * inner_height

    lines = [f'<text class="title" x="{left + _LEFT}" y="18">{escape(panel.title)}</text>']
    for power in range(low, high + 1):
        _, y = place(0, 10**power)
        lines.append(f'<line class="grid" x1="{left + _LEFT}" x2="{left + WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        label = f"{10**power:,g} {panel.unit}"
        lines.append(f'<text x="{left + _LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
    bottom = HEIGHT - _BOTTOM
    lines.append(f'<line class="axis" x1="{left + _LEFT}" x2="{left + WIDTH - _RIGHT}" y1="{bottom}" y2="{bottom}"/>')
    for quarter in range(5):
        x, _ = place(most_x * quarter / 4, 10**low)
        label, anchor = f"{most_x * quarter / 4:,.0f}", "middle"
        if quarter == 4:
            label, anchor = f"{label} {across}", "end"
        lines.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="{anchor}">{label}</text>')
    for number, (name, curve) in enumerate(panel.curves.items()):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in curve))
        lines.append(f'<polyline class="curve {_COLOURS[number]}" points="{path}"/>')
        x, y = left + _LEFT + (number % 2) * 190, bottom + 36 + number // 2 * 18
        lines.append(f'<line class="curve {_COLOURS[number]}" x1="{x}" x2="{x + 24}" y1="{y - 4}" y2="{y - 4}"/>')
        lines.append(f'<text x="{x + 30}" y="{y}">{escape(name)}</text>')
    return "\n".join(lines) + "\n"
