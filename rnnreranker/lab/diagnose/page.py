"""The diagnosis as one HTML page with small histograms; it needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rnnreranker.base.pages import render, write_page
from rnnreranker.lab.diagnose.report import rows
from rnnreranker.lab.diagnose.verdict import verdict

WIDTH, HEIGHT = 240, 80  # of a histogram, in units of its drawing


@dataclass(frozen=True)
class Bar:
    """A column of a histogram: position and size in units of the drawing, and what it stands for in words."""

    x: float
    y: float
    width: float
    height: float
    label: str


def write_diagnosis(path: Path, measured: dict[str, Any]) -> None:
    """Write the page of a diagnosis, as `diagnose` gives it with `run` and `index` added."""
    write_page(path, diagnosis(measured))


def diagnosis(measured: dict[str, Any]) -> str:
    """The HTML of the page."""
    shown = [
        ("Neighbours of the query", "per query", measured["sets"]["query"]),
        ("Neighbours of a candidate", "per candidate", measured["sets"]["candidates"]),
        ("How uneven neighbours are", "per query", measured["hubness"]["skewness"]),
        ("Spread of similarities", "per query", measured["scale"]["spread"]),
    ]
    if measured["overlap"] is not None:
        shown.append(("Agreement before and after", "per query", measured["overlap"]["rbo"]))
    if (graph := measured.get("graph")) is not None:
        shown.append(("Named by others", "documents of the graph", graph["in_degree"]))
    histograms = [(name, what, spread, bars(spread)) for name, what, spread in shown]
    return render(
        "lab.diagnose",
        "page.html.j2",
        measured=measured,
        verdict=verdict(measured),
        rows=rows(measured),
        histograms=histograms,
        params=measured["params"],
        width=WIDTH,
        height=HEIGHT,
    )


def bars(spread: dict[str, Any]) -> list[Bar]:
    """The columns of a histogram, side by side over the whole width, the highest of the whole height."""
    counts, edges = spread["counts"], spread["edges"]
    width, highest = WIDTH / len(counts), max(counts)
    return [
        Bar(
            round(column * width, 2),
            round(HEIGHT * (1 - count / highest), 2),
            round(width - 1, 2),
            round(HEIGHT * count / highest, 2),
            f"{edges[column]:g} to {edges[column + 1]:g}: {count}",
        )
        for column, count in enumerate(counts)
    ]
