"""All pages of the regressions: a page for each spec, their index, and the matrix as HTML."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from rnnreranker.base.pages import render, write_page
from rnnreranker.base.record import read_records
from rnnreranker.regress.pages.page import spec_page
from rnnreranker.regress.papers.figures import Drawn, figures
from rnnreranker.regress.papers.matrix import STATES, Matrix, counted
from rnnreranker.regress.papers.paper import Paper
from rnnreranker.regress.papers.twins import TwinSet, interval_text, listed, twin_names
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
        paper.name: [cell["state"] for cell in matrix.cells if cell["paper"] == paper.number] for paper in matrix.papers
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


LANDING = "index.html"
TALL = 30  # columns: a table with more is shown with rows and columns exchanged, and closed
KEYS = (  # of cells, that the script of a page knows
    *("id", "row", "dataset", "group", "measure", "protocol", "where", "state", "note"),
    *("published", "measured", "difference", "letters", "tuned"),
)
Twins = Mapping[tuple[str, str], Sequence[TwinSet]]  # of a paper and table


def matrix_pages(
    cells: Sequence[Mapping[str, Any]],
    papers: Sequence[Paper] = (),
    made: str = "",
    figures: Sequence[Drawn] = (),
    twins: Twins | None = None,
) -> dict[str, str]:
    """File name → HTML: `index.html` with a mark for every cell, and `paper-ID.html` with the tables of each paper.

    Every cell stands once on the page of its paper, in the order given. Filters and the open cell are in the address of
    that page: `paper-000.html#state=changed&open=ID`; the mark of a cell links to it. Links to pages beside the folder
    are written `../regressions/NAME.md`.

    Args:
        cells: of `Matrix.cells`.
        papers: that the cells are of, for titles, citations and remarks.
        made: one line on what the pages were made from (date, commit).
        figures: as `figures.figures` makes them.
        twins: paper and table → what runs here in the place of its rows, a query set each.
    """
    shown = texts(cells)
    of_paper = {paper.number: paper for paper in papers}
    all_papers = []
    for identity in dict.fromkeys(cell["paper"] for cell in shown):
        of_this = (cell for cell in shown if cell["paper"] == identity)
        mine = [{**cell, "number": number} for number, cell in enumerate(of_this)]  # by which the script knows it
        about = of_paper.get(identity, Paper.model_construct(name=f"paper-{identity}", title="", tables=[]))
        all_papers.append(
            {
                **{"id": identity, "page": f"paper-{identity}.html", "entries": mine, "counts": count_states(mine)},
                **{"title": about.title, "citation": about.citation, "about": about.about},
                "tables": _tables(mine, about, twins or {}),
            }
        )
    common = {"papers": all_papers, "landing": LANDING, "made": made, "states": STATES}
    landing = render(
        "regress.papers", "landing.html.j2", **common, counts=count_states(shown), total=len(cells), figures=figures
    )
    return {LANDING: landing} | {one["page"]: _paper_page(one, common) for one in all_papers}


def _paper_page(paper: Mapping[str, Any], common: Mapping[str, Any]) -> str:
    entries = paper["entries"]
    sets = [one for table in paper["tables"] for one in table["twins"]]
    specs = (dict(entry["details"]["parameters"]).get("spec") for entry in entries)
    return render(
        "regress.papers",
        "paper.html.j2",
        **common,
        paper=paper,
        known=_numbered(entries),
        datasets=list(dict.fromkeys(entry["group"] for entry in entries)),
        specs=list(dict.fromkeys(filter(None, specs))),
        tuned=sum(entry["tuned"] for entry in entries),
        lettered=any(entry["letters"] for entry in entries),
        models=listed(list(dict.fromkeys(name for one in sets for name in one.models))),
        interval_text=interval_text,
        twin_names=twin_names,
    )


def slug(text: str) -> str:
    """Small letters and digits of a text, in words joined by hyphens: part of an address.

    >>> slug("TAS-B [our evaluation]"), slug("nDCG@10 x100")
    ('tas-b-our-evaluation', 'ndcg-10-x100')
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"


def headed(table: str) -> str:
    """What a table is called: numbers are of tables, other names are of what the text says.

    >>> headed("3"), headed("Section 3.1")
    ('Table 3', 'Section 3.1')
    """
    return f"Table {table}" if table.isdigit() else table


