"""From measured seconds to the figures of the table: medians with quartiles, ratios of pairs, a slope, a verdict."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

SHORTEST = 0.02  # seconds a measurement lasts at least: the work is repeated until it does


@dataclass(frozen=True)
class Ratio:
    """What `pairs` measurements of two works say: median seconds of each, and median and quartiles of the ratios."""

    base: float
    other: float
    ratio: float
    low: float
    high: float
    pairs: int


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper quartile, interpolated between the two nearest values.

    >>> quartiles([5, 1, 3, 2, 4])
    (2.0, 3.0, 4.0)
    """
    ordered = sorted(values)

    def at(share: float) -> float:
        position = share * (len(ordered) - 1)
        low = math.floor(position)
        high = min(low + 1, len(ordered) - 1)
        return float(ordered[low] + (position - low) * (ordered[high] - ordered[low]))

    return at(0.25), at(0.5), at(0.75)


def ratio_of(measured: Sequence[tuple[float, float]]) -> Ratio:
    """The figures of pairs (seconds of the base, seconds of the other).

    >>> ratio_of([(1.0, 2.0), (2.0, 6.0), (1.0, 4.0)])
    Ratio(base=1.0, other=4.0, ratio=3.0, low=2.5, high=3.5, pairs=3)
    """
    low, middle, high = quartiles([other / base for base, other in measured])
    return Ratio(
        base=statistics.median(base for base, _ in measured),
        other=statistics.median(other for _, other in measured),
        ratio=middle,
        low=low,
        high=high,
        pairs=len(measured),
    )


def in_pairs(
    base: Callable[[], object], other: Callable[[], object], pairs: int, clock: Callable[[], float] = time.thread_time
) -> Ratio:
    """Both works measured in turn, so that a change of the machine's speed meets both; each is called once before.

    clock: `time.thread_time`, the processor time of this thread, where other processes do not count; or
    `time.perf_counter` where more than one thread works.
    """
    base()
    other()
    repeats = 1 + int(SHORTEST / max(_seconds(base, 1, clock), 1e-9))
    measured = [(_seconds(base, repeats, clock), _seconds(other, repeats, clock)) for _ in range(pairs)]
    ratio = ratio_of(measured)
    return Ratio(ratio.base / repeats, ratio.other / repeats, ratio.ratio, ratio.low, ratio.high, pairs)


def cells(ratio: Ratio, base: str, other: str) -> dict[str, Any]:
    """A ratio as cells of a row: microseconds of both, the ratio, its quartiles, the pairs."""
    times = {base: ratio.base * 1e6, other: ratio.other * 1e6}
    return times | {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high, "pairs": ratio.pairs}


def _seconds(work: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    started = clock()
    for _ in range(repeats):
        work()
    return clock() - started


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of the least-squares line through (log size, log cost): the power of N that the cost grows with.

    >>> round(slope([10, 100, 1000], [2, 200, 20000]), 6)
    2.0
    """
    x, y = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    middle_x, middle_y = statistics.fmean(x), statistics.fmean(y)
    above = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return above / sum((a - middle_x) ** 2 for a in x)


def at_size(sizes: Sequence[float], costs: Sequence[float], size: float) -> float:
    """The cost at another size, on the line of `slope`.

    >>> round(at_size([10, 100, 1000], [2, 200, 20000], 1e4), 3)
    2000000.0
    """
    middle = statistics.fmean(math.log(cost) for cost in costs)
    distance = math.log(size) - statistics.fmean(math.log(size) for size in sizes)
    return math.exp(middle + slope(sizes, costs) * distance)


def judged(row: dict[str, Any], name: str, bound: float | None, aim: float | None = None) -> dict[str, Any]:
    """The row with its bound, its aim, and what its value `name` says of them: "aim", "ok", "over", or "" without one.

    >>> judged({"ratio": 1.5}, "ratio", 1.9, 1.6)["verdict"]
    'aim'
    """
    verdict = ""
    if bound is not None:
        value = row[name]
        verdict = "over" if value > bound else "aim" if aim is not None and value <= aim else "ok"
    return {**row, "bound": bound, "aim": aim, "verdict": verdict}


def missed(parts: dict[str, dict[str, Any]]) -> list[str]:
    """One line for every row that is over its bound."""
    return [
        f"{name}: "
        + ", ".join(
            f"{key} {cell(value)}" for key, value in row.items() if value not in (None, "") and key != "verdict"
        )
        for name, part in parts.items()
        for row in part["rows"]
        if row.get("verdict") == "over"
    ]


def cell(value: Any) -> str:
    """A value as the table shows it.

    >>> [cell(value) for value in (None, 12345, 12345.6, 45.67, 1.2345, 0.00123, "aim")]
    ['-', '12345', '12346', '45.7', '1.23', '0.0012', 'aim']
    """
    if value is None or value == "":
        return "-"
    if not isinstance(value, float):
        return str(value)
    if value and abs(value) < 0.1:
        return f"{value:.2g}"
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"
