"""The pages of the regressions: one for each spec, their index, and the matrix as HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rnnreranker.base.pages import render, write_page
from rnnreranker.regress.pages.page import spec_page
from rnnreranker.regress.papers.matrix import STATES, Matrix, count_states, counted
from rnnreranker.regress.papers.paper import Paper
from rnnreranker.regress.papers.twins import twin_sets

Cell = dict[str, Any]  # a row of `Matrix.cells` with the keys that `shown` adds


def write_pages(folder: Path, docs: Path) -> list[Path]:
    """Write `docs/regressions/*.md` and `docs/matrix/*.html` from specs and records; the files written.

    `index.html` counts the cells of every table; `paper-NNN.html` has the tables of a paper, whose cells open to their
    commands. The address has filters and what is open: `paper-000.html#state=changed&open=ID`.

    Raises:
        InputError: a mistake in a spec, a paper or a record.
    """
    matrix = Matrix(folder)
    cells = [shown(cell) for cell in matrix.cells.to_dict("records")]
    pages: dict[Path, str] = {}
    specs = []
    for name, spec in matrix.specs.items():
        mine = [cell for cell in cells if cell["spec"] == name]
        records, counts = [record for record in matrix.records if record.spec == name], counted(_states(mine))
        pages[docs / "regressions" / f"{name}.md"] = spec_page(spec, records, mine, counts)
        specs.append((spec, counts, max((record.date[:10] for record in records), default="")))
    papers = [_paper(matrix, paper, cells) for paper in matrix.papers]
    dates = [
        record.date[:10] for record in matrix.records if record.outcome["query_set"] in {*matrix.cells["query_set"]}
    ]
    common: dict[str, Any] = {"papers": papers, "states": STATES, "whose": matrix.whose(), "dates": sorted(dates)}
    common |= {"specs": specs, "summary": matrix.summary(), "counts": count_states(_states(cells))}
    of_papers = "regress.papers"
    pages[docs / "regressions" / "README.md"] = render(of_papers, "overview.md.j2", **common)
    pages[docs / "matrix" / "index.html"] = render(of_papers, "landing.html.j2", **common)
    for one in papers:
        page = docs / "matrix" / f"{one['paper'].name}.html"
        pages[page] = render(of_papers, "paper.html.j2", **(common | one))
    for path, text in pages.items():
        write_page(path, text)
    return list(pages)


def _states(cells: list[Cell]) -> list[str]:
    return [cell["state"] for cell in cells]


def shown(cell: Mapping[Any, Any]) -> Cell:
    """A cell with its values as texts, and the `id` of what it opens: its system, or the row of a table."""
    decimals, table, measured = cell["decimals"], cell["table"], cell["measured"]
    finer = decimals + (2 if cell["state"] == "changed" else 1)  # so that no changed value looks reproduced
    gap = None if measured is None else measured - cell["published"]
    system = (cell["query_set"], cell["condition"]) if cell["condition"] else (cell["paper"], table, cell["row"])
    return {
        **cell,
        "id": slug(".".join(system)),
        "where": f"Table {table}" if table.isdigit() else table,  # other names are of what the text says
        "published": number(cell["published"], decimals),
        "measured": number(measured, finer),
        "difference": number(gap, finer, "+"),
    }


def number(value: Any, decimals: int, sign: str = "") -> str:
    """A value as the papers print it.

    >>> number(0.388, 3), number(-0.00004, 3, "+"), number(50, 1), number("50*", 1), number(None, 1)
    ('.388', '.000', '50.0', '50*', '')
    """
    if not isinstance(value, int | float):
        return value or ""
    value = round(value, decimals) + 0.0
    return re.sub(r"(?<!\d)0\.", ".", f"{value:{sign if value else ''}.{decimals}f}".replace("-", "−"))


def slug(text: str) -> str:
    """Small letters and digits of a text, joined by hyphens.

    >>> slug("TAS-B [our evaluation]"), slug("nDCG@10 x100")
    ('tas-b-our-evaluation', 'ndcg-10-x100')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _paper(matrix: Matrix, paper: Paper, cells: list[Cell]) -> dict[str, Any]:
    """A paper with its tables and systems, for the templates."""
    cells = [cell for cell in cells if cell["paper"] == paper.number]
    systems: dict[str, dict[str, Any]] = {}
    for cell in cells:
        if cell["id"] not in systems:
            commands = matrix.commands(cell["query_set"], cell["condition"]) if cell["condition"] else ([], "")
            systems[cell["id"]] = dict(zip(("commands", "needs"), commands, strict=True)) | {"cells": []}
        systems[cell["id"]]["cells"].append(cell)
    tables = []
    for table in paper.tables:
        mine = [cell for cell in cells if cell["table"] == table.table]
        rows: dict[str, dict[tuple[str, str], Cell]] = {}
        heads: dict[str, dict[str, None]] = {}
        for cell in mine:
            row, head, column = cell["row"], cell["dataset"], cell["measure"]
            if cell["query"]:  # too many columns: exchanged with the rows
                row, head, column = cell["query"], f"{cell['group']}, {column}", row
            rows.setdefault(row, {})[head, column] = cell
            heads.setdefault(head, {})[column] = None
        about = {"id": f"{paper.number}-table-{slug(table.table)}", "name": mine[0]["where"], "of": table}
        about |= {"counts": count_states(_states(mine)), "rows": rows, "heads": heads}
        of_table = matrix.cells[(matrix.cells["paper"] == paper.number) & (matrix.cells["table"] == table.table)]
        tables.append(about | {"twins": twin_sets(matrix, of_table)})
    return {
        "paper": paper,
        "cells": cells,
        "counts": count_states(_states(cells)),
        "tables": tables,
        "systems": systems,
    }
