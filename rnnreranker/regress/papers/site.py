"""All pages of the regressions in one go: a page for each spec, their index, and the matrix."""

from __future__ import annotations

from pathlib import Path

from rnnreranker.base.pages import render, write_page
from rnnreranker.base.record import read_records
from rnnreranker.regress.pages.page import Printed, spec_page
from rnnreranker.regress.papers.cells import counted, entries, headed
from rnnreranker.regress.papers.figures import figures
from rnnreranker.regress.papers.html import matrix_pages
from rnnreranker.regress.papers.matrix import Matrix
from rnnreranker.regress.records import recorded, records_file


def write_pages(folder: Path, docs: Path) -> list[Path]:
    """Write `docs/regressions/*.md` and `docs/matrix/*.html` from specs and what is on record; the files written.

    The same specs and records give the same bytes, whenever and wherever they are written.

    Raises:
        InputError: what is wrong with a spec, a paper or a record.
    """
    pages: dict[str, str] = {}
    matrix = Matrix(folder)
    specs = []
    for name, spec in matrix.specs.items():
        printed = cells_of(matrix, name)
        counts = counted(cell.state for cell in printed)
        records = recorded(folder, [name])
        pages[name] = spec_page(spec, records, printed, counts)
        dates = [record.date[:10] for record in records if record.date]
        specs.append((spec, counts, max(dates, default="")))
    cells = {paper.id: [cell["state"] for cell in matrix.cells if cell["paper"] == paper.id] for paper in matrix.papers}
    pages["README"] = render(
        "regress.papers",
        "overview.md.j2",
        specs=specs,
        papers=[(paper, len(cells[paper.id]), counted(cells[paper.id])) for paper in matrix.papers],
        summary=matrix.summary(),
    )
    obtained = {cell.columns.query_set for cell in matrix.published}
    runs = [record for (name, _), records in matrix.runs.items() if name in obtained for record in records]
    matrix_html = matrix_pages(
        matrix.cells,
        papers={paper.id: paper.title for paper in matrix.papers},
        citations={paper.id: paper.citation for paper in matrix.papers},
        abouts={paper.id: paper.about for paper in matrix.papers},
        made=_made([record.date[:10] for record in runs]),
        figures=figures(read_records(records_file(folder, "", "sweep")), matrix.sets, recorded(folder, matrix.specs)),
        twins=matrix.twins,
        notes={(paper.id, table.table): table.note for paper in matrix.papers for table in paper.tables},
        twin_notes={(paper.id, table.table): table.twins_note for paper in matrix.papers for table in paper.tables},
    )
    written = {docs / "regressions" / f"{name}.md": text for name, text in pages.items()}
    written |= {docs / "matrix" / name: text for name, text in matrix_html.items()}
    for path, text in written.items():
        write_page(path, text)
    return list(written)


def cells_of(matrix: Matrix, spec: str) -> list[Printed]:
    """The published cells that a spec obtains, as its page shows them.

    A dagger stands behind a published value where the paper chose its parameters on the set that it reports.
    """
    pairs = list(matrix.of_spec(spec))
    return [
        Printed(
            query_set=cell.columns.query_set,
            condition=cell.how.condition,
            paper=cell.paper,
            where=f"{cell.paper} {headed(cell.table)}, {cell.row}" + (f", query {cell.query}" if cell.query else ""),
            protocol=cell.columns.protocol,
            published=text["published"] + ("†" if text["tuned"] else ""),
            tuned=text["tuned"],
            **{key: text[key] for key in ("measure", "measured", "difference", "state", "note")},
        )
        for (cell, _), text in zip(pairs, entries([shown for _, shown in pairs])[0], strict=True)
    ]


def _made(dates: list[str]) -> str:
    """One line on what the page was made from."""
    if not dates:
        return "Nothing is measured yet."
    first, last = min(dates), max(dates)
    when = f"on {first}" if first == last else f"from {first} to {last}"
    said = f"The measured values come from {len(dates)} runs, evaluated {when}"
    return f"{said}; + behind a commit: with uncommitted changes."
