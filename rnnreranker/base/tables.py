"""Tables of results: aligned columns on a terminal, tab-separated values in a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from rnnreranker.base.errors import shown
from rnnreranker.base.process import phases


def print_table(header: Sequence[object], rows: Iterable[Sequence[object]], stream: TextIO | None = None) -> None:
    """Print a table: aligned on a terminal, else tab-separated; stream: None = standard output."""
    stream = stream or sys.stdout
    cells = [[shown(" ".join(re.split(r"[\t\r\n]+", str(cell)))) for cell in row] for row in (header, *rows)]
    phases.clear()
    aligned = stream.isatty()
    widths = [max(map(len, column)) if aligned else 0 for column in zip(*cells, strict=True)]
    for row in cells:
        print(("  " if aligned else "\t").join(map(str.ljust, row, widths)).rstrip(" "), file=stream)


def interval(middle: float, low: float, high: float) -> str:
    """A difference with its interval.

    >>> interval(0.01, -0.02, 0.04)
    '+0.0100 [-0.0200, +0.0400]'
    """
    return f"{middle:+.4f} [{low:+.4f}, {high:+.4f}]"
