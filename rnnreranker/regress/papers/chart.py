"""Line charts as SVG that stands inside a page: its colours are the page's, nothing comes from outside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT = 460, 46, 74  # of the drawing, of its margins: the right one holds the names of the lines
TOP, GAP, BOTTOM = 24, 44, 40


@dataclass(frozen=True)
class Line:
    """A line: y over x, perhaps between `low` and `high`, and a dashed level to compare with."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    level: float | None = None


@dataclass(frozen=True)
class Panel:
    """Lines over a common y axis, `height` units high."""

    label: str
    lines: Sequence[Line]
    height: int
    from_zero: bool = False


def chart(panels: Sequence[Panel], x_label: str, title: str) -> str:
    """An <svg> element of panels above each other that share a logarithmic x axis.

    >>> chart([Panel("y", [Line("a", [1, 10], [0.5, 1.0])], 100)], "N", "T").count("<circle")
    2
    """
    xs = sorted({x for panel in panels for line in panel.lines for x in line.x})
    height = TOP + sum(panel.height for panel in panels) + GAP * (len(panels) - 1) + BOTTOM
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" class="chart">']
    top = TOP
    for number, panel in enumerate(panels):
        parts += _panel(panel, top, xs, first=sum(len(before.lines) for before in panels[:number]))
        top += panel.height + GAP
    base = top - GAP
    for value in _marked(xs):
        x = _x(value, xs)
        parts.append(f'<text class="tick" x="{x:.1f}" y="{base + 15}" text-anchor="middle">{value:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text class="name" x="{middle:.1f}" y="{base + 33}" text-anchor="middle">{escape(x_label)}</text>')
    return "".join([*parts, "</svg>"])


def _panel(panel: Panel, top: int, all_x: Sequence[float], first: int) -> list[str]:
    values = [value for line in panel.lines for value in (*line.y, *line.low, *line.high)]
    values += [line.level for line in panel.lines if line.level is not None]
    ticks = _ticks(0.0 if panel.from_zero else min(values), max(values))
    low, high = ticks[0], ticks[-1]

    def y(value: float) -> float:
        return top + panel.height * (high - value) / (high - low)

    decimals = max(0, -math.floor(math.log10(ticks[1] - ticks[0]) + 1e-9))
    parts = []
    for tick in ticks:
        parts.append(f'<path class="grid" d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}"/>')
        text = f"{tick:.{decimals}f}"
        parts.append(f'<text class="tick" x="{LEFT - 5}" y="{y(tick) + 3.5:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<text class="name" x="{LEFT - 38}" y="{top - 12}">{escape(panel.label)}</text>')
    for number, line in enumerate(panel.lines, first):
        xs = [_x(x, all_x) for x in line.x]
        if line.low:
            upper = [f"{x:.1f} {y(value):.1f}" for x, value in zip(xs, line.high, strict=True)]
            lower = [f"{x:.1f} {y(value):.1f}" for x, value in zip(xs, line.low, strict=True)]
            parts.append(f'<path class="band c{number}" d="M{"L".join([*upper, *lower[::-1]])}Z"/>')
        if line.level is not None:
            parts.append(f'<path class="level c{number}" d="M{LEFT} {y(line.level):.1f}H{WIDTH - RIGHT}"/>')
        points = [f"{x:.1f} {y(value):.1f}" for x, value in zip(xs, line.y, strict=True)]
        parts.append(f'<path class="line c{number}" d="M{"L".join(points)}"/>')
        for x, at, value in zip(xs, line.x, line.y, strict=True):
            label = f"{line.name} {value:.{decimals + 2}f} at {at:g}"
            dot = f'<circle class="c{number}" cx="{x:.1f}" cy="{y(value):.1f}" r="2.6">'
            parts.append(f"{dot}<title>{escape(label)}</title></circle>")
        end = f'x="{WIDTH - RIGHT + 6}" y="{y(line.y[-1]) + 4:.1f}"'
        parts.append(f'<text class="of c{number}" {end}>{escape(line.name)}</text>')
    return parts


def _x(value: float, values: Sequence[float]) -> float:
    first, last = math.log(values[0]), math.log(values[-1])
    share = (math.log(value) - first) / (last - first) if last > first else 0.5
    return LEFT + 8 + share * (WIDTH - LEFT - RIGHT - 16)


def _marked(values: Sequence[float]) -> list[float]:
    """The values of x that get a number: those far enough from the one before."""
    marked: list[float] = []
    for value in values:
        if not marked or _x(value, values) - _x(marked[-1], values) >= 24:
            marked.append(value)
    return marked


def _ticks(low: float, high: float) -> list[float]:
    """Round values from below `low` to above `high`, three to seven of them."""
    span = (high - low) or abs(high) or 1.0
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if span / (factor * step) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, max(last, first + 1) + 1)]
