"""All pages of the regressions in one go: a page for each spec, their index, and the matrix."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.base.pages import render, write_page
from rnnreranker.base.record import read_records
from rnnreranker.regress.pages.page import spec_page
from rnnreranker.regress.papers.figures import figures
from rnnreranker.regress.papers.html import matrix_pages, texts
from rnnreranker.regress.papers.matrix import Matrix, counted
from rnnreranker.regress.records import recorded, records_file


def write_pages(folder: Path, docs: Path) -> list[Path]:
    """Write `docs/regressions/*.md` and `docs/matrix/*.html` from specs and what is on record; the files written.

    The same specs and records give the same bytes, whenever and wherever they are written.

    Raises:
        InputError: what is wrong with a spec, a paper or a record.
    """
    matrix = Matrix(folder)
    written: dict[Path, str] = {}
    specs = []
    for name, spec in matrix.specs.items():
        mine = [cell for cell in matrix.cells if cell["obtained"] and matrix.sets[cell["query_set"]][0] is spec]
        counts = counted(cell["state"] for cell in mine)
        records = recorded(folder, [name])
        written[docs / "regressions" / f"{name}.md"] = spec_page(spec, records, texts(mine), counts)
        specs.append((spec, counts, max((record.date[:10] for record in records), default="")))
    states = {
        paper.name: [cell["state"] for cell in matrix.cells if cell["paper"] == paper.id] for paper in matrix.papers
    }
    written[docs / "regressions" / "README.md"] = render(
        "regress.papers",
        "overview.md.j2",
        specs=specs,
        papers=[(paper, len(states[paper.name]), counted(states[paper.name])) for paper in matrix.papers],
        summary=matrix.summary(),
    )
    obtained = {cell["query_set"] for cell in matrix.cells}
    dates = [one.date[:10] for (name, _), records in matrix.runs.items() if name in obtained for one in records]
    drawn = figures(read_records(records_file(folder, "", "sweep")), matrix.sets, recorded(folder, matrix.specs))
    pages = matrix_pages(matrix.cells, matrix.papers, _made(dates), drawn, matrix.twins)
    written |= {docs / "matrix" / name: text for name, text in pages.items()}
    for path, text in written.items():
        write_page(path, text)
    return list(written)


def _made(dates: list[str]) -> str:
    """One line on what the page was made from."""
    if not dates:
        return "Nothing is measured yet."
    first, last = min(dates), max(dates)
    when = f"on {first}" if first == last else f"from {first} to {last}"
    said = f"The measured values come from {len(dates)} runs, evaluated {when}"
    return f"{said}; + behind a commit: with uncommitted changes."
