"""Tables of results: aligned columns on a terminal, tab-separated values in a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from rnnreranker.base.errors import shown
from rnnreranker.base.process import phases

NUMBER = re.compile(r"[+\-−±]?(\d[\d,]*(\.\d*)?|\.\d+|inf|nan)([eE][+-]?\d+)?%?")
NOTHING = ("", "-")  # cells that say "no value": they take the side of the numbers around them


def print_table(header: Sequence[object], rows: Iterable[Sequence[object]], stream: TextIO | None = None) -> None:
    """Print a table: aligned on a terminal, else tab-separated; stream: None = standard output."""
    stream = sys.stdout if stream is None else stream
    cells = [[_one_line(cell) for cell in row] for row in (header, *rows)]
    phases.clear()
    if stream.isatty():
        for line in aligned(cells):
            print(line, file=stream)
    else:
        for row in cells:
            print("\t".join(row), file=stream)


def interval(middle: float, low: float, high: float) -> str:
    """A difference with its interval.

    >>> interval(0.01, -0.02, 0.04)
    '+0.0100 [-0.0200, +0.0400]'
    """
    return f"{middle:+.4f} [{low:+.4f}, {high:+.4f}]"


def aligned(cells: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose first row is the header; columns of numbers are right-aligned."""
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [_is_numeric(column[1:]) for column in columns]
    lines = []
    for row in cells:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(parts).rstrip())
    return lines


def _is_numeric(column: Sequence[str]) -> bool:
    values = [cell for cell in column if cell not in NOTHING]
    return bool(values) and all(NUMBER.fullmatch(cell) for cell in values)


def _one_line(cell: object) -> str:
    return shown(" ".join(re.split(r"[\t\r\n]+", str(cell))))
