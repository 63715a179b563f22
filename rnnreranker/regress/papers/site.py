"""The pages of the regressions: one for each spec, their index, and the matrix as HTML."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnreranker.base.pages import render, write_page
from rnnreranker.regress.pages.page import spec_page
from rnnreranker.regress.papers.matrix import STATES, Matrix, count_states, counted
from rnnreranker.regress.papers.paper import Paper
from rnnreranker.regress.papers.twins import TwinSet
from rnnreranker.regress.records import recorded

if TYPE_CHECKING:
    import pandas

LANDING = "index.html"
TALL = 30  # columns: a table with more is shown with rows and columns exchanged, and closed
KEYS = (  # of cells, that the script of a page knows
    *("id", "row", "dataset", "group", "measure", "protocol", "where", "state", "note"),
    *("published", "measured", "difference", "tuned"),
)
Cell = dict[str, Any]
Twins = Mapping[tuple[str, str], Sequence[TwinSet]]  # of a paper and table


def write_pages(folder: Path, docs: Path) -> list[Path]:
    """Write `docs/regressions/*.md` and `docs/matrix/*.html` from specs and records; the files written.

    Raises:
        InputError: a mistake in a spec, a paper or a record.
    """
    matrix = Matrix(folder)
    cells = matrix.cells.assign(
        **{"spec": [matrix.sets[one][0].name if one in matrix.sets else "" for one in matrix.cells["query_set"]]}
    )
    written: dict[Path, str] = {}
    specs = []
    for name, spec in matrix.specs.items():
        mine = cells[(cells["spec"] == name) & cells["obtained"].astype(bool)]
        counts, records = counted(mine["state"]), recorded(folder, [name])
        written[docs / "regressions" / f"{name}.md"] = spec_page(spec, records, texts(mine), counts)
        specs.append((spec, counts, max((record.date[:10] for record in records), default="")))
    states = {paper.name: list(cells["state"][cells["paper"] == paper.number]) for paper in matrix.papers}
    written[docs / "regressions" / "README.md"] = render(
        "regress.papers",
        "overview.md.j2",
        specs=specs,
        papers=[(paper, len(states[paper.name]), counted(states[paper.name])) for paper in matrix.papers],
        summary=matrix.summary(),
    )
    obtained = set(cells["query_set"])
    dates = [one.date[:10] for (name, _), records in matrix.runs.items() if name in obtained for one in records]
    pages = matrix_pages(cells, matrix.papers, _made(dates), matrix.twins, matrix.whose())
    written |= {docs / "matrix" / name: text for name, text in pages.items()}
    for path, text in written.items():
        write_page(path, text)
    return list(written)


def _made(dates: list[str]) -> str:
    """One line on the dates of the runs."""
    if not dates:
        return "Nothing is measured yet."
    first, last = min(dates), max(dates)
    when = f"on {first}" if first == last else f"from {first} to {last}"
    said = f"The measured values come from {len(dates)} runs, evaluated {when}"
    return f"{said}; + behind a commit: with uncommitted changes."


def matrix_pages(
    cells: pandas.DataFrame,
    papers: Sequence[Paper] = (),
    made: str = "",
    twins: Twins | None = None,
    whose: str = "",
) -> dict[str, str]:
    """File name → HTML: `index.html` with the counts of every table, and `paper-ID.html` with the tables of each paper.

    The address has filters and the open cell: `paper-000.html#state=changed&open=ID`.

    Args:
        cells, twins, whose: of `Matrix`; papers: for titles and remarks.
        made: one line on date and commit.
    """
    of_paper = {paper.number: paper for paper in papers}
    all_papers: list[dict[str, Any]] = []
    for number in map(str, cells["paper"].unique()):
        of_this = cells[cells["paper"] == number]
        shown = [{**cell, "number": at} for at, cell in enumerate(texts(of_this))]  # by which the script knows it
        about = of_paper.get(number, Paper.model_construct(name=f"paper-{number}", title="", tables=[]))
        tables = {name: [cell for cell in shown if cell["table"] == name] for name in of_this["table"].unique()}
        all_papers.append(
            {
                **{"id": number, "page": f"paper-{number}.html", "entries": shown},
                **{"title": about.title, "citation": about.citation, "about": about.about},
                "counts": count_states(of_this["state"]),
                "tables": [_table(mine, about, (twins or {}).get((number, name), [])) for name, mine in tables.items()],
            }
        )
    common: dict[str, Any] = {"papers": all_papers, "landing": LANDING, "made": made, "states": STATES, "whose": whose}
    landing = render(
        "regress.papers", "landing.html.j2", **common, counts=count_states(cells["state"]), total=len(cells)
    )
    return {LANDING: landing} | {one["page"]: _paper_page(one, common) for one in all_papers}


def _paper_page(paper: Mapping[str, Any], common: Mapping[str, Any]) -> str:
    shown = paper["entries"]
    sets = [one for table in paper["tables"] for one in table["twins"]]
    return render(
        "regress.papers",
        "paper.html.j2",
        **common,
        paper=paper,
        known=_numbered(shown),
        datasets=list(dict.fromkeys(cell["group"] for cell in shown)),
        specs=list(dict.fromkeys(filter(None, (cell["parameters"].get("spec") for cell in shown)))),
        tuned=sum(cell["tuned"] for cell in shown),
        models=list(dict.fromkeys(name for one in sets for name in one.models)),
    )


def slug(text: str) -> str:
    """Small letters and digits of a text, joined by hyphens.

    >>> slug("TAS-B [our evaluation]"), slug("nDCG@10 x100")
    ('tas-b-our-evaluation', 'ndcg-10-x100')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def texts(cells: pandas.DataFrame) -> list[Cell]:
    """Cells with their values as texts, a stable address each, and the details to open."""
    used: Counter[str] = Counter()
    shown = []
    rows: list[Any] = cells.to_dict("records")
    for cell in rows:
        name = ".".join(slug(str(cell[part])) for part in ("paper", "table", "row", "dataset", "measure"))
        used[name] += 1
        digits, table = cell["decimals"], cell["table"]
        finer = digits + (2 if cell["state"] == "changed" else 1)  # so that no changed value looks reproduced
        pairs: list[dict[str, Any]] = [cell["parameters"], *cell["history"]]
        parameters, *history = [[*map(list, one.items())] for one in pairs]
        about = {
            "id": name if used[name] == 1 else f"{name}-{used[name]}",
            "where": f"Table {table}" if table.isdigit() else table,  # other names are of what the text says
            "sign": STATES[cell["state"]][0],
            "details": {"commands": cell["commands"], "parameters": parameters, "history": history},
        }
        values = {
            "published": _number(cell["published"], digits),
            "measured": _number(cell["measured"], finer),
            "difference": _difference(cell["published"], cell["measured"], finer),
        }
        shown.append(cell | about | values)
    return shown


