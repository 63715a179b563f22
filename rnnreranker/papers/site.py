"""All pages of the regressions in one go: a page for each spec and paper, their index, and the matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rnnreranker.pages import render, write_page
from rnnreranker.papers.figures import figures
from rnnreranker.papers.html import write_matrix
from rnnreranker.papers.markdown import cells_of, counted, paper_page
from rnnreranker.papers.matrix import Matrix
from rnnreranker.papers.paper import paper_names, read_paper
from rnnreranker.regress.pages_recipe import recipe_page
from rnnreranker.regress.recipe import is_recipe
from rnnreranker.regress.report import page
from rnnreranker.regress.results import read_results, results_file
from rnnreranker.regress.spec import read_spec, spec_names

SWEEPS = Path("docs", "contexts")  # beside the folder of specs: sweeps that the tune command recorded


def write_pages(folder: Path, docs: Path) -> list[Path]:
    """Write `docs/regressions/*.md` and `docs/index.html` from specs and what is on record; the files written.

    The same specs and records give the same bytes, whenever and wherever they are written.

    Args:
        folder: of specs, papers and results.
        docs: the folder that the pages go to.

    Raises:
        InputError: what is wrong with a spec, a paper or a record.
    """
    pages: dict[str, str] = {}
    matrix = Matrix(folder)
    run_here: list[dict[str, Any]] = []
    elsewhere: list[dict[str, Any]] = []
    for name in spec_names(folder):
        if is_recipe(folder / f"{name}.yaml"):
            recipe = matrix.recipes[name]
            printed = cells_of(matrix, name)
            counts = counted([cell.state for cell in printed])
            mine = [entry for entry in matrix.records if entry.spec == name]
            pages[name] = recipe_page(recipe, mine, printed, counts)
            elsewhere.append(
                {"name": name, "title": recipe.title, "conditions": len(recipe.conditions), "counts": counts}
            )
        else:
            spec = read_spec(name, folder)
            results = read_results(results_file(folder, spec))
            pages[name] = page(spec, results)
            run_here.append({"spec": spec, "results": results})
    papers = [read_paper(name, folder) for name in paper_names(folder)]
    cells = {paper.id: [cell for cell in matrix.cells if cell["paper"] == paper.id] for paper in papers}
    for paper in papers:
        pages[paper.name] = paper_page(paper, matrix)
    pages["README"] = render(
        "papers",
        "overview.md.j2",
        entries=run_here,
        recipes=elsewhere,
        papers=[(paper, len(cells[paper.id]), counted(cell["state"] for cell in cells[paper.id])) for paper in papers],
        summary=matrix.summary(),
    )
    written = []
    for name, text in pages.items():
        written.append(docs / "regressions" / f"{name}.md")
        write_page(written[-1], text)
    written.append(docs / "index.html")
    write_matrix(
        written[-1],
        matrix.cells,
        papers={paper.id: paper.title for paper in papers},
        citations={paper.id: paper.citation for paper in papers},
        made=_made([entry.date[:10] for entry in matrix.records]),
        figures=figures(folder.parent / SWEEPS, folder),
    )
    return written


def _made(dates: list[str]) -> str:
    """One line on what the page was made from."""
    if not dates:
        return "Nothing is measured yet."
    first, last = min(dates), max(dates)
    when = f"on {first}" if first == last else f"from {first} to {last}"
    said = f"The measured values come from {len(dates)} run files, evaluated {when}"
    return f"{said}; + behind a commit: with uncommitted changes."