def texts(cells: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Cells with their values as texts, an address each that stays when others are added, and the details to open."""
    used: Counter[str] = Counter()
    shown = []
    for cell in cells:
        name = ".".join(slug(str(cell[part])) for part in ("paper", "table", "row", "dataset", "measure"))
        used[name] += 1
        digits = cell["decimals"]
        finer = digits + (2 if cell["state"] == "changed" else 1)  # so that no changed value looks reproduced
        details = {
            "commands": cell["commands"],
            "parameters": [[str(key), _plain(value)] for key, value in cell["parameters"].items()],
            "history": [[[key, _plain(value)] for key, value in one.items()] for one in cell["history"]],
        }
        values = {
            "published": _number(cell["published"], digits),
            "measured": _number(cell["measured"], finer),
            "difference": _difference(cell, finer),
        }
        about = {"id": name if used[name] == 1 else f"{name}-{used[name]}", "where": headed(cell["table"])}
        sign = STATES[cell["state"]][0]
        shown.append({**cell, **about, **values, "sign": sign, "details": details})
    return shown


def _number(value: Any, decimals: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    text = f"{value:.{decimals}f}"
    return text[1:] if text.startswith("0.") else text  # .388, as the papers print it


def _difference(cell: Mapping[str, Any], decimals: int) -> str:
    published, measured = cell["published"], cell["measured"]
    if not isinstance(published, int | float) or measured is None:
        return ""
    size = round(abs(measured - published), decimals)
    sign = "" if size == 0 else "+" if measured > published else "−"
    return sign + _number(size, decimals)


def _plain(value: Any) -> Any:
    """A value that JSON has, else its text."""
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _tables(shown: Sequence[Mapping[str, Any]], about: Paper, twins: Twins) -> list[dict[str, Any]]:
    """The tables of one paper, in their order, as the templates show them."""
    remarks = {table.table: table for table in about.tables}
    tables = []
    for name, members in groupby(shown, key=lambda cell: cell["table"]):
        mine = list(members)
        paper, first = mine[0]["paper"], mine[0]
        columns = list(dict.fromkeys((cell["dataset"], cell["measure"]) for cell in mine))
        rows = list(dict.fromkeys(cell["row"] for cell in mine))
        at = {(cell["row"], cell["dataset"], cell["measure"]): cell for cell in mine}
        printed = [(row, [at.get((row, *column)) for column in columns]) for row in rows]
        tall = len(columns) > TALL
        if tall:
            common = {f"{cell['group']}, {cell['measure']}" for cell in mine}
            heading = common.pop() if len(common) == 1 else "value"
            queries = {(cell["dataset"], cell["measure"]): cell["query"] for cell in mine}
            groups = [{"name": heading, "columns": rows}]
            lines = [
                (queries[column] if heading != "value" and queries[column] else ", ".join(column), cells)
                for column in columns
                for cells in [[at.get((row, *column)) for row in rows]]
            ]
        else:
            grouped = groupby(columns, key=lambda column: column[0])
            groups = [{"name": dataset, "columns": [measure for _, measure in same]} for dataset, same in grouped]
            lines = printed
        tables.append(
            {
                "name": headed(name),
                "label": f"T{name}" if name.isdigit() else name.replace("Section ", "§").replace("Figure ", "F"),
                "anchor": f"{paper}-table-{slug(name)}",
                "caption": first["caption"],
                "note": remarks[name].note if name in remarks else "",
                "corner": "query" if tall else "row",  # what the rows are
                "groups": groups,  # columns under a common heading
                "rows": lines,  # of cells; None = the paper has no value there
                "printed": printed,  # rows and columns never exchanged
                "size": len(mine),
                "letters": {cell["row"]: cell["letter"] for cell in mine if cell["letter"]},
                "counts": count_states(mine),
                "differing": _differing(mine),
                "twins": twins.get((paper, name), []) if not tall else [],  # in columns behind those of the paper
                "twins_note": remarks[name].twins_note if name in remarks else "",
                "closed": tall,
            }
        )
    return tables


def _differing(shown: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each row whose values of single queries were measured."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for cell in shown:
        if cell["measured"] and cell["query"]:
            rows.setdefault(cell["row"], []).append(cell)
    sentences = []
    for row, cells in rows.items():
        changed = [cell for cell in cells if cell["state"] == "changed"]
        changed.sort(key=lambda cell: -abs(float(cell["difference"].replace("−", "-") or 0)))
        named = ", ".join(f"{cell['query']} ({cell['difference']})" for cell in changed)
        same = f"{row}: {len(cells) - len(changed)} of {len(cells)} queries give the printed value"
        sentences.append(f"{same}; {len(changed)} differ, measured minus published: {named}." if named else f"{same}.")
    return sentences


def count_states(cells: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many cells are in which state: those states that one of them is in, in the order of `STATES`."""
    counts = Counter(cell["state"] for cell in cells)
    return {state: counts[state] for state in STATES if counts[state]}


def _numbered(shown: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The cells of a page and their details for its script: every text once, numbers of texts wherever it stands.

    The commands of a table repeat each other from cell to cell; a number each makes a page less than half as long.

    Returns:
        `texts`: every value once, of a command the numbers of its words; `keys`: what the numbers of a cell say, in
        their order, before that of its details; `cells`, `details`: numbers of `texts`. Parameters, and each entry of a
        history, are names and values in turn.
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