def _number(value: Any, decimals: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    text = f"{value:.{decimals}f}"
    return text[1:] if text.startswith("0.") else text  # .388, as the papers print it


def _difference(published: Any, measured: Any, decimals: int) -> str:
    if not isinstance(published, int | float) or measured is None:
        return ""
    size = round(abs(measured - published), decimals)
    return ("" if size == 0 else "+" if measured > published else "−") + _number(size, decimals)


def _table(shown: Sequence[Cell], paper: Paper, twins: Sequence[TwinSet]) -> dict[str, Any]:
    """A table of cells for the templates."""
    first = shown[0]
    name, where = first["table"], first["where"]
    columns = list(dict.fromkeys((cell["dataset"], cell["measure"]) for cell in shown))
    rows = list(dict.fromkeys(cell["row"] for cell in shown))
    at = {(cell["row"], cell["dataset"], cell["measure"]): cell for cell in shown}
    lines = [(row, [at.get((row, *column)) for column in columns]) for row in rows]
    grouped = groupby(columns, key=lambda column: column[0])
    groups = [{"name": dataset, "columns": [measure for _, measure in same]} for dataset, same in grouped]
    if tall := len(columns) > TALL:
        common = {f"{cell['group']}, {cell['measure']}" for cell in shown}
        queries = {(cell["dataset"], cell["measure"]): cell["query"] if len(common) == 1 else "" for cell in shown}
        groups = [{"name": common.pop() if len(common) == 1 else "value", "columns": rows}]
        lines = [(queries[one] or ", ".join(one), [at.get((row, *one)) for row in rows]) for one in columns]
    remarks = next((table for table in paper.tables if table.table == name), None)
    return {
        "name": where,
        "anchor": f"{first['paper']}-table-{slug(name)}",
        "caption": first["caption"],
        "note": remarks.note if remarks else "",
        "corner": "query" if tall else "row",  # what the rows are
        "groups": groups,  # columns under a common heading
        "rows": lines,  # of cells; None = the paper has no value there
        "counts": count_states(cell["state"] for cell in shown),
        "twins": [] if tall else twins,  # in columns behind those of the paper
        "twin_names": {row: twin.name for one in twins for row, twin in one.twins.items()},
        "twins_note": remarks.twins_note if remarks else "",
        "closed": tall,
    }


def _numbered(shown: Sequence[Cell]) -> dict[str, Any]:
    """The cells of a page and their details for its script, as numbers of `texts`, which has every value once.

    This halves a page. A command is the numbers of its words, a cell those of `keys` and of its details; parameters and
    entries of a history alternate names and values.
    """
    numbers: dict[tuple[type, Any], int] = {}  # with the type: 1, 1.0 and True are not the same

    def number(value: Any) -> int:
        return numbers.setdefault((type(value), value), len(numbers))

    def flat(pairs: Iterable[Sequence[Any]]) -> list[int]:
        return [number(part) for pair in pairs for part in pair]

    def by_words(line: str) -> int:
        words = line.split(" ")
        return number(tuple(map(number, words)) if len(words) > 1 else line)

    details: dict[str, Mapping[str, Any]] = {}  # equal ones once
    cells = []
    for cell in shown:
        details.setdefault(key := repr(cell["details"]), cell["details"])
        cells.append([*(number(cell[name]) for name in KEYS), list(details).index(key)])
    abouts = [
        {
            "commands": [by_words(line) for line in about["commands"]],
            "parameters": flat(about["parameters"]),
            "history": [flat(entry) for entry in about["history"]],
        }
        for about in details.values()
    ]
    known = {"keys": KEYS, "states": STATES, "cells": cells, "details": abouts}
    return known | {"texts": [value for _, value in numbers]}
