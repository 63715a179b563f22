"""What pages on speed ask of the records of benchmarks: cells of tables, missed bounds, growth with the size."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

SAME_SIZE = ("labels", "batch")  # stages whose work has as many candidates, however large the collection is


def cell(value: Any) -> str:
    """A value as a table shows it.

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


def over(parts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line for every row of a benchmark that misses its bound."""
    missed = [(part["title"], row) for part in parts.values() for row in part["rows"] if row.get("verdict") == "over"]
    return [
        f"{title}: {', '.join(f'{key} {cell(value)}' for key, value in row.items() if value and key != 'verdict')}"
        for title, row in missed
    ]


def slope(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of the least-squares line through (log size, log cost): the power of the size that the cost grows with.

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


def at_documents(rows: Sequence[Mapping[str, Any]], name: str, documents: int) -> float:
    """A cost at another number of documents, never less than the last one measured.

    It follows the line between the two largest sizes; of stages in SAME_SIZE the power, except memory.

    Args:
        rows: of one stage, by one thread, ascending; name: of the cost.

    >>> rows = [{"stage": "vectors", "documents": n, "disk_MB": cost} for n, cost in ((10, 9.0), (20, 4.0), (30, 5.0))]
    >>> at_documents(rows, "disk_MB", 130)
    15.0
    """
    *_, first, last = rows
    if last["stage"] in SAME_SIZE and name != "RssAnon_MB":
        power = slope([first["documents"], last["documents"]], [first[name], last[name]])
        cost = last[name] * (documents / last["documents"]) ** power
    else:
        steep = (last[name] - first[name]) / (last["documents"] - first["documents"])
        cost = last[name] + steep * (documents - last["documents"])
    return float(max(last[name], cost))
