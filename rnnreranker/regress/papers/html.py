"""The matrix of published cells as one HTML page that needs nothing else: tables, filters, what is behind each cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rnnreranker.base.pages import render
from rnnreranker.regress.papers.cells import STATES, check, group_of, headed, query_of, slug
from rnnreranker.regress.papers.cells import entries as texts
from rnnreranker.regress.papers.figures import Drawn
from rnnreranker.regress.papers.twins import TwinSet, interval_text, listed, twin_names

Twins = Mapping[tuple[str, str], Sequence[TwinSet]]  # of a paper and table
TALL = 30  # columns: a table with more is shown with rows and columns exchanged, and closed


def matrix_page(
    cells: Sequence[Mapping[str, Any]],
    *,
    papers: Mapping[str, str] | None = None,
    citations: Mapping[str, str] | None = None,
    made: str = "",
    figures: Sequence[Drawn] = (),
    twins: Twins | None = None,
    twin_notes: Mapping[tuple[str, str], str] | None = None,
) -> str:
    """The HTML of the page: every cell once, in the order given, by paper and table.

    Filters and the open cell are in the address: `index.html#paper=000&state=changed&open=ID`.

    Args:
        cells: with the keys of `cells.KEYS`, and perhaps `decimals` (printed digits; else seen from the table)
            `letter` (of the row) and `letters` (of the rows that this one differs from significantly; only where runs
            per query are at hand);
            `join.page_cells` makes them. `published` and `measured` are numbers, texts, or
            None; `commands` a list of texts; `parameters` a mapping; `history` a list of mappings (date, commit,
            value, …), oldest first.
        papers: paper → its title; citations: → its authors, title, venue and year.
        made: one line on what the page was made from (date, commit).
        figures: as `figures.figures` makes them.
        twins: paper and table → what runs here in the place of its rows, a query set each.
        twin_notes: paper and table → what is to be known of them.

    Raises:
        InputError: a missing key, an unknown state, a cell twice, one that is reproduced or changed without a measured
            value; all of them at once.
    """
    check(cells)
    entries, details = texts(cells)
    tables = _tables(cells, entries, twins or {}, twin_notes or {})
    return render(
        "regress.papers",
        "matrix.html.j2",
        cells=entries,
        details=details,
        tables=tables,
        papers=_papers(tables, papers or {}, citations or {}),
        states=STATES,
        counts=_counted(entries),
        datasets=list(dict.fromkeys(entry["group"] for entry in entries)),
        total=len(cells),
        tuned=sum(bool(cell["tuned"]) for cell in cells),
        lettered=any(cell.get("letters") for cell in cells),
        models=listed(
            list(dict.fromkeys(name for table in tables for one_set in table["twins"] for name in one_set.models))
        ),
        interval_text=interval_text,
        twin_names=twin_names,
        made=made,
        figures=figures,
    )


def _tables(
    cells: Sequence[Mapping[str, Any]],
    entries: list[dict[str, Any]],
    twins: Twins,
    twin_notes: Mapping[tuple[str, str], str],
) -> list[dict[str, Any]]:
    """The tables as the template shows them."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, entry in enumerate(entries):
        numbers.setdefault((entry["paper"], entry["table"]), []).append(number)
    tables = []
    for (paper, name), members in numbers.items():
        mine = [entries[number] for number in members]
        columns = list(dict.fromkeys((entry["dataset"], entry["measure"]) for entry in mine))
        rows = list(dict.fromkeys(entry["row"] for entry in mine))
        shown = {
            (entry["row"], entry["dataset"], entry["measure"]): {
                **entry,
                "number": number,  # in the list of cells, by which the page's script looks it up
                "sign": STATES[entry["state"]][0],
            }
            for number, entry in zip(members, mine, strict=True)
        }
        tall = len(columns) > TALL
        if tall:
            groups = [{"name": _common(columns), "columns": rows}]
            lines = [(_line(d, m, columns), [shown.get((row, d, m)) for row in rows]) for d, m in columns]
        else:
            groups = [
                {"name": dataset, "columns": [measure for _, measure in same]}
                for dataset, same in groupby(columns, key=lambda column: column[0])
            ]
            lines = [(row, [shown.get((row, d, m)) for d, m in columns]) for row in rows]
        tables.append(
            {
                "paper": paper,
                "name": headed(name),
                "label": f"T{name}" if name.isdigit() else name.replace("Section ", "§").replace("Figure ", "F"),
                "anchor": f"{paper}-table-{slug(name)}",
                "caption": str(cells[members[0]]["caption"] or ""),
                "corner": "query" if tall else "row",  # what the rows are
                "groups": groups,  # columns under a common heading
                "rows": lines,  # of cells; None = the paper has no value there
                "letters": {entry["row"]: entry["letter"] for entry in mine if entry["letter"]},
                "counts": _counted(mine),
                "differing": _differing(mine),
                "twins": twins.get((paper, name), []) if not tall else [],  # in columns behind those of the paper
                "twins_note": twin_notes.get((paper, name), ""),
                "closed": tall,
            }
        )
    return tables


def _differing(shown: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence for each row whose values of single queries were measured."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for entry in shown:
        if entry["measured"] and query_of(entry["dataset"]):
            rows.setdefault(entry["row"], []).append(entry)
    sentences = []
    for row, entries in rows.items():
        changed = [entry for entry in entries if entry["state"] == "changed"]
        changed.sort(key=lambda entry: -abs(float(entry["difference"].replace("−", "-") or 0)))
        named = ", ".join(f"{query_of(entry['dataset'])} ({entry['difference']})" for entry in changed)
        same = f"{row}: {len(entries) - len(changed)} of {len(entries)} queries give the printed value"
        sentences.append(f"{same}; {len(changed)} differ, measured minus published: {named}." if named else f"{same}.")
    return sentences


def _common(columns: list[tuple[str, str]]) -> str:
    """The heading over exchanged columns: the data set and measure that all have."""
    names = list(dict.fromkeys(f"{group_of(dataset)}, {measure}" for dataset, measure in columns))
    return names[0] if len(names) == 1 else "value"


def _line(dataset: str, measure: str, columns: list[tuple[str, str]]) -> str:
    query = query_of(dataset)
    return query if query and _common(columns) != "value" else f"{dataset}, {measure}"


def _papers(
    tables: list[dict[str, Any]], titles: Mapping[str, str], citations: Mapping[str, str]
) -> list[dict[str, Any]]:
    return [
        {
            "id": paper,
            "title": titles.get(paper, ""),
            "citation": citations.get(paper, ""),
            "tables": [one for one in tables if one["paper"] == paper],
        }
        for paper in dict.fromkeys(table["paper"] for table in tables)
    ]


def _counted(entries: Sequence[dict[str, Any]]) -> dict[str, int]:
    counts = Counter(entry["state"] for entry in entries)
    return {state: counts[state] for state in STATES}
