"""The matrix of published cells as one HTML page that needs nothing else: tables, filters, what is behind each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rnnreranker.pages import render
from rnnreranker.papers.cells import STATES, addresses, check, group_of, query_of, slug
from rnnreranker.papers.cells import entries as texts
from rnnreranker.papers.figures import Drawn
from rnnreranker.papers.twins import TwinSet, interval_text, twin_names

Twins = Mapping[tuple[str, str], Sequence[TwinSet]]  # of a paper and table
TALL = 30  # columns: a table with more is shown with rows and columns exchanged, and closed


@dataclass(frozen=True)
class Shown:
    """A cell as its table shows it; numbers are texts already, empty where there is none."""

    number: int  # place in the list of cells, which the page's script looks it up by
    id: str
    published: str
    measured: str
    difference: str
    letters: str
    state: str
    sign: str
    tuned: bool


@dataclass(frozen=True)
class Group:
    """Columns under a common heading: the heading and the heading of each column."""

    name: str
    columns: list[str]


@dataclass(frozen=True)
class Table:
    """A table of a paper: headings, rows of cells (None = the paper has no value there), counts by state."""

    paper: str
    name: str
    caption: str
    corner: str  # what the rows are
    groups: list[Group]
    rows: list[tuple[str, list[Shown | None]]]
    letters: dict[str, str]  # row → the letter that others name it by, where runs per query are at hand
    counts: dict[str, int]
    differing: list[str]  # for rows measured query by query: which queries differ, and by how much
    twins: Sequence[TwinSet]  # in columns of their own, behind those of the paper
    twins_note: str
    closed: bool

    @property
    def anchor(self) -> str:
        return f"{self.paper}-table-{slug(self.name)}"


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
    entries, details = texts(cells, addresses(cells))
    tables = _tables(cells, entries, twins or {}, twin_notes or {})
    counts = {state: sum(cell["state"] == state for cell in cells) for state in STATES}
    return render(
        "papers",
        "matrix.html.j2",
        cells=entries,
        details=details,
        tables=tables,
        papers=_papers(tables, papers or {}, citations or {}),
        states=STATES,
        counts=counts,
        datasets=list(dict.fromkeys(entry["group"] for entry in entries)),
        total=len(cells),
        tuned=sum(bool(cell["tuned"]) for cell in cells),
        lettered=any(cell.get("letters") for cell in cells),
        models=list(dict.fromkeys(found.model for table in tables for found in table.twins)),
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
) -> list[Table]:
    numbers: dict[tuple[str, str], list[int]] = {}
    for number, entry in enumerate(entries):
        numbers.setdefault((entry["paper"], entry["table"]), []).append(number)
    tables = []
    for (paper, name), members in numbers.items():
        columns = list(dict.fromkeys((entries[n]["dataset"], entries[n]["measure"]) for n in members))
        rows = list(dict.fromkeys(entries[n]["row"] for n in members))
        places = {
            (entries[n]["row"], entries[n]["dataset"], entries[n]["measure"]): _shown(n, entries[n]) for n in members
        }
        if len(columns) > TALL:
            groups = [Group(_common(columns), rows)]
            lines = [(_line(d, m, columns), [places.get((row, d, m)) for row in rows]) for d, m in columns]
        else:
            groups = []
            for dataset, measure in columns:
                if not groups or groups[-1].name != dataset:
                    groups.append(Group(dataset, []))
                groups[-1].columns.append(measure)
            lines = [(row, [places.get((row, d, m)) for d, m in columns]) for row in rows]
        tables.append(
            Table(
                paper=paper,
                name=name,
                caption=str(cells[members[0]]["caption"] or ""),
                corner="query" if len(columns) > TALL else "row",
                groups=groups,
                rows=lines,
                letters={entries[n]["row"]: entries[n]["letter"] for n in members if entries[n]["letter"]},
                counts=_counted(entries[n]["state"] for n in members),
                differing=_differing([entries[n] for n in members]),
                twins=twins.get((paper, name), []) if len(columns) <= TALL else [],
                twins_note=twin_notes.get((paper, name), ""),
                closed=len(columns) > TALL,
            )
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


def _shown(number: int, entry: dict[str, Any]) -> Shown:
    return Shown(
        number=number,
        sign=STATES[entry["state"]][0],
        **{key: entry[key] for key in ("id", "published", "measured", "difference", "letters", "state", "tuned")},
    )


def _common(columns: list[tuple[str, str]]) -> str:
    """The heading over exchanged columns: the data set and measure that all have."""
    names = list(dict.fromkeys(f"{group_of(dataset)}, {measure}" for dataset, measure in columns))
    return names[0] if len(names) == 1 else "value"


def _line(dataset: str, measure: str, columns: list[tuple[str, str]]) -> str:
    query = query_of(dataset)
    return query if query and _common(columns) != "value" else f"{dataset}, {measure}"


def _papers(tables: list[Table], titles: Mapping[str, str], citations: Mapping[str, str]) -> list[dict[str, Any]]:
    found: dict[str, list[Table]] = {}
    for table in tables:
        found.setdefault(table.paper, []).append(table)
    return [
        {"id": paper, "title": titles.get(paper, ""), "citation": citations.get(paper, ""), "tables": members}
        for paper, members in found.items()
    ]


def _counted(states: Any) -> dict[str, int]:
    counts = dict.fromkeys(STATES, 0)
    for state in states:
        counts[state] += 1
    return counts
